/** The slice that is written, and nine that are kept. */
const count = 10

/** How a window is made. */
export interface WindowOptions<Slice> {
  readonly millis: number
  /** Makes an empty slice. */
  readonly slice: () => Slice
  /** A slice has left the window. */
  readonly dropped?: (slice: Slice) => void
  /** A slice begins when it is first used, as in Finagle's `WindowedAdder`. Otherwise where the one before it ended. */
  readonly drifts?: boolean
}

/** What has happened in the last while, in tenths of it. Times are milliseconds of a monotonic clock. */
export class Window<Slice> {
  /** The oldest first; the last one is written. */
  readonly slices: Array<Slice>
  private readonly options: WindowOptions<Slice>
  private beganMillis: number

  constructor(options: WindowOptions<Slice>, nowMillis: number) {
    this.options = options
    this.beganMillis = nowMillis
    this.slices = [options.slice()]
  }

  /** The slice of this moment. A clock that went back changes nothing. */
  at(nowMillis: number): Slice {
    const { drifts, millis } = this.options
    const passed = Math.floor((nowMillis - this.beganMillis) * count / millis)
    if (passed > 0) {
      this.beganMillis = drifts === true ? nowMillis : this.beganMillis + passed * millis / count
      this.pass(Math.min(passed, count))
    }
    return this.slices.at(-1)!
  }

  private pass(slices: number): void {
    for (let passed = 0; passed < slices; passed++) {
      this.slices.push(this.options.slice())
      if (this.slices.length <= count) continue
      const dropped = this.slices.shift()!
      this.options.dropped?.(dropped)
    }
  }
}

/** Options of a window. */
export interface WindowOptions<Slice> {
  readonly millis: number
  /** The number of slices, including the one being written. Default 10. */
  readonly count?: number
  /** Makes an empty slice. */
  readonly slice: () => Slice
  /** Called when a slice has left the window. */
  readonly dropped?: (slice: Slice) => void
  /**
   * Whether a slice begins when it is first used, as in Finagle's `WindowedAdder`. Otherwise it begins where the
   * previous one ended.
   */
  readonly drifts?: boolean
}

/** What happened in a recent window of time, in slices of it. Times are milliseconds of a monotonic clock. */
export class Window<Slice> {
  /** Oldest first; the last one is being written. */
  readonly slices: Array<Slice>
  private readonly options: WindowOptions<Slice>
  private readonly count: number
  private beganMillis: number

  constructor(options: WindowOptions<Slice>, nowMillis: number) {
    this.options = options
    this.count = options.count ?? 10
    this.beganMillis = nowMillis
    this.slices = [options.slice()]
  }

  /** The current slice. A clock that goes backwards changes nothing. */
  at(nowMillis: number): Slice {
    const passed = (nowMillis - this.beganMillis) * this.count / this.options.millis
    if (passed >= 1) this.turn(nowMillis, Math.floor(passed))
    return this.slices.at(-1)!
  }

  private turn(nowMillis: number, slices: number): void {
    const { count } = this
    const { drifts, millis } = this.options
    this.beganMillis = drifts === true ? nowMillis : this.beganMillis + slices * millis / count
    for (let passed = 0; passed < Math.min(slices, count); passed++) {
      this.slices.push(this.options.slice())
      if (this.slices.length <= this.count) continue
      const dropped = this.slices.shift()!
      this.options.dropped?.(dropped)
    }
  }
}

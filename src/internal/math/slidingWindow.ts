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
  private readonly count: number
  private readonly sliceMillis: number
  /** The last of the slices, whatever the time, and when it ends. */
  current: Slice
  private endsMillis: number
  /** Oldest first; the last one is being written. */
  readonly slices: Array<Slice>

  constructor(private readonly options: WindowOptions<Slice>, nowMillis: number) {
    this.count = options.count ?? 10
    this.sliceMillis = options.millis / this.count
    this.endsMillis = nowMillis + this.sliceMillis
    this.slices = [this.current = options.slice()]
  }

  /** The current slice. A clock that goes backwards changes nothing. */
  at(nowMillis: number): Slice {
    if (nowMillis >= this.endsMillis) this.turn(nowMillis)
    return this.current
  }

  private turn(nowMillis: number): void {
    const { count, sliceMillis } = this
    const slices = 1 + Math.floor((nowMillis - this.endsMillis) / sliceMillis)
    this.endsMillis = this.options.drifts === true ? nowMillis + sliceMillis : this.endsMillis + slices * sliceMillis
    for (let passed = 0; passed < Math.min(slices, count); passed++) {
      this.slices.push(this.current = this.options.slice())
      if (this.slices.length <= count) continue
      const dropped = this.slices.shift()!
      this.options.dropped?.(dropped)
    }
  }
}

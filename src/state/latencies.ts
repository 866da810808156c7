import * as Bins from "../internal/math/latencyBins.ts"

/** Into how many slices a window is divided: what is older than the window is forgotten a slice at a time. */
const slicesOfWindow = 3

/** How often in a slice the quantiles are worked out anew. */
const refreshesOfSlice = 10

/** What is known of one slice. */
class Slice {
  readonly counts = new Map<number, number>()
  total = 0
}

/**
 * How long sends have taken, over a window of time. Source: the three slices of ten seconds of Finagle's
 * `BackupRequestFilter`.
 */
export class Latencies {
  private readonly sliceMillis: number
  /** The slice that is written, and those before it. */
  private slices: ReadonlyArray<Slice> = []
  private sliceNumber = -Infinity
  private bins: Bins.Cumulated = []
  private refreshMillis = -Infinity

  constructor(windowMillis: number) {
    this.sliceMillis = windowMillis / slicesOfWindow
  }

  /** How many sends the window has. */
  count(nowMillis: number): number {
    this.turn(nowMillis)
    return this.slices.reduce((sum, { total }) => sum + total, 0)
  }

  record(millis: number, nowMillis: number): void {
    this.turn(nowMillis)
    const slice = this.slices[0]!
    const bin = Bins.binOf(millis)
    slice.counts.set(bin, (slice.counts.get(bin) ?? 0) + 1)
    slice.total++
  }

  /** The time that a share of the sends do not exceed, in milliseconds; `undefined` below so many sends. */
  quantile(quantile: number, least: number, nowMillis: number): number | undefined {
    if (this.count(nowMillis) < least) return undefined
    if (nowMillis >= this.refreshMillis) {
      this.bins = Bins.cumulated(this.slices.map(({ counts }) => counts))
      this.refreshMillis = nowMillis + this.sliceMillis / refreshesOfSlice
    }
    return Bins.quantileOf(this.bins, quantile)
  }

  /** Begins a slice when its time has come. A clock that goes back goes on in the latest. */
  private turn(nowMillis: number): void {
    const number = Math.floor(nowMillis / this.sliceMillis)
    if (number <= this.sliceNumber) return
    const age = Math.min(slicesOfWindow, number - this.sliceNumber)
    const begun = Array.from({ length: age }, () => new Slice())
    this.slices = [...begun, ...this.slices].slice(0, slicesOfWindow)
    this.sliceNumber = number
    this.refreshMillis = -Infinity
  }
}

import * as Bins from "../../internal/math/latencyBins.ts"
import { Window } from "../../internal/math/slidingWindow.ts"

/** The number of slices in a window: old data is dropped one slice at a time. */
const slicesOfWindow = 3

/** How often per slice the quantiles are recomputed. */
const refreshesOfSlice = 10

/** The data of one slice. */
class Slice {
  readonly counts = new Map<number, number>()
  total = 0
}

/**
 * How long sends took, over a window of time. Source: the three slices of ten seconds of Finagle's
 * `BackupRequestFilter`.
 */
export class Latencies {
  private readonly sliceMillis: number
  private readonly window: Window<Slice>
  private bins: Bins.Cumulated = []
  private refreshMillis = -Infinity

  constructor(windowMillis: number) {
    this.sliceMillis = windowMillis / slicesOfWindow
    this.window = new Window({ millis: windowMillis, count: slicesOfWindow, slice: () => this.begin() }, 0)
  }

  /** The number of sends in the window. */
  count(nowMillis: number): number {
    this.window.at(nowMillis)
    return this.window.slices.reduce((sum, { total }) => sum + total, 0)
  }

  record(millis: number, nowMillis: number): void {
    const slice = this.window.at(nowMillis)
    const bin = Bins.binOf(millis)
    slice.counts.set(bin, (slice.counts.get(bin) ?? 0) + 1)
    slice.total++
  }

  /**
   * The duration that this share of the sends does not exceed, in milliseconds; `undefined` with fewer than `least`
   * sends.
   */
  quantile(quantile: number, least: number, nowMillis: number): number | undefined {
    if (this.count(nowMillis) < least) return undefined
    if (nowMillis >= this.refreshMillis) {
      this.bins = Bins.cumulated(this.window.slices.map(({ counts }) => counts))
      this.refreshMillis = nowMillis + this.sliceMillis / refreshesOfSlice
    }
    return Bins.quantileOf(this.bins, quantile)
  }

  private begin(): Slice {
    this.refreshMillis = -Infinity
    return new Slice()
  }
}

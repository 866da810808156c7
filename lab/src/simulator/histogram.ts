/** Bins for each doubling: a percentile is off by at most 1.6 %. */
const binsPerDoubling = 32
/** What is shorter counts as 0. */
const leastMillis = 0.01
const doublings = 43
const bins = binsPerDoubling * doublings + 1

const binOf = (millis: number): number =>
  millis < leastMillis ? 0 : Math.min(bins - 1, 1 + Math.floor(Math.log2(millis / leastMillis) * binsPerDoubling))

/** The middle of a bin. */
const millisOf = (bin: number): number => bin === 0 ? 0 : leastMillis * 2 ** ((bin - 0.5) / binsPerDoubling)

/** Durations, counted in bins of growing width: its size does not depend on how many they are. */
export class Histogram {
  private readonly counts = new Float64Array(bins)
  count = 0
  private sum = 0
  maxMillis = 0

  add(millis: number): void {
    const bin = binOf(millis)
    this.counts[bin] = this.counts[bin]! + 1
    this.count++
    this.sum += millis
    if (millis > this.maxMillis) this.maxMillis = millis
  }

  get meanMillis(): number | null {
    return this.count === 0 ? null : this.sum / this.count
  }

  /** The nearest-rank percentile; `null` of nothing. */
  percentile(share: number): number | null {
    if (this.count === 0) return null
    const rank = Math.max(1, Math.ceil(share * this.count))
    let seen = 0
    for (let bin = 0; bin < bins; bin++) {
      seen += this.counts[bin]!
      if (seen >= rank) return Math.min(millisOf(bin), this.maxMillis)
    }
    return this.maxMillis
  }

  /** Adds all that the other has counted. */
  merge(that: Histogram): void {
    if (that.count === 0) return
    for (let bin = 0; bin < bins; bin++) this.counts[bin] = this.counts[bin]! + that.counts[bin]!
    this.count += that.count
    this.sum += that.sum
    this.maxMillis = Math.max(this.maxMillis, that.maxMillis)
  }

  reset(): void {
    if (this.count === 0) return
    this.counts.fill(0)
    this.count = this.sum = this.maxMillis = 0
  }
}

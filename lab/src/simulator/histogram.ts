/** Bins for each doubling: a percentile is off by at most 1.6 %. */
const binsPerDoubling = 32
/** What is shorter counts as 0. */
const leastMillis = 0.01
const doublings = 43
const bins = binsPerDoubling * doublings + 1

/** How much wider a bin is than the one before. A square root is exact on every machine, as other powers are not. */
const step = Math.sqrt(Math.sqrt(Math.sqrt(Math.sqrt(Math.sqrt(2)))))
const half = Math.sqrt(step)

/** Where bins begin. */
const edges = new Float64Array(bins + 1)
for (let doubling = 0, edge = leastMillis; doubling < doublings; doubling++, edge *= 2) {
  for (let bin = 0, from = edge; bin < binsPerDoubling; bin++, from *= step) {
    edges[doubling * binsPerDoubling + bin + 1] = from
  }
}
edges[bins] = Infinity

const binOf = (millis: number): number => {
  if (millis < leastMillis) return 0
  let bin = Math.min(bins - 1, 1 + Math.floor(Math.log2(millis / leastMillis) * binsPerDoubling))
  // A machine's logarithm may be off by one bin.
  if (millis < edges[bin]!) bin--
  else if (millis >= edges[bin + 1]!) bin++
  return bin
}

/** The middle of a bin. */
const millisOf = (bin: number): number => bin === 0 ? 0 : edges[bin]! * half

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

  /** The nearest-rank percentile; `null` when empty. */
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

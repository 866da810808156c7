/** With more buckets than this, pairs are merged. */
const mostBuckets = 4096

/** The counts of a stretch of time. */
export interface Bucket {
  readonly fromMillis: number
  /** Requests that began. */
  requests: number
  /** Those of them that were not retries. */
  calls: number
  /** Those that failed because of the service. */
  failed: number
  /** Of these, those that were refused, and those whose client left. */
  refused: number
  abandoned: number
}

const counts = ["requests", "calls", "failed", "refused", "abandoned"] as const

const empty = (fromMillis: number): Bucket => ({
  fromMillis,
  requests: 0,
  calls: 0,
  failed: 0,
  refused: 0,
  abandoned: 0
})

/** Requests over time: the buckets become wider as the log becomes longer. */
export class Series {
  private buckets = new Map<number, Bucket>()
  widthMillis = 1000
  private first = Infinity
  private last = -Infinity

  /** The bucket of a time, in milliseconds since 1970. */
  at(millis: number): Bucket {
    const index = Math.floor(millis / this.widthMillis)
    const there = this.buckets.get(index)
    if (there !== undefined) return there
    if (this.buckets.size >= mostBuckets || this.spans(index)) {
      this.widen()
      return this.at(millis)
    }
    const bucket = empty(index * this.widthMillis)
    this.buckets.set(index, bucket)
    return bucket
  }

  /** Whether with a bucket there the series would be longer than it may be, gaps included. */
  private spans(index: number): boolean {
    const first = Math.min(this.first, index)
    const last = Math.max(this.last, index)
    if (last - first >= mostBuckets) return true
    this.first = first
    this.last = last
    return false
  }

  private widen(): void {
    const old = this.buckets
    this.widthMillis *= 2
    this.buckets = new Map()
    this.first = Infinity
    this.last = -Infinity
    for (const one of old.values()) {
      const bucket = this.at(one.fromMillis)
      for (const count of counts) bucket[count] += one[count]
    }
  }

  /** In chronological order, empty ones included. */
  get all(): ReadonlyArray<Bucket> {
    if (this.buckets.size === 0) return []
    return Array.from(
      { length: this.last - this.first + 1 },
      (_, n) => this.buckets.get(this.first + n) ?? empty((this.first + n) * this.widthMillis)
    )
  }
}

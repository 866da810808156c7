/** From a time on, what the rate is and how it changes. */
interface Segment {
  readonly fromMillis: number
  readonly toMillis: number
  /** Per millisecond, at its beginning. */
  readonly rate: number
  /** The change of the rate per millisecond. */
  readonly slope: number
}

/** A point of a rate that changes: from then on, or reached in a straight line from the point before. */
export interface RatePoint {
  readonly atMillis: number
  readonly perSecond: number
  readonly ramp: boolean
}

const segmentsOf = (points: ReadonlyArray<RatePoint>): ReadonlyArray<Segment> =>
  points.map((point, index) => {
    const next = points[index + 1]
    const toMillis = next === undefined ? Infinity : next.atMillis
    const slope = next?.ramp ? (next.perSecond - point.perSecond) / 1000 / (toMillis - point.atMillis) : 0
    return { fromMillis: point.atMillis, toMillis, rate: point.perSecond / 1000, slope }
  })

/**
 * The times at which calls arrive. The rate is summed up over time; a call arrives whenever the sum has grown by the
 * next gap: 1 for even arrivals, exponential with mean 1 for a Poisson process.
 */
export class Arrivals {
  private readonly segments: ReadonlyArray<Segment>
  private readonly gap: () => number
  private index = 0
  private atMillis: number

  constructor(points: ReadonlyArray<RatePoint>, gap: () => number, beginMillis: number) {
    this.segments = segmentsOf(points)
    this.gap = gap
    this.atMillis = beginMillis
  }

  /** When the next call arrives, in milliseconds; `Infinity` when none does. */
  next(): number {
    let gap = this.gap()
    while (this.index < this.segments.length) {
      const segment = this.segments[this.index]!
      const from = Math.max(this.atMillis, segment.fromMillis)
      const rate = segment.rate + segment.slope * (from - segment.fromMillis)
      const length = segment.toMillis - from
      const wait = timeFor(gap, rate, segment.slope)
      if (wait <= length) {
        this.atMillis = from + wait
        return this.atMillis
      }
      gap -= (rate + segment.slope * length / 2) * length
      this.atMillis = segment.toMillis
      this.index++
    }
    return Infinity
  }
}

/** How long it takes until the rate, summed up, has grown by `gap`; `Infinity` when it never does. */
const timeFor = (gap: number, rate: number, slope: number): number => {
  if (slope === 0) return rate === 0 ? Infinity : gap / rate
  const discriminant = rate * rate + 2 * slope * gap
  return discriminant < 0 ? Infinity : 2 * gap / (rate + Math.sqrt(discriminant))
}

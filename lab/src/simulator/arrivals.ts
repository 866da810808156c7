import type { RecordedOrFile } from "./arrivalsSchema.ts"
import { millis } from "./units.ts"

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

/** The times at which calls arrive, one after the other. */
export interface Times {
  /** When the next call arrives, in milliseconds; `Infinity` when none does. */
  readonly next: () => number
}

class InOrder implements Times {
  private readonly at: Float64Array
  private index = 0

  constructor(at: ReadonlyArray<number>) {
    this.at = Float64Array.from(at).sort()
  }

  next(): number {
    return this.at[this.index++] ?? Infinity
  }
}

/** In milliseconds. */
const nanosecond = 1e-6

/**
 * Calls that arrive when they were recorded, a nanosecond later: what happens at the very moment at which one bucket ends
 * and the next begins counts in the first.
 */
export const recordedTimes = (at: ReadonlyArray<number>): Times => new InOrder(at.map((time) => time + nanosecond))

/** Calls that were counted: exactly this many in each bucket, at random times within it. */
export class RecordedCounts implements Times {
  private bucket = 0
  private inBucket: Times = new InOrder([])

  /** `draw` gives numbers from 0 to below 1. */
  constructor(
    private readonly calls: ReadonlyArray<number>,
    private readonly widthMillis: number,
    private readonly draw: () => number
  ) {}

  next(): number {
    let at = this.inBucket.next()
    while (at === Infinity && this.bucket < this.calls.length) {
      const length = this.calls[this.bucket++]!
      const to = this.bucket * this.widthMillis
      this.inBucket = new InOrder(Array.from({ length }, () => to - this.draw() * this.widthMillis))
      at = this.inBucket.next()
    }
    return at
  }
}

/** The most calls that were recorded in a second, or counted per second in a bucket. */
export const peakOf = ({ at = [], bucket = "1 second", calls = [] }: RecordedOrFile): number => {
  const perSecond = 1000 / millis(bucket)
  const seconds = new Map<number, number>()
  for (const time of at) {
    const second = Math.floor(time / 1000)
    seconds.set(second, (seconds.get(second) ?? 0) + 1)
  }
  return [...calls.map((count) => count * perSecond), ...seconds.values()].reduce((most, one) => Math.max(most, one), 0)
}

/**
 * The times at which calls arrive. The rate is summed up over time; a call arrives whenever the sum has grown by the
 * next gap: 1 for even arrivals, exponential with mean 1 for a Poisson process.
 */
export class Arrivals implements Times {
  private readonly segments: ReadonlyArray<Segment>
  private index = 0
  private atMillis: number

  constructor(points: ReadonlyArray<RatePoint>, private readonly gap: () => number, beginMillis: number) {
    this.segments = segmentsOf(points)
    this.atMillis = beginMillis
  }

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

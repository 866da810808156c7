import { type Ended, fleetsOf, together } from "../../simulator/runSummary.ts"
import { spreadOf } from "../../simulator/spread.ts"
import type { Run } from "./run.ts"

/** The most points of a line. */
const mostPoints = 300

/** How the buckets of all runs are put together to points. */
export interface Raster {
  readonly bucketMillis: number
  /** Buckets that make a point. */
  readonly perPoint: number
  readonly points: number
  readonly untilMillis: number
}

/** Few enough points for a line; the same for all runs. */
export const rasterOf = (runs: ReadonlyArray<Run>): Raster => {
  const results = runs.flatMap(({ results }) => results)
  const buckets = Math.max(...results.map(({ services }) => services[0]?.series.length ?? 0))
  const perPoint = Math.max(1, Math.ceil(buckets / mostPoints))
  return {
    bucketMillis: runs[0]!.result.bucketMillis,
    perPoint,
    points: Math.ceil(buckets / perPoint),
    untilMillis: Math.max(...results.map(({ untilMillis }) => untilMillis))
  }
}

/** The times of the points: in the middle of their buckets, or at their end. */
export const timesOf = ({ bucketMillis, perPoint, points, untilMillis }: Raster, at: "middle" | "end") => {
  const width = bucketMillis * perPoint
  return Array.from(
    { length: points },
    (_, n) => Math.min(untilMillis, at === "middle" ? (n + 0.5) * width : (n + 1) * width)
  )
}

/** A point of the buckets together, and how many seconds they last. */
export type Reading<Bucket> = (buckets: ReadonlyArray<Bucket>, seconds: number) => number | null

/**
 * Reads a series point by point. The last one is left out when it was cut short to less than half: a rate over so short a
 * time means nothing.
 */
export const read = <Bucket extends { readonly fromMillis: number }>(
  { bucketMillis, perPoint, points }: Raster,
  series: ReadonlyArray<Bucket>,
  untilMillis: number,
  reading: Reading<Bucket>
): ReadonlyArray<number | null> =>
  Array.from({ length: points }, (_, n) => {
    const buckets = series.slice(n * perPoint, (n + 1) * perPoint)
    if (buckets.length === 0) return null
    const millis = Math.min(untilMillis, buckets.at(-1)!.fromMillis + bucketMillis) - buckets[0]!.fromMillis
    return millis < bucketMillis / 2 ? null : reading(buckets, millis / 1000)
  })

/** What several runs read at the same time: the median, and the range from 5 to 95 % of them. */
export interface Readings {
  readonly values: ReadonlyArray<number | null>
  readonly band?: { readonly low: ReadonlyArray<number | null>; readonly high: ReadonlyArray<number | null> }
}

/** The readings of several runs, together; a point that fewer than half of them have is left out. */
export const across = (readings: ReadonlyArray<ReadonlyArray<number | null>>): Readings => {
  const [first = [], ...others] = readings
  if (others.length === 0) return { values: first }
  const points = Math.max(...readings.map(({ length }) => length))
  const spreads = Array.from({ length: points }, (_, n) => {
    const found = spreadOf(readings.map((values) => values[n]))
    return found === undefined || found.of * 2 < readings.length ? undefined : found
  })
  return {
    values: spreads.map((found) => found?.median ?? null),
    band: { low: spreads.map((found) => found?.low ?? null), high: spreads.map((found) => found?.high ?? null) }
  }
}

/** The sum of a count, per second. */
export const perSecond = <Bucket>(count: (bucket: Bucket) => number): Reading<Bucket> => (buckets, seconds) =>
  buckets.reduce((sum, bucket) => sum + count(bucket), 0) / seconds

/** The highest of the buckets; `null` when none has a value. */
export const highest = <Bucket>(value: (bucket: Bucket) => number | null): Reading<Bucket> => (buckets) =>
  buckets.reduce<number | null>((most, bucket) => {
    const one = value(bucket)
    return one === null || (most !== null && most > one) ? most : one
  }, null)

/** What the last bucket has. */
export const last = <Bucket>(value: (bucket: Bucket) => number | null): Reading<Bucket> => (buckets) =>
  value(buckets.at(-1)!)

/** The share of successes among the calls that ended in the buckets; `null` when none ended. */
export const successShare: Reading<Ended> = (buckets) => {
  const succeeded = buckets.reduce((sum, bucket) => sum + bucket.succeeded, 0)
  const ended = succeeded + buckets.reduce((sum, bucket) => sum + bucket.failed, 0)
  return ended === 0 ? null : succeeded / ended
}

/** Of the calls of all fleets that end at a time, the share that succeeds: in each run. */
const successes = (raster: Raster, { results }: Run): ReadonlyArray<ReadonlyArray<number | null>> =>
  results.map((result) =>
    read(raster, together(fleetsOf(result).map(({ series }) => series)), result.untilMillis, successShare)
  )

/** Of the calls of all fleets that end at a time, the share that succeeds: across the runs. */
export const successOf = (raster: Raster, run: Run): Readings => across(successes(raster, run))

/** The same on average: where runs differ, a median shows only one kind of them. */
export const meanSuccessOf = (raster: Raster, run: Run): ReadonlyArray<number | null> => {
  const all = successes(raster, run)
  return Array.from({ length: raster.points }, (_, n) => spreadOf(all.map((values) => values[n]))?.mean ?? null)
}

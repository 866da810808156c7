import type { Trace } from "./trace.ts"

/** Where a value lies, in milliseconds. */
export interface Spread {
  readonly minMillis: number
  readonly p50Millis: number
  readonly p99Millis: number
  readonly maxMillis: number
}

/** Calls whose random draws are at the extremes, in the middle, near the end, or from a seed. */
export interface Traces {
  readonly lowest: Trace
  readonly highest: Trace
  readonly p01: Trace
  readonly p50: Trace
  readonly p99: Trace
  readonly sampled: ReadonlyArray<Trace>
}

/** All of them. */
export const everyTrace = ({ highest, lowest, p01, p50, p99, sampled }: Traces): ReadonlyArray<Trace> => [
  lowest,
  highest,
  p01,
  p50,
  p99,
  ...sampled
]

/** The nearest-rank percentile of sorted values. */
const percentile = (sorted: ReadonlyArray<number>, share: number): number =>
  sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? NaN

/** The least of values; `Infinity` of none. */
export const least = (values: ReadonlyArray<number>): number => values.reduce((a, b) => Math.min(a, b), Infinity)

/** The greatest of non-negative values. */
export const greatest = (values: ReadonlyArray<number>): number => values.reduce((a, b) => Math.max(a, b), 0)

/** Percentiles of the samples, between the least and the greatest value of any call. */
export const spreadOf = (traces: Traces, valueOf: (trace: Trace) => number | undefined): Spread => {
  const values = (calls: ReadonlyArray<Trace>) => calls.map(valueOf).filter((value) => value !== undefined)
  const every = values(everyTrace(traces))
  const sampled = values(traces.sampled).sort((a, b) => a - b)
  return {
    minMillis: least(every),
    p50Millis: percentile(sampled, 0.5),
    p99Millis: percentile(sampled, 0.99),
    maxMillis: greatest(every)
  }
}

/** `1` when values never fall along the draws, `-1` when they never rise, `0` when they do both. */
const direction = (points: ReadonlyArray<readonly [draw: number, value: number]>): -1 | 0 | 1 => {
  const values = [...points].sort(([a], [b]) => a - b).map(([, value]) => value)
  if (values.every((value, n) => n === 0 || value >= values[n - 1]!)) return 1
  return values.every((value, n) => n === 0 || value <= values[n - 1]!) ? -1 : 0
}

/**
 * The delay of a retry, from 0. Where each call draws once for it at most, and no call with a greater draw has a shorter
 * delay (or none a longer one), the delay depends on that draw alone: then its percentiles are the delays at the draws
 * 0.5 and 0.99, and exact.
 */
export const delaySpread = (traces: Traces, retry: number): Spread & { readonly exact: boolean } => {
  const delayOf = (trace: Trace) => trace.retries[retry]?.delayMillis
  const spread = spreadOf(traces, delayOf)
  const made = everyTrace(traces).flatMap((trace) => trace.retries[retry] ?? [])
  const simple = made.every(({ draws }) => draws.length <= 1 && !Number.isNaN(draws[0]))
  const way = simple ? direction(made.map(({ delayMillis, draws }) => [draws[0] ?? 0, delayMillis])) : 0
  const p50Millis = delayOf(traces.p50)
  const p99Millis = delayOf(way === 1 ? traces.p99 : traces.p01)
  return way === 0 || p50Millis === undefined || p99Millis === undefined
    ? { ...spread, exact: false }
    : { ...spread, p50Millis, p99Millis, exact: true }
}

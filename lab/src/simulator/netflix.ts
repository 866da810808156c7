import type { Rule, Sample } from "effect-retry/ConcurrencyLimiter"
import type { Outcome } from "effect-retry/SendGate"
import type { Failure, FailureKind } from "./failure.ts"

/**
 * The limits of Netflix's concurrency-limits, with their names and defaults, for comparison: each fails completely in
 * fleets of some size, so the library has none of them. They update with every send.
 * Source: Netflix/concurrency-limits 78a74b98, `AIMDLimit`, `VegasLimit`, `Gradient2Limit` and `ExpAvgMeasurement`.
 */
const clamp = (value: number, least: number, most: number): number => Math.max(least, Math.min(most, value))

const drops: ReadonlySet<FailureKind> = new Set(["timeout", "unavailable", "overloaded", "throttled"])

/** What they count as a drop: also gRPC's `UNAVAILABLE` without a hint, as their `ConcurrencyLimitClientInterceptor` does. */
export const isDrop = ({ error }: Outcome): boolean => drops.has((error as Failure).kind)

/** The options of `AIMDLimit`. */
export interface AimdOptions {
  readonly initial?: number
  readonly min?: number
  readonly max?: number
  readonly backoffRatio?: number
  readonly timeoutMillis?: number
}

/** One more for a success while half of the limit is used, a tenth less for each drop and each send that took too long. */
export const aimd = (
  { backoffRatio = 0.9, initial = 20, max = 200, min = 20, timeoutMillis = 5000 }: AimdOptions = {}
): Rule<number> => ({
  initial,
  limit: (limit) => limit,
  next: (limit, { inFlight, outcome, rttMillis = 0 }) => {
    if (outcome !== "success" || rttMillis > timeoutMillis) return clamp(Math.floor(limit * backoffRatio), min, max)
    return clamp(inFlight * 2 >= limit ? limit + 1 : limit, min, max)
  }
})

/** The options of `VegasLimit`. Steps are functions of the whole limit. */
export interface VegasOptions {
  readonly initial?: number
  readonly max?: number
  readonly smoothing?: number
  readonly alpha?: number
  readonly beta?: number
  readonly decrease?: (limit: number) => number
}

/** The limit of {@link vegas} at a moment. */
export interface Vegas {
  readonly estimated: number
  /** The least time of a send; 0 before the first. */
  readonly leastMillis: number
  /** Samples since the least time was last reset. */
  readonly samples: number
  readonly probes: number
}

const log10 = (limit: number): number => Math.max(1, String(Math.floor(limit)).length - 1)

const probeMultiplier = 30

/** From 0.5 to 1. Random in the source; here evenly spread, so that the rule is a pure function. */
const probeJitter = (probes: number): number => 0.5 + (probes * 0.618_033_988_749_895 % 1) / 2

/** By how many sends wait at the service: fewer than alpha, and the limit grows; more than beta, and it shrinks. */
export const vegas = ({
  alpha,
  beta,
  decrease = (limit) => limit - log10(limit),
  initial = 20,
  max = 1000,
  smoothing = 1
}: VegasOptions = {}): Rule<Vegas> => {
  const wanted = (limit: number, queue: number, { inFlight, outcome }: Sample): number | undefined => {
    const step = log10(limit)
    const most = beta ?? 6 * step
    if (outcome !== "success") return decrease(limit)
    if (inFlight * 2 < limit) return undefined
    if (queue <= step) return limit + most
    if (queue < (alpha ?? 3 * step)) return limit + step
    return queue > most ? decrease(limit) : undefined
  }
  return {
    initial: { estimated: initial, leastMillis: 0, samples: 0, probes: 0 },
    limit: ({ estimated }) => Math.floor(estimated),
    next: (state, sample) => {
      const { estimated, leastMillis, probes } = state
      const { rttMillis = 0 } = sample
      if (rttMillis <= 0) return state
      const samples = state.samples + 1
      if (probeJitter(probes) * probeMultiplier * estimated <= samples) {
        return { estimated, leastMillis: rttMillis, samples: 0, probes: probes + 1 }
      }
      if (leastMillis === 0 || rttMillis < leastMillis) return { ...state, leastMillis: rttMillis, samples }
      const limit = wanted(estimated, Math.ceil(estimated * (1 - leastMillis / rttMillis)), sample)
      return limit === undefined
        ? { ...state, samples }
        : { ...state, samples, estimated: (1 - smoothing) * estimated + smoothing * clamp(limit, 1, max) }
    }
  }
}

/** A mean that gives later samples more weight, after a plain one of the first. */
export interface ExpAvg {
  readonly value: number
  readonly sum: number
  readonly count: number
}

export const nothingMeasured: ExpAvg = { value: 0, sum: 0, count: 0 }

/** The mean with one more sample. */
export const averaged = ({ count, sum, value }: ExpAvg, sample: number, window: number, warmup: number): ExpAvg => {
  if (count < warmup) return { value: (sum + sample) / (count + 1), sum: sum + sample, count: count + 1 }
  const weight = 2 / (window + 1)
  return { value: value * (1 - weight) + sample * weight, sum, count }
}

/** The limit of {@link gradient2} at a moment. */
export interface Gradient2 {
  readonly estimated: number
  readonly long: ExpAvg
}

const gradientDefaults = {
  initial: 20,
  min: 20,
  max: 200,
  smoothing: 0.2,
  queue: 4,
  window: 600,
  warmup: 10,
  tolerance: 1.5
}

/** By how much longer sends take than on a long average. A drop counts as any other sample. */
export const gradient2 = (options: Partial<typeof gradientDefaults> = {}): Rule<Gradient2> => {
  const { initial, max, min, queue, smoothing, tolerance, warmup, window } = { ...gradientDefaults, ...options }
  return {
    initial: { estimated: initial, long: nothingMeasured },
    limit: ({ estimated }) => Math.floor(estimated),
    next: (state, { inFlight, rttMillis = 0 }) => {
      if (rttMillis <= 0) return state
      const { estimated } = state
      const measured = averaged(state.long, rttMillis, window, warmup)
      const isStale = measured.value / rttMillis > 2
      const long = isStale ? { ...measured, value: measured.value * 0.95 } : measured
      if (inFlight < estimated / 2) return { estimated, long }
      const gradient = clamp(tolerance * measured.value / rttMillis, 0.5, 1)
      const wanted = estimated * (1 - smoothing) + (estimated * gradient + queue) * smoothing
      return { estimated: clamp(wanted, min, max), long }
    }
  }
}

/** The limits by name, with their defaults. */
export const published = { aimd, vegas, gradient2 }

/** The constants of the adaptive concurrency limit. */
export interface ConcurrencyConfig {
  readonly minimum: number
  readonly maximum: number
  readonly initial: number
  readonly increase: number
  readonly decrease: number
  readonly usedShare: number
  readonly minPauseMillis: number
  readonly maxPauseMillis: number
}

/** The state of a limit. */
export interface Concurrency {
  readonly limit: number
  /** Drops since the last success. */
  readonly drops: number
  /** The smoothed duration of successes, in milliseconds; 0 before the first timed one. */
  readonly meanMillis: number
  /** The duration of the last dropped send, in milliseconds; 0 before the first timed one. */
  readonly dropMillis: number
}

/** How a send that counts ended. */
export interface ConcurrencySample {
  readonly outcome: "success" | "drop"
  /** Sends in flight when it ended, including this one. */
  readonly inFlight: number
  /** Whether the limit was cut while it was in flight. */
  readonly overtaken: boolean
  /** How long it took, in milliseconds; `undefined` if not measured. */
  readonly rttMillis: number | undefined
}

export const initial = (config: ConcurrencyConfig): Concurrency => ({
  limit: config.initial,
  drops: 0,
  meanMillis: 0,
  dropMillis: 0
})

/** The weight of the latest success in the average. */
const smoothing = 0.1

const mean = (before: number, latest: number | undefined): number => {
  if (latest === undefined) return before
  return before === 0 ? latest : before + smoothing * (latest - before)
}

/** Grows only if enough of the limit is in use: an unused limit proves nothing. */
const grown = (
  state: Concurrency,
  config: ConcurrencyConfig,
  { inFlight, rttMillis }: ConcurrencySample
): Concurrency => {
  const isUsed = inFlight >= state.limit * config.usedShare
  const limit = isUsed ? Math.min(config.maximum, Math.max(1, state.limit + config.increase)) : state.limit
  const meanMillis = mean(state.meanMillis, rttMillis)
  return limit === state.limit && state.drops === 0 && meanMillis === state.meanMillis
    ? state
    : { limit, drops: 0, meanMillis, dropMillis: state.dropMillis }
}

/**
 * Cuts to a share of the sends in flight, once per round trip. Below one only after two drops with no success between
 * them.
 */
const cut = (state: Concurrency, config: ConcurrencyConfig, sample: ConcurrencySample): Concurrency => {
  if (sample.overtaken) return state
  const wanted = Math.max(config.minimum, config.decrease * Math.min(state.limit, sample.inFlight))
  return {
    limit: wanted < 1 && state.drops === 0 ? Math.min(state.limit, Math.max(1, config.minimum)) : wanted,
    drops: state.drops + 1,
    meanMillis: state.meanMillis,
    dropMillis: sample.rttMillis ?? state.dropMillis
  }
}

/** The limit after a send has ended. */
export const next = (state: Concurrency, config: ConcurrencyConfig, sample: ConcurrencySample): Concurrency =>
  sample.outcome === "success" ? grown(state, config, sample) : cut(state, config, sample)

/** How long to pause after a send while the limit is below 1, in milliseconds. `random` is from 0 to 1. */
export const pauseMillis = (state: Concurrency, config: ConcurrencyConfig, random: number): number => {
  if (state.limit >= 1) return 0
  const trip = Math.max(config.minPauseMillis, state.meanMillis, state.dropMillis)
  return Math.min(trip, config.maxPauseMillis) * (1 / state.limit - 1) * (0.5 + random)
}

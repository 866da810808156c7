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

/** The limit at a moment. */
export interface Concurrency {
  readonly limit: number
  /** Drops since the last success. */
  readonly drops: number
  /** The smoothed time of successes, in milliseconds; 0 before the first that was timed. */
  readonly meanMillis: number
  /** How long the last send took that was dropped, in milliseconds; 0 before the first that was timed. */
  readonly dropMillis: number
}

/** How a send ended that counts. */
export interface ConcurrencySample {
  readonly outcome: "success" | "drop"
  /** Sends in flight when it ended, itself included. */
  readonly inFlight: number
  /** Whether the limit was cut while it was in flight. */
  readonly overtaken: boolean
  /** How long it took, in milliseconds; `undefined` where that was not measured. */
  readonly rttMillis: number | undefined
}

export const initial = (config: ConcurrencyConfig): Concurrency => ({
  limit: config.initial,
  drops: 0,
  meanMillis: 0,
  dropMillis: 0
})

/** The weight of the latest success in the mean. */
const smoothing = 0.1

const mean = (before: number, latest: number | undefined): number => {
  if (latest === undefined) return before
  return before === 0 ? latest : before + smoothing * (latest - before)
}

/** Grows while at least a share of the limit is used: what nobody uses proves nothing. */
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

/** Cuts what is in flight, once a round trip. Below one only after two drops without a success between them. */
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

/** How long nothing is sent after a send while the limit is below 1, in milliseconds. `random` is from 0 to 1. */
export const pauseMillis = (state: Concurrency, config: ConcurrencyConfig, random: number): number => {
  if (state.limit >= 1) return 0
  const trip = Math.max(config.minPauseMillis, state.meanMillis, state.dropMillis)
  return Math.min(trip, config.maxPauseMillis) * (1 / state.limit - 1) * (0.5 + random)
}

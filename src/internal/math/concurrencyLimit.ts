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

/** How a send that counts ended. */
export interface ConcurrencySample {
  readonly outcome: "success" | "timeout" | "refusal"
  /** Sends in flight when it ended, including this one. */
  readonly inFlight: number
  /** Whether the limit was cut while it was in flight. */
  readonly overtaken: boolean
  /** How long it took, in milliseconds; `undefined` if not measured. */
  readonly rttMillis: number | undefined
}

/** The state before the first send. */
export const initial = (config: ConcurrencyConfig) => ({
  limit: config.initial,
  /** Drops since the last success. */
  drops: 0,
  /** The smoothed duration of successes, in milliseconds; 0 before the first timed one. */
  meanMillis: 0,
  /** The duration of the last dropped send, in milliseconds; 0 before the first timed one. */
  dropMillis: 0,
  /** Cuts by timeouts since the last success or refusal. */
  timeouts: 0,
  /** Whether the last row of them that has ended was a single one: it was random. */
  isStray: false,
  /**
   * How long the last send took that timed out and took longer than successes do, in milliseconds; 0 before the first
   * timeout, `Infinity` while there is none.
   */
  timeoutMillis: 0
})

/** The state of a limit. */
export type Concurrency = Readonly<ReturnType<typeof initial>>

/** The weight of the latest success in the average. */
const smoothing = 0.1

const mean = (before: number, latest: number | undefined): number => {
  if (latest === undefined) return before
  return before === 0 ? latest : before + smoothing * (latest - before)
}

/** From this share of the timeout on, successes are slow: the limit grows less. From the second on it grows least. */
const [slowShare, slowestShare] = [0.5, 0.65]

/**
 * What is always left of the increase, in each round trip of all that the limit allows: a short timeout of other sends
 * must not hold it down for good. Source: `docs/evidence/compared.md`; a share of every success costs `two-fleets` 3 points.
 */
const leastPerTrip = 0.4

/** What is left of the increase while successes take this long: 1, or less if they are slow. It cuts nothing. */
const calm = (limit: number, meanMillis: number, timeoutMillis: number): number => {
  if (timeoutMillis === 0) return 1
  const share = (slowestShare - meanMillis / timeoutMillis) / (slowestShare - slowShare)
  return Math.min(1, Math.max(leastPerTrip / limit, share))
}

/** Any answer ends a row of timeouts. */
export const answered = (state: Concurrency): Concurrency =>
  state.timeouts === 0 ? state : { ...state, timeouts: 0, isStray: state.timeouts === 1 }

/** Grows only if enough of the limit is in use: an unused limit proves nothing. */
const grown = (
  state: Concurrency,
  config: ConcurrencyConfig,
  { inFlight, rttMillis }: ConcurrencySample
): Concurrency => {
  const isUsed = inFlight >= state.limit * config.usedShare
  const meanMillis = mean(state.meanMillis, rttMillis)
  const timeoutMillis = meanMillis < state.timeoutMillis ? state.timeoutMillis : state.timeoutMillis && Infinity
  const increase = config.increase * calm(state.limit, meanMillis, timeoutMillis)
  const limit = isUsed ? Math.min(config.maximum, Math.max(1, state.limit + increase)) : state.limit
  return limit === state.limit && state.drops === 0 && meanMillis === state.meanMillis
    ? state
    : { ...answered(state), limit, drops: 0, meanMillis, timeoutMillis }
}

/**
 * Cuts to a share of the sends in flight, once per round trip. Below one only after two drops with no success between
 * them.
 */
const cut = (state: Concurrency, config: ConcurrencyConfig, sample: ConcurrencySample): Concurrency => {
  if (sample.overtaken) return state
  const wanted = Math.max(config.minimum, config.decrease * Math.min(state.limit, sample.inFlight))
  return {
    ...(sample.outcome === "timeout" ? timedOut(state, sample) : answered(state)),
    limit: wanted < 1 && state.drops === 0 ? Math.min(state.limit, Math.max(1, config.minimum)) : wanted,
    drops: state.drops + 1,
    dropMillis: sample.rttMillis ?? state.dropMillis
  }
}

/** A gateway's immediate 504, or a short timeout of other sends, is not the timeout of those that succeed. */
const timedOut = (state: Concurrency, { rttMillis = 0 }: ConcurrencySample): Concurrency => ({
  ...state,
  timeouts: state.timeouts + 1,
  timeoutMillis: rttMillis > state.meanMillis ? rttMillis : state.timeoutMillis || Infinity
})

/** The limit after a send has ended. */
export const next = (state: Concurrency, config: ConcurrencyConfig, sample: ConcurrencySample): Concurrency =>
  sample.outcome === "success" ? grown(state, config, sample) : cut(state, config, sample)

/**
 * A timeout says nothing about a retry this long after it. Source: `load-shedding` of `docs/evidence/compared.md`, which loses a
 * point with a third of it and 1,000 processes.
 */
const hopelessMillis = 30_000

/** After a timeout a retry only adds to an outage; where the last timeout was a random one, after the second in a row. */
export const admitsRetries = ({ isStray, timeouts }: Concurrency, sinceDropMillis: number): boolean =>
  timeouts < (isStray ? 2 : 1) || sinceDropMillis >= hopelessMillis

const longestWaitMillis = 250

/** How long to wait for a slot: a wait of more than a quarter of the timeout is better spent on a later call. */
export const maxWaitMillis = ({ timeoutMillis }: Concurrency): number =>
  timeoutMillis === 0 ? longestWaitMillis : Math.min(longestWaitMillis, timeoutMillis / 4)

/** How long to pause after a send while the limit is below 1, in milliseconds. `random` is from 0 to 1. */
export const pauseMillis = (state: Concurrency, config: ConcurrencyConfig, random: number): number => {
  if (state.limit >= 1) return 0
  const trip = Math.max(config.minPauseMillis, state.meanMillis, state.dropMillis)
  return Math.min(trip, config.maxPauseMillis) * (1 / state.limit - 1) * (0.5 + random)
}

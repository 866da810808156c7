import { tokenEpsilon } from "./bucket.ts"
import { cubeRoot } from "./portable.ts"

/** The constants of the CUBIC limiter, under their published names. Times in seconds. */
export interface CubicConfig {
  readonly beta: number
  readonly scaleConstant: number
  readonly smoothing: number
  readonly minFillRate: number
  readonly minCapacity: number
  readonly measurementBucketSeconds: number
  /** Others see to it that the rate is no more than twice what is measured. */
  readonly isMeasuredElsewhere?: boolean
}

/**
 * The state of a limiter, changed in place: a copy for each response would cost more than the rest of a send. Rates in
 * sends per second, times in seconds of a monotonic clock.
 */
export interface Cubic {
  enabled: boolean
  tokens: number
  maxTokens: number
  fillRate: number
  measuredTxRate: number
  lastMaxRate: number
  lastThrottleTime: number
  timeWindow: number
  lastTxRateBucket: number
  requestCount: number
  /** `-Infinity` until the first refill, which only stores the time. Always a number, so that storing it allocates nothing. */
  lastTimestamp: number
}

/** The state before the first response. */
export const initial = (config: CubicConfig, now: number): Cubic => ({
  enabled: false,
  tokens: 0,
  maxTokens: config.minCapacity,
  fillRate: config.minFillRate,
  measuredTxRate: 0,
  lastMaxRate: 0,
  lastThrottleTime: now,
  timeWindow: 0,
  lastTxRateBucket: Math.floor(now),
  requestCount: 0,
  lastTimestamp: -Infinity
})

/** Seconds until CUBIC returns to the rate it was throttled at. */
export const timeWindow = (config: CubicConfig, lastMaxRate: number): number =>
  cubeRoot((lastMaxRate * (1 - config.beta)) / config.scaleConstant)

/** The rate at `now`, if `lastMaxRate` was throttled at `lastThrottleTime`. */
export const cubicRate = (
  config: CubicConfig,
  { lastMaxRate, lastThrottleTime, timeWindow }: Pick<Cubic, "lastMaxRate" | "lastThrottleTime" | "timeWindow">,
  now: number
): number => {
  const since = now - lastThrottleTime - timeWindow
  return config.scaleConstant * since * since * since + lastMaxRate
}

/** Counts a response: the rate is that of the measuring bucket at its end, smoothed. */
const measure = (state: Cubic, config: CubicConfig, now: number): void => {
  const width = config.measurementBucketSeconds
  const bucket = Math.floor(now / width) * width
  state.requestCount++
  if (bucket <= state.lastTxRateBucket) return
  const current = state.requestCount / (bucket - state.lastTxRateBucket)
  state.measuredTxRate = current * config.smoothing + state.measuredTxRate * (1 - config.smoothing)
  state.lastTxRateBucket = bucket
  state.requestCount = 0
}

/** The tokens including those refilled since the last update, at the rate of that time. */
export const tokensAt = ({ fillRate, lastTimestamp, maxTokens, tokens }: Cubic, now: number): number =>
  lastTimestamp === -Infinity ? tokens : Math.min(maxTokens, tokens + Math.max(0, now - lastTimestamp) * fillRate)

/** Refills tokens at the current rate. A clock that goes backwards adds nothing. */
export const refill = (state: Cubic, now: number): void => {
  state.tokens = tokensAt(state, now)
  state.lastTimestamp = now
}

/** Sets the rate from now on. Tokens up to now were refilled at the old rate. */
const setRate = (state: Cubic, config: CubicConfig, rate: number, now: number): void => {
  const maxTokens = Math.max(rate, config.minCapacity)
  state.tokens = Math.min(tokensAt(state, now), maxTokens)
  state.maxTokens = maxTokens
  state.fillRate = Math.max(rate, config.minFillRate)
  state.lastTimestamp = now
}

/** The time of an event: never earlier than the last. */
const timeOf = (state: Cubic, now: number): number => Math.max(now, state.lastTimestamp)

/**
 * Records one response: measures the send rate, moves the rate along the CUBIC curve or down after a throttle, and
 * bounds it by twice the measured rate, unless that is measured elsewhere.
 */
export const update = (state: Cubic, config: CubicConfig, now: number, throttled: boolean): void => {
  const time = timeOf(state, now)
  measure(state, config, time)
  const { measuredTxRate } = state
  if (throttled) {
    state.lastMaxRate = state.enabled ? Math.min(measuredTxRate, state.fillRate) : measuredTxRate
    state.lastThrottleTime = time
    state.enabled = true
    aim(state, config)
  }
  const rate = throttled ? state.lastMaxRate * config.beta : cubicRate(config, state, time)
  setRate(state, config, config.isMeasuredElsewhere ? rate : Math.min(rate, 2 * measuredTxRate), time)
}

/** Computes the curve back to the last maximum: after a throttle, or if the constants are others. */
export const aim = (state: Cubic, config: CubicConfig): void => {
  state.timeWindow = timeWindow(config, state.lastMaxRate)
}

/** The state of a curve that is kept elsewhere, and since when. */
export type Curve = Pick<Cubic, "enabled" | "lastMaxRate" | "lastThrottleTime">

/** Continues along a curve that is kept elsewhere. */
export const follow = (state: Cubic, config: CubicConfig, curve: Curve, now: number): void => {
  const time = timeOf(state, now)
  state.enabled = curve.enabled
  state.lastMaxRate = curve.lastMaxRate
  state.lastThrottleTime = curve.lastThrottleTime
  aim(state, config)
  setRate(state, config, Math.max(config.minFillRate, cubicRate(config, state, time)), time)
}

/** Whether these tokens are enough for a send. */
export const isToken = (tokens: number): boolean => tokens + tokenEpsilon >= 1

/** Takes one send token from a refilled state. Returns `false` if there is none. */
export const take = (state: Cubic): boolean => {
  if (!isToken(state.tokens)) return false
  state.tokens = Math.max(0, state.tokens - 1)
  return true
}

/** Returns an unused token. */
export const putBack = (state: Cubic): void => {
  state.tokens = Math.min(state.maxTokens, state.tokens + 1)
}

/** Milliseconds until a refilled state has a token: 0 if it has, otherwise whole and at least 1. */
export const millisUntilToken = ({ fillRate, tokens }: Cubic): number => {
  const shortfall = 1 - tokens
  if (shortfall <= tokenEpsilon) return 0
  return Math.max(1, Math.ceil((shortfall / fillRate) * 1000 - tokenEpsilon))
}

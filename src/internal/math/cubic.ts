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

/** A snapshot of the limiter. Rates in sends per second, times in seconds of a monotonic clock. */
export interface Cubic {
  readonly enabled: boolean
  readonly tokens: number
  readonly maxTokens: number
  readonly fillRate: number
  readonly measuredTxRate: number
  readonly lastMaxRate: number
  readonly lastThrottleTime: number
  readonly timeWindow: number
  readonly lastTxRateBucket: number
  readonly requestCount: number
  /** `undefined` until the first refill, which only stores the time. */
  readonly lastTimestamp: number | undefined
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
  lastTimestamp: undefined
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

/** The rate at the end of a measuring bucket, smoothed; within a bucket it only counts. */
const measured = (state: Cubic, config: CubicConfig, now: number) => {
  const width = config.measurementBucketSeconds
  const bucket = Math.floor(now / width) * width
  const requestCount = state.requestCount + 1
  if (bucket <= state.lastTxRateBucket) {
    return { measuredTxRate: state.measuredTxRate, lastTxRateBucket: state.lastTxRateBucket, requestCount }
  }
  const current = requestCount / (bucket - state.lastTxRateBucket)
  return {
    measuredTxRate: current * config.smoothing + state.measuredTxRate * (1 - config.smoothing),
    lastTxRateBucket: bucket,
    requestCount: 0
  }
}

/** The CUBIC rate after a throttle at a measured rate (down by `beta`), or without one (along its curve). */
const calculated = (state: Cubic, config: CubicConfig, now: number, throttledAt: number | undefined) => {
  if (throttledAt !== undefined) {
    const lastMaxRate = state.enabled ? Math.min(throttledAt, state.fillRate) : throttledAt
    const window = timeWindow(config, lastMaxRate)
    return { rate: lastMaxRate * config.beta, lastMaxRate, lastThrottleTime: now, timeWindow: window, enabled: true }
  }
  const { enabled, lastMaxRate, lastThrottleTime } = state
  const window = timeWindow(config, lastMaxRate)
  const rate = cubicRate(config, { lastMaxRate, lastThrottleTime, timeWindow: window }, now)
  return { rate, lastMaxRate, lastThrottleTime, timeWindow: window, enabled }
}

/** Field by field: in Node 20 a spread takes 40 times as long. */
const withTokens = (state: Cubic, tokens: number, lastTimestamp: number | undefined): Cubic => ({
  enabled: state.enabled,
  tokens,
  maxTokens: state.maxTokens,
  fillRate: state.fillRate,
  measuredTxRate: state.measuredTxRate,
  lastMaxRate: state.lastMaxRate,
  lastThrottleTime: state.lastThrottleTime,
  timeWindow: state.timeWindow,
  lastTxRateBucket: state.lastTxRateBucket,
  requestCount: state.requestCount,
  lastTimestamp
})

/** The tokens including those refilled since the last update, at the rate of that time. */
const flowedIn = ({ fillRate, lastTimestamp, maxTokens, tokens }: Cubic, now: number): number =>
  lastTimestamp === undefined ? tokens : Math.min(maxTokens, tokens + Math.max(0, now - lastTimestamp) * fillRate)

/** Refills tokens at the current rate. A clock that goes backwards adds nothing. */
export const refill = (state: Cubic, now: number): Cubic => withTokens(state, flowedIn(state, now), now)

/**
 * Records one response: measures the send rate, moves the rate along the CUBIC curve or down after a throttle, and
 * bounds it by twice the measured rate, unless that is measured elsewhere. Tokens up to now were refilled at the old rate.
 */
export const update = (state: Cubic, config: CubicConfig, now: number, throttled: boolean): Cubic => {
  const time = Math.max(now, state.lastTimestamp ?? now)
  const measurement = measured(state, config, time)
  const { enabled, lastMaxRate, lastThrottleTime, rate, timeWindow } = calculated(
    state,
    config,
    time,
    throttled ? measurement.measuredTxRate : undefined
  )
  const newRate = config.isMeasuredElsewhere ? rate : Math.min(rate, 2 * measurement.measuredTxRate)
  const maxTokens = Math.max(newRate, config.minCapacity)
  return {
    enabled,
    tokens: Math.min(flowedIn(state, time), maxTokens),
    maxTokens,
    fillRate: Math.max(newRate, config.minFillRate),
    measuredTxRate: measurement.measuredTxRate,
    lastMaxRate,
    lastThrottleTime,
    timeWindow,
    lastTxRateBucket: measurement.lastTxRateBucket,
    requestCount: measurement.requestCount,
    lastTimestamp: time
  }
}

/** The state of a curve that is kept elsewhere, and since when. */
export type Curve = Pick<Cubic, "enabled" | "lastMaxRate" | "lastThrottleTime">

/** Continues along a curve that is kept elsewhere. Tokens up to now were refilled at the old rate. */
export const follow = (state: Cubic, config: CubicConfig, curve: Curve, now: number): Cubic => {
  const time = Math.max(now, state.lastTimestamp ?? now)
  const window = timeWindow(config, curve.lastMaxRate)
  const rate = Math.max(config.minFillRate, cubicRate(config, { ...curve, timeWindow: window }, time))
  const maxTokens = Math.max(rate, config.minCapacity)
  return {
    ...state,
    ...curve,
    timeWindow: window,
    tokens: Math.min(flowedIn(state, time), maxTokens),
    maxTokens,
    fillRate: rate,
    lastTimestamp: time
  }
}

/** Takes one send token from a refilled state, or returns `undefined` if there is none. */
export const take = (state: Cubic): Cubic | undefined =>
  state.tokens + tokenEpsilon < 1 ? undefined : withTokens(state, Math.max(0, state.tokens - 1), state.lastTimestamp)

/** Returns an unused token. */
export const putBack = (state: Cubic): Cubic =>
  withTokens(state, Math.min(state.maxTokens, state.tokens + 1), state.lastTimestamp)

/** Milliseconds until a refilled state has a token: 0 if it has, otherwise whole and at least 1. */
export const millisUntilToken = (state: Cubic): number => {
  const shortfall = 1 - state.tokens
  if (shortfall <= tokenEpsilon) return 0
  return Math.max(1, Math.ceil((shortfall / state.fillRate) * 1000 - tokenEpsilon))
}

import { cubeRoot } from "./portableMath.ts"
import { tokenEpsilon } from "./tokenBucket.ts"

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
 * The state before the first response. Rates in sends per second, times in seconds of a monotonic clock. A transition
 * returns another record, which shares the curve: only a throttle changes that.
 */
export const initial = (config: CubicConfig, now: number) => ({
  tokens: 0,
  maxTokens: config.minCapacity,
  fillRate: config.minFillRate,
  measuredTxRate: 0,
  lastTxRateBucket: Math.floor(now),
  /** Responses that the measured rate does not count yet. */
  requestCount: 0,
  /** `-Infinity` until the first refill, which only stores the time. */
  lastTimestamp: -Infinity,
  /** A curve, and since when it is followed. */
  curve: { enabled: false, lastMaxRate: 0, lastThrottleTime: now, timeWindow: 0 }
})

/** The state of a limiter. */
export type Cubic = Readonly<ReturnType<typeof initial>>

type Curve = Readonly<Cubic["curve"]>

/** What is worth saving of a state. Times in seconds. */
export type Saved =
  & Pick<Cubic, "tokens" | "fillRate" | "measuredTxRate">
  & Pick<Curve, "enabled" | "lastMaxRate">
  & { readonly sinceThrottle: number }

/** The state of a limiter that begins with what another one has learned. */
export const restored = (config: CubicConfig, saved: Saved, now: number): Cubic => {
  const { enabled, fillRate, lastMaxRate, measuredTxRate, sinceThrottle, tokens } = saved
  const maxTokens = Math.max(fillRate, config.minCapacity)
  return {
    ...initial(config, now),
    tokens: Math.min(tokens, maxTokens),
    maxTokens,
    fillRate: Math.max(fillRate, config.minFillRate),
    measuredTxRate,
    lastTimestamp: now,
    curve: aimed(config, { enabled, lastMaxRate, lastThrottleTime: now - sinceThrottle })
  }
}

/** Seconds until CUBIC returns to the rate it was throttled at. */
export const timeWindow = (config: CubicConfig, lastMaxRate: number): number =>
  cubeRoot((lastMaxRate * (1 - config.beta)) / config.scaleConstant)

/** A curve back to its last maximum. */
const aimed = (config: CubicConfig, { enabled, lastMaxRate, lastThrottleTime }: Omit<Curve, "timeWindow">): Curve => ({
  enabled,
  lastMaxRate,
  lastThrottleTime,
  timeWindow: timeWindow(config, lastMaxRate)
})

/** The rate at `now`, if `lastMaxRate` was throttled at `lastThrottleTime`. */
export const cubicRate = (
  config: CubicConfig,
  { lastMaxRate, lastThrottleTime, timeWindow }: Omit<Curve, "enabled">,
  now: number
): number => {
  const since = now - lastThrottleTime - timeWindow
  return config.scaleConstant * since * since * since + lastMaxRate
}

/** The tokens including those refilled since the last update, at the rate of that time. */
export const tokensAt = ({ fillRate, lastTimestamp, maxTokens, tokens }: Cubic, now: number): number =>
  lastTimestamp === -Infinity ? tokens : Math.min(maxTokens, tokens + Math.max(0, now - lastTimestamp) * fillRate)

/** Written out: a spread takes longer. */
const withTokens = (state: Cubic, tokens: number, lastTimestamp: number): Cubic => ({
  tokens,
  maxTokens: state.maxTokens,
  fillRate: state.fillRate,
  measuredTxRate: state.measuredTxRate,
  lastTxRateBucket: state.lastTxRateBucket,
  requestCount: state.requestCount,
  lastTimestamp,
  curve: state.curve
})

/** Refills tokens at the current rate. A clock that goes backwards adds nothing. */
export const refill = (state: Cubic, now: number): Cubic => withTokens(state, tokensAt(state, now), now)

/** The time of an event: never earlier than the last. */
const timeOf = (state: Cubic, now: number): number => Math.max(now, state.lastTimestamp)

/** The measured rate is that of the measuring bucket at its end, smoothed. */
const measured = (state: Cubic, config: CubicConfig, requestCount: number, bucket: number): number => {
  const current = requestCount / (bucket - state.lastTxRateBucket)
  return current * config.smoothing + state.measuredTxRate * (1 - config.smoothing)
}

/** The curve from a throttle on. */
const cut = ({ curve, fillRate }: Cubic, config: CubicConfig, measuredTxRate: number, now: number): Curve => {
  const lastMaxRate = curve.enabled ? Math.min(measuredTxRate, fillRate) : measuredTxRate
  return aimed(config, { enabled: true, lastMaxRate, lastThrottleTime: now })
}

/**
 * The state after one response: measures the send rate, moves the rate along the CUBIC curve or down after a throttle,
 * and bounds it by twice the measured rate, unless that is measured elsewhere.
 */
export const update = (state: Cubic, config: CubicConfig, now: number, throttled: boolean): Cubic => {
  const time = timeOf(state, now)
  const width = config.measurementBucketSeconds
  const bucket = Math.floor(time / width) * width
  const requestCount = state.requestCount + 1
  const isOver = bucket > state.lastTxRateBucket
  const measuredTxRate = isOver ? measured(state, config, requestCount, bucket) : state.measuredTxRate
  const curve = throttled ? cut(state, config, measuredTxRate, time) : state.curve
  const curved = throttled ? curve.lastMaxRate * config.beta : cubicRate(config, curve, time)
  const rate = config.isMeasuredElsewhere ? curved : Math.min(curved, 2 * measuredTxRate)
  const maxTokens = Math.max(rate, config.minCapacity)
  return {
    // Up to now they were refilled at the old rate.
    tokens: Math.min(tokensAt(state, time), maxTokens),
    maxTokens,
    fillRate: Math.max(rate, config.minFillRate),
    measuredTxRate,
    lastTxRateBucket: isOver ? bucket : state.lastTxRateBucket,
    requestCount: isOver ? 0 : requestCount,
    lastTimestamp: time,
    curve
  }
}

/** Computes the curve back to the last maximum, for other constants. */
export const aim = (state: Cubic, config: CubicConfig): Cubic => ({ ...state, curve: aimed(config, state.curve) })

/** Continues along a curve that is kept elsewhere. */
export const follow = (state: Cubic, config: CubicConfig, kept: Omit<Curve, "timeWindow">, now: number): Cubic => {
  const time = timeOf(state, now)
  const curve = aimed(config, kept)
  const fillRate = Math.max(config.minFillRate, cubicRate(config, curve, time))
  const maxTokens = Math.max(fillRate, config.minCapacity)
  return { ...withTokens(state, Math.min(tokensAt(state, time), maxTokens), time), maxTokens, fillRate, curve }
}

/** Whether these tokens are enough for a send. */
export const isToken = (tokens: number): boolean => tokens + tokenEpsilon >= 1

/** Refills tokens and takes one, which is there. */
export const take = (state: Cubic, now: number): Cubic => withTokens(state, Math.max(0, tokensAt(state, now) - 1), now)

/** Returns an unused token. */
export const putBack = (state: Cubic): Cubic =>
  withTokens(state, Math.min(state.maxTokens, state.tokens + 1), state.lastTimestamp)

/** Milliseconds until a refilled state has a token: 0 if it has, otherwise whole and at least 1. */
export const millisUntilToken = ({ fillRate, tokens }: Cubic): number => {
  const shortfall = 1 - tokens
  if (shortfall <= tokenEpsilon) return 0
  return Math.max(1, Math.ceil((shortfall / fillRate) * 1000 - tokenEpsilon))
}

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as AdaptiveRateLimiter from "../AdaptiveRateLimiter.ts"
import * as Cubic from "../internal/cubic.ts"
import { checks } from "../InvalidOption.ts"
import { monotonicMillis } from "../state/clock.ts"

/**
 * How a limiter for tests is made.
 *
 * @category models
 * @since 0.1.0
 */
export interface TestLimiterOptions extends AdaptiveRateLimiter.Options {
  /**
   * Begins as if the service had throttled just now and left this fill rate, in sends per second: a number of at least
   * `minFillRate`. Default: no throttle has been seen, and nothing is limited.
   */
  readonly fillRate?: number | undefined
  /** With a `fillRate`, the send tokens at the start: from 0 to the capacity that belongs to the rate. Default 0. */
  readonly tokens?: number | undefined
}

/** The limiter as a throttle leaves it that brings it to the fill rate. */
const throttledTo = (
  fillRate: number,
  now: number,
  { beta = 0.7, minCapacity = 1, minFillRate = 0.5, scaleConstant = 0.4, tokens = 0 }: TestLimiterOptions
): Cubic.Cubic => {
  const check = checks("testLimiter")
  check.between("fillRate", fillRate, minFillRate, Number.MAX_SAFE_INTEGER)
  const config = { beta, minCapacity, minFillRate, scaleConstant, smoothing: 0.8, measurementBucketSeconds: 0.5 }
  const maxTokens = Math.max(fillRate, minCapacity)
  const lastMaxRate = fillRate / beta
  return {
    ...Cubic.initial(config, now),
    enabled: true,
    tokens: check.between("tokens", tokens, 0, maxTokens),
    maxTokens,
    fillRate,
    measuredTxRate: lastMaxRate,
    lastMaxRate,
    timeWindow: Cubic.timeWindow(config, lastMaxRate),
    lastTimestamp: now
  }
}

/**
 * A limiter of its own whose state can be read with {@link limiterState}. It behaves as that of
 * `AdaptiveRateLimiter.layer`, and can begin throttled. Throws `InvalidOption` when an option is impossible.
 *
 * **Example** (Two sends a second)
 *
 * ```ts
 * const call = outcomes([ok(), ok()], { latency: "1 second" })
 * const sends = Effect.forEach([1, 2], () => attempt(call.send), { concurrency: 2 })
 * yield* sends.pipe(runToEnd, Effect.provide(testLimiter({ fillRate: 2 })))
 * call.timeline.expect("attempts at 500 ms, 1 s")
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const testLimiter = (options?: TestLimiterOptions): Layer.Layer<AdaptiveRateLimiter.AdaptiveRateLimiter> => {
  const made = AdaptiveRateLimiter.make(options)
  const fillRate = options?.fillRate
  if (fillRate === undefined) {
    if (options?.tokens !== undefined) checks("testLimiter").reject("tokens", options.tokens, "given with a fillRate")
    return Layer.effect(AdaptiveRateLimiter.AdaptiveRateLimiter, made)
  }
  const stateAt = (now: number) => throttledTo(fillRate, now, options ?? {})
  stateAt(0)
  return Layer.effect(
    AdaptiveRateLimiter.AdaptiveRateLimiter,
    Effect.flatMap(made, (limiter) =>
      Effect.clockWith((clock) =>
        Effect.sync(() => {
          // An engine begins unthrottled: only its own updates change its state, and only a test begins elsewhere.
          Reflect.set(limiter.engine ?? {}, "state", stateAt(monotonicMillis(clock) / 1000))
          return limiter
        })
      ))
  )
}

/**
 * The limiter now: among others its `fillRate`, and how many sends are `waiting`.
 *
 * @category getters
 * @since 0.1.0
 */
export const limiterState: Effect.Effect<
  AdaptiveRateLimiter.Snapshot,
  never,
  AdaptiveRateLimiter.AdaptiveRateLimiter
> = AdaptiveRateLimiter.snapshot

/**
 * An adaptive rate limiter for tests, which can start throttled.
 *
 * @since 0.1.0
 */

import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as AdaptiveRateLimiter from "../gates/AdaptiveRateLimiter.ts"
import { makeLimiter, type TestLimiterOptions } from "./internal/steadyLimiter.ts"

export type { TestLimiterOptions }

/**
 * Its own limiter, whose state can be read with {@link state}. It behaves like that of `AdaptiveRateLimiter.layer`, and
 * can start throttled. Throws `InvalidOption` when an option is invalid.
 *
 * **Example** (Two sends per second)
 *
 * ```ts
 * const call = outcomes([ok(), ok()], { latency: "1 second" })
 * const sends = Effect.forEach([1, 2], () => attempt(call.send), { concurrency: 2 })
 * yield* sends.pipe(runToEnd, Effect.provide(TestLimiter.layer({ fillRate: 2 })))
 * call.timeline.expect("attempts at 500 ms, 1 s")
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: TestLimiterOptions = {}): Layer.Layer<AdaptiveRateLimiter.AdaptiveRateLimiter> =>
  Layer.effect(AdaptiveRateLimiter.AdaptiveRateLimiter, makeLimiter(options))

/**
 * The limiter's current state, including its `fillRate` and how many sends are `waiting`.
 *
 * @category getters
 * @since 0.1.0
 */
export const state: Effect.Effect<
  AdaptiveRateLimiter.State,
  never,
  AdaptiveRateLimiter.AdaptiveRateLimiter
> = AdaptiveRateLimiter.state

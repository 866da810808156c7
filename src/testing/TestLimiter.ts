/**
 * An adaptive rate limiter for tests, which can begin throttled.
 *
 * @since 0.1.0
 */

import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as AdaptiveRateLimiter from "../AdaptiveRateLimiter.ts"
import { makeLimiter, type TestLimiterOptions } from "./internal/limiter.ts"

export type { TestLimiterOptions }

/**
 * A limiter of its own whose state can be read with {@link state}. It behaves as that of `AdaptiveRateLimiter.layer`, and
 * can begin throttled. Throws `InvalidOption` when an option is impossible.
 *
 * **Example** (Two sends a second)
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
export const layer = (options?: TestLimiterOptions): Layer.Layer<AdaptiveRateLimiter.AdaptiveRateLimiter> =>
  Layer.effect(AdaptiveRateLimiter.AdaptiveRateLimiter, makeLimiter(options ?? {}))

/**
 * The limiter now: among others its `fillRate`, and how many sends are `waiting`.
 *
 * @category getters
 * @since 0.1.0
 */
export const state: Effect.Effect<
  AdaptiveRateLimiter.Snapshot,
  never,
  AdaptiveRateLimiter.AdaptiveRateLimiter
> = AdaptiveRateLimiter.snapshot

/**
 * Adaptive mode: once the service throttles, the client slows down as a whole, first attempts included.
 *
 * The limiter measures the rate of sends. At a throttle it goes back to 0.7 of it, then up again along a CUBIC curve. It
 * holds sends back, or fails them at once with `RateLimitExceeded`, which `awsAdaptive` adds to the error type.
 */
import { Duration, Effect, Layer } from "effect"
import { AdaptiveRateLimiter, awsAdaptive, RetryQuota, withRetry } from "effect-retry"
import type { TableBusy } from "./errors-with-facts.ts"

type Send = Effect.Effect<string, TableBusy>

/** A batch job has time: its sends wait for their turn, first come, first served. */
export const layerWaiting = Layer.merge(RetryQuota.layer(), AdaptiveRateLimiter.layer())

export const put = (send: Send) => send.pipe(withRetry(awsAdaptive))

/** A web request has none: it would rather know at once, and tell its own client when to come back. */
export const layerFailing = Layer.merge(RetryQuota.layer(), AdaptiveRateLimiter.layer({ whenExceeded: "fail" }))

export const putOrBusy = (send: Send) =>
  put(send).pipe(
    Effect.catchTag("RateLimitExceeded", ({ retryAfter }) =>
      Effect.succeed(`busy, come back in ${Duration.format(retryAfter)}`))
  )

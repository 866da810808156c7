/**
 * Adaptive mode: once the service throttles, the client slows down as a
 * whole, first attempts included.
 *
 * The limiter measures the rate of sends. At a throttle it drops to 0.7
 * of it, then rises again along a CUBIC curve. It holds sends back, or
 * refuses them immediately: a first send fails with
 * `RateLimitExceeded`, which `awsAdaptive` adds to the error type; a
 * retry ends its call with the call's own error.
 */
import { Duration, Effect, Layer } from "effect"
import {
  AdaptiveRateLimiter,
  awsAdaptive,
  RetryQuota,
  withRetry
} from "effect-retry"
import { TableBusy } from "./errors-with-facts.ts"
import { main, show } from "./support/program.ts"

type Send = Effect.Effect<string, TableBusy>

/**
 * A batch job has time: its sends wait for their turn, first come,
 * first served.
 */
export const layerWaiting = Layer.merge(
  RetryQuota.layer(),
  AdaptiveRateLimiter.layer()
)

export const put = (send: Send) => send.pipe(withRetry(awsAdaptive))

/**
 * A web request has no time: it fails immediately, and tells its own
 * client when to come back.
 */
export const layerFailing = Layer.merge(
  RetryQuota.layer(),
  AdaptiveRateLimiter.layer({ onExceeded: "fail" })
)

export const putOrBusy = (send: Send) =>
  put(send).pipe(
    Effect.catchTag("RateLimitExceeded", ({ retryAfter }) =>
      Effect.succeed(
        `busy, try again in ${Duration.format(retryAfter)}`
      ))
  )

const busy = () => new TableBusy({ table: "orders" })

main(
  import.meta.url,
  show("waits for its turn", [busy(), busy()], put).pipe(
    Effect.provide(layerWaiting)
  ),
  show(
    "fails fast",
    [busy()],
    (send) =>
      Effect.andThen(Effect.ignore(putOrBusy(send)), putOrBusy(send))
  ).pipe(
    Effect.provide(layerFailing)
  )
)

/**
 * A throttle in front of a limit, for a fleet too thin for the limit
 * alone.
 *
 * A concurrency limit learns from its own sends. A process that sends
 * once in ten seconds learns too slowly, and a thousand of them
 * together keep a service down. A throttle counts what the service
 * accepts over ten seconds, and rejects at random what exceeds twice
 * that, at most nine in ten. In a fleet that is not thin it delays the
 * recovery by some seconds: leave it out there.
 */
import { Effect, Layer } from "effect"
import {
  awsStandard,
  RetryPolicy,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as ClientThrottle from "effect-retry/ClientThrottle"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import { main, showMany, Unavailable } from "./support/program.ts"

/**
 * It needs the throttle: a program without the layer does not compile.
 */
const policy = awsStandard.pipe(
  RetryPolicy.requires(ClientThrottle.ClientThrottle)
)

/**
 * One layer for one resource, provided once. The throttle is asked
 * before the limit.
 */
export const layer = Layer.mergeAll(
  RetryQuota.layer(),
  ConcurrencyLimiter.layer(),
  ClientThrottle.layer()
)

/**
 * What the throttle rejects was never sent: fall back to something
 * cheaper.
 */
export const loadOr = <A, E>(send: Effect.Effect<A, E>, otherwise: A) =>
  send.pipe(
    Effect.timeout("1 second"),
    withRetry(policy),
    Effect.catchTag("ClientThrottled", () => Effect.succeed(otherwise))
  )

const calls = { calls: 600, everyMillis: 50 }
const down = Effect.suspend(() => Effect.fail(new Unavailable()))

main(
  import.meta.url,
  showMany(
    "without a throttle",
    calls,
    down,
    (send) => send.pipe(withRetry(awsStandard))
  ),
  showMany(
    "with a throttle",
    calls,
    down,
    (send) => loadOr(send, "from the cache")
  ).pipe(Effect.provide(layer))
)

/**
 * A throttle in front of a limit, for a fleet too thin for the limit alone.
 *
 * A limit on what is in flight learns from its own sends. A process that sends once in ten seconds learns too slowly, and a
 * thousand of them together keep a service down. A throttle counts what the service accepts over ten seconds, and refuses
 * at random what exceeds twice that, at most nine in ten. It costs a fleet that is not thin some seconds of its recovery:
 * leave it out there.
 */
import { Effect, Layer } from "effect"
import { awsStandard, RetryQuota, withRetry } from "effect-retry"
import * as ClientThrottle from "effect-retry/ClientThrottle"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"

/** One layer for one resource, provided once. The throttle is asked before the limit. */
export const layer = Layer.mergeAll(RetryQuota.layer(), ConcurrencyLimiter.layer(), ClientThrottle.layer())

/** What the throttle refuses was never sent: something cheaper serves. */
export const loadOr = <A, E>(send: Effect.Effect<A, E>, otherwise: A) =>
  send.pipe(
    Effect.timeout("1 second"),
    withRetry(awsStandard),
    Effect.catchIf(
      (error): error is E & ClientThrottle.ClientThrottled => error instanceof ClientThrottle.ClientThrottled,
      () => Effect.succeed(otherwise)
    )
  )

/**
 * A limit on what is in flight: it ends the outage that retries only keep from growing.
 *
 * A service that has become slow answers when its callers have given up. All its work is wasted, and as long as the
 * callers go on sending, it stays so. The limit is cut when sends time out, so that the service catches up; it grows
 * again while sends succeed. What finds no slot within 250 milliseconds fails, never sent.
 */
import { Effect, Layer } from "effect"
import { awsStandard, RetryQuota, withRetry } from "effect-retry"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import { CurrentCriticality } from "effect-retry/Criticality"

/** One call, with its time-out inside: a send that times out is a sign of overload. */
export const load = <A, E>(send: Effect.Effect<A, E>) => send.pipe(Effect.timeout("1 second"), withRetry(awsStandard))

/** One layer for one resource, provided once. */
export const layer = Layer.merge(RetryQuota.layer(), ConcurrencyLimiter.layer())

/** A background job: when the limit is reached, others go first. */
export const reindex = <A, E>(send: Effect.Effect<A, E>) =>
  load(send).pipe(Effect.provideService(CurrentCriticality, "sheddable"))

/** A bulkhead: at most ten at a time, whatever happens. */
export const bulkhead = ConcurrencyLimiter.layer({ rule: ConcurrencyLimiter.fixed(10), whenFull: "fail" })

/** What a server says to one caller is heeded by all: nobody sends until its hint is over, then one, then more. */
export const polite = Layer.merge(layer, CoolDown.layer())

/**
 * A concurrency limit: it ends an outage that retries can only keep
 * from growing.
 *
 * A service that has become slow answers after its callers have given
 * up. All its work is wasted, and that continues as long as the callers
 * keep sending. The limit is cut when sends time out, so that the
 * service catches up; it grows again while sends succeed. A send that
 * finds no slot within a quarter of the timeout fails without being
 * sent.
 */
import { Effect, Layer, Stream } from "effect"
import {
  awsStandard,
  RetryInfo,
  RetryPolicy,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import { CurrentCriticality } from "effect-retry/Criticality"
import * as RetryStream from "effect-retry/RetryStream"
import * as Kit from "effect-retry/testing"
import { main, showMany } from "./support/program.ts"

/** It needs the limit: a program without the layer does not compile. */
const policy = awsStandard.pipe(
  RetryPolicy.requires(ConcurrencyLimiter.ConcurrencyLimiter)
)

/**
 * Its timeout is inside: a send that times out is a sign of overload.
 */
export const load = <A, E>(send: Effect.Effect<A, E>) =>
  send.pipe(Effect.timeout("1 second"), withRetry(policy))

/** One layer for one resource, provided once. */
export const layer = Layer.merge(
  RetryQuota.layer(),
  ConcurrencyLimiter.layer()
)

/** A write may still run after its timeout. */
class TooSlow extends RetryInfo.TaggedError("TooSlow", {
  timeout: true,
  safety: "Maybe"
}) {}

/**
 * A write is not repeated after its timeout, as it would be after
 * `Effect.timeout`. It is a sign of overload all the same.
 */
export const write = <A, E>(send: Effect.Effect<A, E>) =>
  send.pipe(
    Effect.timeoutOrElse({
      duration: "1 second",
      orElse: () => Effect.fail(new TooSlow())
    }),
    withRetry(policy)
  )

/** A background job: when the limit is reached, others go first. */
export const reindex = <A, E>(send: Effect.Effect<A, E>) =>
  load(send).pipe(
    Effect.provideService(CurrentCriticality, "sheddable")
  )

/** A bulkhead: never more than ten at a time. */
export const bulkhead = ConcurrencyLimiter.layer({
  rule: ConcurrencyLimiter.fixed(10),
  onExceeded: "fail"
})

/**
 * Opens a stream or a body, such as that of a response. Each attempt
 * holds its slot until it is read, or has failed.
 */
export const reading = Effect.map(
  ConcurrencyLimiter.make(),
  (limiter) => <A, E>(body: Stream.Stream<A, E>) =>
    Stream.unwrap(Effect.as(limiter.slot, body)).pipe(
      RetryStream.untilFirst(awsStandard)
    )
)

/**
 * A server's hint to one caller applies to all: no caller sends until
 * it is over, then one does, then more.
 */
export const polite = Layer.merge(layer, CoolDown.layer())

/**
 * A policy for it: a call whose hint is longer than the cool-down lets
 * it wait ends immediately. `awsStandard` alone would wait for up to
 * 20 seconds, and then be refused.
 */
export const prompt = policy.pipe(
  RetryPolicy.honorRetryAfter({ atMost: "2 seconds", beyond: "stop" })
)

/**
 * A service that answers 20 sends a second, the others later; it is
 * sent 25 calls a second for a minute.
 */
const busy = () =>
  Effect.as(Kit.service({ capacity: 20, overload: "slow" }).send, "ok")
const calls = { calls: 1500, everyMillis: 40 }

main(
  import.meta.url,
  showMany(
    "without a limit",
    calls,
    busy(),
    (send) =>
      send.pipe(Effect.timeout("1 second"), withRetry(awsStandard))
  ),
  showMany("with a limit", calls, busy(), (send) => load(send)).pipe(
    Effect.provide(layer)
  ),
  showMany(
    "a bulkhead of ten",
    { calls: 15 },
    Effect.delay(Effect.succeed("ok"), "500 millis"),
    load
  ).pipe(
    Effect.provide(bulkhead)
  )
)

/**
 * One send: its outcome is recorded, and its failures can be retried.
 *
 * A schedule only sees failures. It never sees a success, which refunds the quota, nor the first send, which a gate may
 * hold back. {@link attempt} sees every send, the schedule sees every failure, and together they are the whole retry loop
 * of the AWS reference.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { retrying } from "./engine/loop.ts"
import type { Parts } from "./engine/parts.ts"
import { partsIn } from "./engine/policy/policy.ts"
import { guarded } from "./engine/send.ts"
import { InsideCall, worldOf } from "./engine/world.ts"
import { checks } from "./internal/checks.ts"
import type { Stop } from "./RetryDecision.ts"

/**
 * Marks an effect as one send of a call: what a retry policy with a quota can retry.
 *
 * **Details**
 *
 * A success returns the tokens of its retry to the `RetryQuota`, or puts one in if it needed no retry. If the context
 * has gates, such as an `AdaptiveRateLimiter`, they are asked before the send and see its outcome. A defect or an
 * interruption counts neither as success nor as failure; a retry already sent by then is spent. The error is unchanged;
 * the mark on its type exists in types only.
 *
 * Attempts that race inside one retried effect share its reservation: the first to succeed returns it. Inside
 * `withRetry` an attempt adds nothing: the call around it accounts for it.
 *
 * **Gotchas**
 *
 * Wrap the whole call, once. A bare attempt in a fiber forked inside a send of `withRetry` that outlives it is taken
 * for part of that send: retry it there, or fork it outside. The result of `Effect.retry` carries the mark on its type
 * too, but is not an attempt: to retry it again, mark it again. A type cannot mark `null` and `undefined`: map such
 * errors to something else first. A limiter that fails fast makes attempts fail with `RateLimitExceeded`: use a policy
 * that says so in its type, such as `awsAdaptive`.
 *
 * **Example** (A call with the standard policy of AWS)
 *
 * ```ts
 * const program = Effect.retry(attempt(call), awsStandard)
 * Effect.runPromise(program.pipe(Effect.provide(RetryQuota.layer())))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const attempt = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.withFiber((fiber): any => {
    const { context } = fiber
    return Context.get(context, InsideCall) === undefined ? guarded(self, worldOf(context), fiber) : self
  })

/**
 * Retries an effect: the short form of `Effect.retry(attempt(self), policy)`, and the faster of the two.
 *
 * **Details**
 *
 * Decisions, delays, tokens and `Schedule.CurrentMetadata` are the same as with `Effect.retry`. The first attempt runs
 * bare: nothing is set up until it fails. A schedule that is not a `RetryPolicy` is lifted into one
 * (`RetryPolicy.fromSchedule`).
 *
 * **Example** (The short form)
 *
 * ```ts
 * const getItem = callDynamo.pipe(withRetry(awsStandard))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const withRetry: {
  <E2, Err, R2>(
    policy: Schedule.Schedule<unknown, E2, Err, R2>
  ): <A, E extends E2, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E | Err, R | R2>
  <A, E extends E2, R, E2, Err, R2>(
    self: Effect.Effect<A, E, R>,
    policy: Schedule.Schedule<unknown, E2, Err, R2>
  ): Effect.Effect<A, E | Err, R | R2>
} = (...args: ReadonlyArray<any>): any => {
  const parts = givenParts("withRetry", args[args.length - 1])
  return args.length > 1 ? retrying(args[0], parts) : (self: Effect.Effect<any, any, any>) => retrying(self, parts)
}

/**
 * Retries an effect, and when retrying stops continues with `orElse`, given the last error and the reason.
 *
 * **Example** (A fallback that knows why)
 *
 * ```ts
 * const order = callDynamo.pipe(
 *   withRetryOrElse(awsStandard, (error, { reason }) =>
 *     reason === "quota-exhausted" ? Effect.succeed("the order as it was") : Effect.fail(error))
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const withRetryOrElse: {
  <E2, Err, R2, E, A3, E3, R3>(
    policy: Schedule.Schedule<unknown, E2, Err, R2>,
    orElse: (error: E, stop: Stop) => Effect.Effect<A3, E3, R3>
  ): <A, R>(self: Effect.Effect<A, E & E2, R>) => Effect.Effect<A | A3, E3 | Err, R | R2 | R3>
  <A, E extends E2, R, E2, Err, R2, A3, E3, R3>(
    self: Effect.Effect<A, E, R>,
    policy: Schedule.Schedule<unknown, E2, Err, R2>,
    orElse: (error: E, stop: Stop) => Effect.Effect<A3, E3, R3>
  ): Effect.Effect<A | A3, E3 | Err, R | R2 | R3>
} = (...args: ReadonlyArray<any>): any => {
  const orElse = args[args.length - 1]
  const parts = givenParts("withRetryOrElse", args[args.length - 2])
  return args.length > 2
    ? retrying(args[0], parts, orElse)
    : (self: Effect.Effect<any, any, any>) => retrying(self, parts, orElse)
}

/** What a policy is made of, or a schedule lifted into one. */
const givenParts = (name: string, policy: any): Parts =>
  Schedule.isSchedule(policy)
    ? partsIn(policy)
    : checks(name).reject("policy", policy, "a schedule, such as awsStandard")

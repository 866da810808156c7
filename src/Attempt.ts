/**
 * Calls retried with a policy, and lone sends.
 *
 * `Effect.retry(call, policy)` needs nothing of this module. {@link withRetry} is its short form and the faster of the
 * two, {@link attempt} is for a send that no policy retries.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { CurrentScope, environmentOf } from "./engine/environment.ts"
import { retrying } from "./engine/loop.ts"
import { type AnySchedule, compiledIn } from "./engine/policy/policy.ts"
import { guarded } from "./engine/send.ts"
import { checks } from "./internal/checks.ts"
import type { Stop } from "./RetryDecision.ts"

/**
 * Accounts for a send that no policy retries.
 *
 * **Details**
 *
 * The gates of the context, such as an `AdaptiveRateLimiter`, are asked before the send and see its outcome. The
 * `RetryQuota` of the context, if any, gets its fee for a first send and a token for a success. A defect or an
 * interruption counts neither as success nor as failure. The error is unchanged.
 *
 * A retried effect is one send, for which its policy accounts: inside `withRetry`, or inside `Effect.retry` with a
 * policy, an attempt changes nothing. Under a schedule that is no policy, such as `Schedule.recurs(2)`, each send is a
 * lone one.
 *
 * **Gotchas**
 *
 * An attempt in a fiber forked inside a retried effect that outlives it is taken for part of that effect: fork it
 * outside. The type does not name the errors with which gates refuse a send: `SendGate.catchRefusal` catches them.
 *
 * **Example** (A send that the rate limiter holds back, and nothing retries)
 *
 * ```ts
 * const program = Effect.exit(attempt(call))
 * Effect.runPromise(program.pipe(Effect.provide(AdaptiveRateLimiter.layer())))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const attempt = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.withFiber((fiber): any => {
    const { context } = fiber
    return Context.get(context, CurrentScope) === undefined ? guarded(self, environmentOf(context), fiber) : self
  })

/** A combinator that takes its effect first or last, a policy, and perhaps what follows. The policy is checked immediately. */
const retryingBy = (name: string, options: 1 | 2) => (...args: ReadonlyArray<any>): any => {
  const policy = args.at(-options)
  const orElse = options === 2 ? args.at(-1) : undefined
  if (!Schedule.isSchedule(policy)) checks(name).reject("policy", policy, "a schedule, such as awsStandard")
  const compiled = compiledIn(policy as AnySchedule)
  const retried = (self: Effect.Effect<any, any, any>) => retrying(self, compiled, orElse)
  return args.length > options ? retried(args[0]) : retried
}

/**
 * Retries an effect: the short form of `Effect.retry(self, policy)`, and the faster of the two.
 *
 * **Details**
 *
 * Decisions, delays, tokens and `Schedule.CurrentMetadata` are the same as with `Effect.retry`. The first attempt runs
 * bare: nothing is set up until it fails. The policies of AWS and `httpStandard` need a quota: provide
 * `RetryQuota.layer()` once, around the program. A schedule that is not a `RetryPolicy` is lifted into one
 * (`RetryPolicy.fromSchedule`): like a bare `Backoff`, it retries every error for as long as it has delays.
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
} = /* @__PURE__ */ retryingBy("withRetry", 1)

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
} = /* @__PURE__ */ retryingBy("withRetryOrElse", 2)

/**
 * Retry policies: ordinary schedules whose parts can be composed, read and run fast.
 *
 * A policy is a `Schedule` for `Effect.retry`, and it is also data: where the delay comes from, what is done to it, and
 * what ends retrying. The combinators here add to that data, so a policy of ten combinators still decides in one step,
 * in this order: retryable, attempts, quota, delay, deadline. Whatever the order in which they were applied, a policy
 * that stops takes nothing from the quota and waits for nothing. Only combinators that change the delay apply in order:
 * a cap before jitter and a cap after it are both AWS behaviours, and differ.
 *
 * Effect's own schedule combinators work on policies too. A limit belongs inside, though: a policy does not see that a
 * condition around it, such as `Schedule.upTo`, has stopped the call, so its observer is not notified of the stop. The
 * tokens of the retry that is never sent go back when the fiber ends or makes another call, and one second after the
 * delay of the retry at the latest.
 *
 * @since 0.1.0
 */

import * as Duration from "effect/Duration"
import type * as Equal from "effect/Equal"
import { dual } from "effect/Function"
import * as Option from "effect/Option"
import type * as Random from "effect/Random"
import type * as Schedule from "effect/Schedule"
import type { AdaptiveRateLimiter, RateLimitExceeded } from "./AdaptiveRateLimiter.ts"
import { adjusted, capping, type Delay, type Failing, honoring, noDelay, spread } from "./engine/delay.ts"
import type { Parts } from "./engine/parts.ts"
import { jitterOf } from "./engine/policy/jitter.ts"
import * as Policy from "./engine/policy/policy.ts"
import { checks } from "./internal/checks.ts"
import { shared } from "./internal/shared.ts"
import { named, Opaque } from "./internal/words.ts"
import type { RetryDecision } from "./RetryDecision.ts"
import type { RetryInfo } from "./RetryInfo.ts"
import type { RetryQuota } from "./RetryQuota.ts"

/**
 * The key that marks a policy.
 *
 * @category guards
 * @since 0.1.0
 */
export const TypeId: TypeId = Policy.TypeId

/**
 * Type of {@link TypeId}.
 *
 * @category guards
 * @since 0.1.0
 */
export type TypeId = "~effect-retry/RetryPolicy"

/**
 * A failed attempt, as a function that is given to a policy sees it: a new, frozen record for each failure.
 *
 * @category models
 * @since 0.1.0
 */
export interface Failure {
  /** The error of the attempt. */
  readonly error: unknown
  /** The facts of the error; `undefined` when the classifier does not know it. */
  readonly info: RetryInfo | undefined
  /**
   * The attempts made so far, which is also the number of the retry to decide on. After `RetryGrpc.honorPushback` has
   * made the back-off begin anew, only those since then count.
   */
  readonly attempt: number
  /** The back-off of the retry before this one, before anything was done to it; zero before the first. */
  readonly previous: Duration.Duration
  /** The randomness of the fiber. */
  readonly random: Random.Random
}

/**
 * The mark that `attempt` leaves on the error type of an effect, and that a policy which books outcomes asks for. It
 * exists in types only. Its parameter is advice: the compiler prints it where the mark is missing.
 *
 * @category models
 * @since 0.1.0
 */
export interface Attempted<
  out Advice extends string = "wrap the call: Effect.retry(attempt(call), policy), or use withRetry"
> {
  readonly "~effect-retry/Attempted": Advice
}

/**
 * The JSON form of a policy: its source and the combinators around it, in the order in which `pipe` takes them.
 *
 * **Details**
 *
 * A step is the name of a combinator, such as `"whileRetryable"`, or its name and what it is given, such as
 * `{ "capped": "20 seconds" }`. Names are those of the API, without `Backoff.` and `RetryPolicy.` in front. Durations
 * are in words or milliseconds; no limit is `"Infinity"`. `RetryPolicyJson.fromJson` makes the policy again.
 *
 * @category models
 * @since 0.1.0
 */
export interface Json {
  readonly steps: ReadonlyArray<string | { readonly [step: string]: unknown }>
}

/**
 * A schedule that decides about failures of type `E`, needs the services `R`, and adds `Err` to what a call fails with.
 *
 * **Details**
 *
 * As a string it is the code that makes it, and `toJSON` is the same as JSON. Two policies are `Equal` when they are
 * made of the same steps in the same order; functions that were given to them are compared by identity.
 *
 * @category models
 * @since 0.1.0
 */
export interface RetryPolicy<in E = unknown, out R = never, out Err = never>
  extends Schedule.Schedule<RetryDecision, E, Err, R>, Equal.Equal
{
  readonly [TypeId]: unknown
  /** The policy as the code that makes it. A function shows as its name, a lifted schedule as `<schedule>`. */
  readonly toString: () => string
  /** The policy as JSON. A function shows as its name: it takes the function to read it again. */
  readonly toJSON: () => Json
}

/**
 * Checks whether a value is a `RetryPolicy`.
 *
 * @category guards
 * @since 0.1.0
 */
export const isRetryPolicy: (u: unknown) => u is RetryPolicy<never, unknown, unknown> = Policy.isPolicy as any

/** What a function of the user gets: nothing that is the library's own, and nothing that changes. */
const recordOf = ({ error, info, previousMillis, random, step }: Failing): Failure =>
  Object.freeze({ error, info, attempt: step, previous: Duration.millis(step === 1 ? 0 : previousMillis), random })

const millisOf = (delay: Duration.Input): number => {
  const millis = typeof delay === "number"
    ? delay
    : Duration.toMillis(Option.getOrElse(Duration.fromInput(delay), () => Duration.zero))
  return millis > 0 ? millis : 0
}

/** What a function of the user answers. */
const given = (delay: Duration.Input | undefined): number => delay === undefined ? noDelay : millisOf(delay)

/**
 * Makes a policy of a function from a failed attempt to the delay before its retry. `undefined` stops retrying with the
 * reason `"schedule"`; a delay that is negative or no duration counts as 0.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromDelay = (delay: (failure: Failure) => Duration.Input | undefined): RetryPolicy =>
  Policy.fromSource("RetryPolicy.fromDelay", named(delay), (failing) => given(delay(recordOf(failing))))

/**
 * Lifts any schedule into a policy: its delays are the policy's, and its end is the stop reason `"schedule"`. It costs
 * what the schedule costs.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromSchedule = <Output, E, Err, R>(
  schedule: Schedule.Schedule<Output, E, Err, R>
): RetryPolicy<E, R, Err> => Policy.fromSource("RetryPolicy.fromSchedule", new Opaque(schedule, "<schedule>"), schedule)

type Same = <E, R, Err>(self: RetryPolicy<E, R, Err>) => RetryPolicy<E, R, Err>

/**
 * Bounds every delay. Applied after jitter it bounds what jitter made, applied before it bounds what jitter starts from.
 *
 * **Gotchas**
 *
 * A cap after jitter gathers at the cap whatever jitter put beyond it, so that clients retry together again.
 *
 * @category delays
 * @since 0.1.0
 */
export const capped: {
  (cap: Duration.Input): Same
  <E, R, Err>(self: RetryPolicy<E, R, Err>, cap: Duration.Input): RetryPolicy<E, R, Err>
} = /* @__PURE__ */ Policy.combinator("RetryPolicy.capped", (check, cap) => {
  const capMillis = Math.ceil(check.positiveDuration("cap", cap))
  return Policy.adjusting(capping(capMillis))
}, "cap")

/**
 * How chance spreads delays, with `random` uniform in `[0, 1)`:
 *
 * - `"none"`: not at all;
 * - `"full"`: `delay * random`;
 * - `"equal"`: `delay / 2 + delay / 2 * random`;
 * - `{ proportional: p }`: `delay * (1 + p * (2 * random - 1))`, `p` from 0 to 1. Half of the delays at a cap exceed it
 *   and are cut to it: full and equal jitter spread them all.
 *
 * **Source**: Brooker, "Exponential Backoff and Jitter", AWS Architecture Blog, 2015, for full and equal jitter.
 *
 * @category models
 * @since 0.1.0
 */
export type Jitter = "none" | "full" | "equal" | { readonly proportional: number }

/**
 * Spreads every delay by chance, so that clients which failed together do not retry together.
 *
 * @category delays
 * @since 0.1.0
 */
export const jittered: {
  (jitter: Jitter): Same
  <E, R, Err>(self: RetryPolicy<E, R, Err>, jitter: Jitter): RetryPolicy<E, R, Err>
} = /* @__PURE__ */ Policy.combinator(
  "RetryPolicy.jittered",
  (check, jitter) => Policy.adjusting(spread(jitterOf(check, jitter))),
  "jitter"
)

/**
 * How far a server's hint is followed.
 *
 * @category models
 * @since 0.1.0
 */
export interface HonorOptions {
  /** The longest hint that is followed. Default: no such bound, only the overshoot. */
  readonly atMost?: Duration.Input | undefined
  /** How far a hint may lengthen the delay. Default 5 seconds, or no such bound when `atMost` is given. */
  readonly overshoot?: Duration.Input | undefined
  /** What becomes of a longer hint: it is cut, or retrying stops with `"retry-after-too-long"`. Default `"clamp"`. */
  readonly beyond?: "clamp" | "stop" | undefined
}

/**
 * Waits at least as long as the server asked.
 *
 * **Details**
 *
 * The delay becomes `max(delay, min(hint, atMost, delay + overshoot))`. A hint never shortens a delay, never makes an
 * error retryable, never passes a {@link deadline}. A later {@link capped} bounds it too.
 *
 * @category delays
 * @since 0.1.0
 */
export const honorRetryAfter: {
  (options?: HonorOptions): Same
  <E, R, Err>(self: RetryPolicy<E, R, Err>, options?: HonorOptions): RetryPolicy<E, R, Err>
} = /* @__PURE__ */ Policy.combinator("RetryPolicy.honorRetryAfter", (check, options: HonorOptions = {}) => {
  const atMost = check.duration("atMost", options.atMost, Infinity)
  const overshoot = check.duration("overshoot", options.overshoot, atMost === Infinity ? 5000 : Infinity)
  const stops = check.oneOf("beyond", options.beyond, ["clamp", "stop"], "clamp") === "stop"
  return Policy.adjusting(honoring(atMost, overshoot, stops))
})

/**
 * Changes every delay with a function, given the delay so far and the failed attempt. `undefined` stops retrying with
 * the reason `"schedule"`; an answer that is negative or no duration counts as 0. The quota has been asked before: what
 * was taken goes back when the function stops.
 *
 * **Example** (Twice as long after a time-out)
 *
 * ```ts
 * const policy = Backoff.fixed({ delay: "1 second" }).pipe(
 *   RetryPolicy.mapDelay((delay, { info }) => info?.timeout ? Duration.times(delay, 2) : delay)
 * )
 * ```
 *
 * @category delays
 * @since 0.1.0
 */
export const mapDelay: {
  (f: (delay: Duration.Duration, failure: Failure) => Duration.Input | undefined): Same
  <E, R, Err>(
    self: RetryPolicy<E, R, Err>,
    f: (delay: Duration.Duration, failure: Failure) => Duration.Input | undefined
  ): RetryPolicy<E, R, Err>
} = /* @__PURE__ */ Policy.combinator("RetryPolicy.mapDelay", (check, f) => {
  if (typeof f !== "function") check.reject("f", f, "a function from a delay and a failure to a delay")
  check.given.f = named(f)
  return Policy.adjusting((delayMillis, failing) => given(f(Duration.millis(delayMillis), recordOf(failing))))
}, "f")

/**
 * Stops after this many attempts, the first included: 1 means no retries. Of two limits the smaller holds.
 *
 * @category limits
 * @since 0.1.0
 */
export const maxAttempts: {
  (attempts: number): Same
  <E, R, Err>(self: RetryPolicy<E, R, Err>, attempts: number): RetryPolicy<E, R, Err>
} = /* @__PURE__ */ Policy.combinator("RetryPolicy.maxAttempts", (check, attempts) => {
  const limit = check.count("maxAttempts", attempts, 1)
  return ({ maxAttempts }) => ({ maxAttempts: Math.min(maxAttempts, limit) })
}, "maxAttempts")

/**
 * Retries only errors that the classifier knows and holds for safe to retry.
 *
 * @category limits
 * @since 0.1.0
 */
export const whileRetryable: Same = (self) =>
  Policy.extended(self, "RetryPolicy.whileRetryable", undefined, { whileRetryable: "yes" })

/**
 * Retries errors that the classifier knows, also those after which a retry is only `"Maybe"` safe: for operations that
 * may be carried out twice.
 *
 * @category limits
 * @since 0.1.0
 */
export const whileMaybeRetryable: Same = (self) =>
  Policy.extended(self, "RetryPolicy.whileMaybeRetryable", undefined, { whileRetryable: "maybe" })

/**
 * Stops when the retry would begin at the deadline or after it. The time counts from the beginning of the call, its
 * first attempt included, on the monotonic clock. Nothing is slept past it: no back-off, no wait for the quota, no wait
 * of a retry for its send token. An attempt that runs is not interrupted, nor is the wait of a first send: that is
 * `Effect.timeout`. Of two deadlines the earlier holds.
 *
 * @category limits
 * @since 0.1.0
 */
export const deadline: {
  (limit: Duration.Input): Same
  <E, R, Err>(self: RetryPolicy<E, R, Err>, limit: Duration.Input): RetryPolicy<E, R, Err>
} = /* @__PURE__ */ Policy.combinator("RetryPolicy.deadline", (check, limit) => {
  const millis = check.positiveDuration("deadline", limit)
  return ({ deadlineMillis }) => ({ deadlineMillis: Math.min(deadlineMillis, millis) })
}, "deadline")

/**
 * Takes every {@link deadline} away that the policy has so far.
 *
 * @category limits
 * @since 0.1.0
 */
export const withoutDeadline: Same = (self) =>
  Policy.extended(self, "RetryPolicy.withoutDeadline", undefined, { deadlineMillis: Infinity })

/**
 * Leaves retrying to the outermost call: inside an attempt of another call, whatever its policy, the first failure is
 * final (`"nested"`). So layers that all retry send as often as one, not as the product of them all.
 *
 * **Gotchas**
 *
 * From the first policy that is made so, attempts pay for a mark in their context.
 *
 * @category limits
 * @since 0.1.0
 */
export const outermostOnly: Same = (self) => {
  shared.nesting = true
  return Policy.extended(self, "RetryPolicy.outermostOnly", undefined, { outermostOnly: true })
}

/**
 * What a retry takes of the quota: finite numbers of at least 0.
 *
 * @category models
 * @since 0.1.0
 */
export interface QuotaOptions {
  /** Tokens that a retry takes. */
  readonly cost: number
  /** Tokens that a retry after a time-out takes. Default `cost`. */
  readonly timeoutCost?: number | undefined
  /** Tokens that a retry after a throttle takes. Default `cost`. */
  readonly throttlingCost?: number | undefined
  /** A call that the quota refuses to retry is held back for its delay before it fails. Default `false`. */
  readonly longPolling?: boolean | undefined
}

/**
 * Pays for every retry from the `RetryQuota`, and stops with `"quota-exhausted"` when there are too few tokens.
 *
 * **Details**
 *
 * The tokens come back when the retry succeeds and when it never leaves; they are spent when it fails. Only effects made
 * with `attempt` report that, so the policy takes no others. A cost above the quota's capacity is refused.
 *
 * @category limits
 * @since 0.1.0
 */
export const quotaGated: {
  (options: QuotaOptions): <E, R, Err>(
    self: RetryPolicy<E, R, Err>
  ) => RetryPolicy<E & Attempted, R | RetryQuota, Err>
  <E, R, Err>(
    self: RetryPolicy<E, R, Err>,
    options: QuotaOptions
  ): RetryPolicy<E & Attempted, R | RetryQuota, Err>
} = /* @__PURE__ */ Policy.combinator("RetryPolicy.quotaGated", (check, options: QuotaOptions) => {
  const cost = check.amount("cost", options.cost)
  const timeoutCost = check.amount("timeoutCost", options.timeoutCost, cost)
  const throttlingCost = check.amount("throttlingCost", options.throttlingCost, cost)
  const longPolling = options.longPolling === true
  if (longPolling) check.given.longPolling = true
  return () => ({ quota: { cost, timeoutCost, throttlingCost, longPolling } })
})

/**
 * Asks for an `AdaptiveRateLimiter`, which then holds back every send of the call, and may refuse one.
 *
 * @category limits
 * @since 0.1.0
 */
export const requiresRateLimiter: <E, R, Err>(
  self: RetryPolicy<E, R, Err>
) => RetryPolicy<E & Attempted, R | AdaptiveRateLimiter, Err | RateLimitExceeded> = (self) =>
  Policy.extended(self, "RetryPolicy.requiresRateLimiter", undefined, { adaptive: true })

/**
 * Uses the delays of another policy after a throttle: its source and what is done to it. The number of the retry keeps
 * counting through both.
 *
 * @category delays
 * @since 0.1.0
 */
export const whenThrottled: {
  (that: RetryPolicy): Same
  <E, R, Err>(self: RetryPolicy<E, R, Err>, that: RetryPolicy): RetryPolicy<E, R, Err>
} = /* @__PURE__ */ dual(2, <E, R, Err>(self: RetryPolicy<E, R, Err>, that: RetryPolicy): RetryPolicy<E, R, Err> => {
  const throttling = delayOf("that", Policy.partsOf(that))
  return Policy.extended(self, "RetryPolicy.whenThrottled", that, (parts: Parts) => {
    const ordinary = delayOf("self", parts)
    return { source: (failure: Failing) => (failure.info?.throttling ? throttling : ordinary)(failure), adjusts: [] }
  })
})

const delayOf = (field: string, { adjusts, source }: Parts): Delay =>
  typeof source === "function"
    ? (failing) => adjusted(adjusts, source(failing), failing)
    : checks("RetryPolicy.whenThrottled").reject(field, "a lifted schedule", "a policy whose delays are functions")

/**
 * The limits of a policy.
 *
 * @category models
 * @since 0.1.0
 */
export interface Limits {
  /** Attempts of a call, the first included; `Infinity` without a limit. */
  readonly maxAttempts: number
  /** From the beginning of a call to the last moment at which a retry may begin; infinite without a deadline. */
  readonly deadline: Duration.Duration
  /** What a retry takes of the quota; `undefined` when it takes nothing. */
  readonly quota: Required<QuotaOptions> | undefined
  /** Whether the policy asks for an `AdaptiveRateLimiter`. */
  readonly requiresRateLimiter: boolean
}

/**
 * Reads the limits of a policy, whatever the order in which they were applied.
 *
 * @category getters
 * @since 0.1.0
 */
export const limits = (self: RetryPolicy<any, any, any>): Limits => {
  const { adaptive, deadlineMillis, maxAttempts, quota } = Policy.partsOf(self)
  return { maxAttempts, deadline: Duration.millis(deadlineMillis), quota, requiresRateLimiter: adaptive }
}

/**
 * Retry policies: ordinary schedules that can be composed, printed and run fast.
 *
 * A policy is a `Schedule` for `Effect.retry`, and it is also data: the source of the delay, the changes to it, and the
 * limits. The combinators here add to that data, so a policy of ten combinators still decides in one step, in this
 * order: retryable, attempts, quota, delay, deadline. A policy that stops keeps nothing from the quota, in whatever
 * order its combinators were applied.
 *
 * Combinators that change the delay apply in order: AWS uses both a cap before jitter and a cap after it, and they
 * differ. Limits of different kinds may come in any order. Of two of one kind, the smaller of `maxAttempts` and the
 * earlier `deadline` apply, but the last `quotaGated`, and the last of `whileRetryable` and `whileMaybeRetryable`.
 * `withoutDeadline` removes the deadlines before it.
 *
 * Effect's own schedule combinators work on policies too. But put limits inside: a policy does not see that a condition
 * around it, such as `Schedule.upTo`, has stopped the call, so its observer is not notified of the stop. The tokens of
 * a retry that is never sent go back when the fiber ends or makes another call, and at the latest one second after the
 * delay of the retry.
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
import { choosing, following, joining } from "./engine/policy/joined.ts"
import * as Policy from "./engine/policy/policy.ts"
import { checks } from "./internal/checks.ts"
import { shared } from "./internal/shared.ts"
import { named } from "./internal/words.ts"
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
 * A failed attempt, as passed to the functions of a policy: a new, frozen record for each failure.
 *
 * @category models
 * @since 0.1.0
 */
export interface Failure<out E = unknown> {
  /** The error of the attempt. */
  readonly error: E
  /** The facts of the error; `undefined` if the classifier does not know it. */
  readonly info: RetryInfo | undefined
  /**
   * The attempts made so far, which is also the number of the retry to decide on. After `RetryGrpc.honorPushback`
   * resets the backoff, only attempts since then count.
   */
  readonly attempt: number
  /** The backoff of the previous retry, before combinators changed it; zero before the first. */
  readonly previous: Duration.Duration
  /** The fiber's source of randomness. */
  readonly random: Random.Random
}

/**
 * The JSON form of a policy: its source and the combinators around it, in the order of the `pipe`.
 *
 * **Details**
 *
 * A step is the name of a combinator, such as `"whileRetryable"`, or its name and argument, such as
 * `{ "capped": "20 seconds" }`. Names are those of the API, without `Backoff.` and `RetryPolicy.` in front. Durations
 * are strings or milliseconds; no limit is `"Infinity"`. `RetryPolicyJson.fromJson` rebuilds the policy.
 *
 * @category models
 * @since 0.1.0
 */
export interface Json {
  readonly steps: ReadonlyArray<string | { readonly [step: string]: unknown }>
}

/**
 * A schedule that decides about failures of type `E`, needs the services `R`, and adds `Err` to the errors of a call.
 *
 * **Details**
 *
 * As a string it is the code that makes it, and `toJSON` gives the same as JSON. Two policies are `Equal` if they are
 * made of the same steps in the same order; functions in them are compared by identity.
 *
 * @category models
 * @since 0.1.0
 */
export interface RetryPolicy<in E = unknown, out Err = never, out R = never>
  extends Schedule.Schedule<RetryDecision, E, Err, R>, Equal.Equal
{
  readonly [TypeId]: unknown
  /** The policy as the code that makes it. A function shows as its name, a lifted schedule as `<schedule>`. */
  readonly toString: () => string
  /** The policy as JSON. A function shows as its name: reading it back requires that function. */
  readonly toJSON: () => Json
}

/**
 * Checks whether a value is a `RetryPolicy`.
 *
 * @category guards
 * @since 0.1.0
 */
export const isRetryPolicy: (u: unknown) => u is RetryPolicy<never, unknown, unknown> = Policy.isPolicy as any

/** What a user's function gets: no internals, and nothing mutable. */
const recordOf = ({ error, info, previousMillis, random, step }: Failing): Failure<any> =>
  Object.freeze({ error, info, attempt: step, previous: Duration.millis(step === 1 ? 0 : previousMillis), random })

const millisOf = (delay: Duration.Input): number => {
  const millis = typeof delay === "number"
    ? delay
    : Duration.toMillis(Option.getOrElse(Duration.fromInput(delay), () => Duration.zero))
  return millis > 0 ? millis : 0
}

/** Milliseconds of the delay that a user's function returns. */
const given = (delay: Duration.Input | undefined): number => delay === undefined ? noDelay : millisOf(delay)

/**
 * Makes a policy from a function of the failed attempt that returns the delay before its retry. `undefined` stops
 * retrying with the reason `"schedule"`; a negative or invalid delay counts as 0.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromDelay = <E = unknown>(delay: (failure: Failure<E>) => Duration.Input | undefined): RetryPolicy<E> =>
  Policy.fromSource("RetryPolicy.fromDelay", named(delay), (failing) => given(delay(recordOf(failing))))

/**
 * Lifts any schedule into a policy: its delays are the policy's, and its end is the stop reason `"schedule"`. It is as
 * slow as the schedule.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromSchedule = <Output, E, Err, R>(
  schedule: Schedule.Schedule<Output, E, Err, R>
): RetryPolicy<E, Err, R> => Policy.lifted(schedule)

type Same = <E, Err, R>(self: Schedule.Schedule<unknown, E, Err, R>) => RetryPolicy<E, Err, R>

/**
 * Bounds every delay: the final delay if applied after jitter, the delay that jitter starts from if applied before.
 *
 * **Gotchas**
 *
 * With a cap after jitter, all delays above it collapse to the cap, so clients retry together again.
 *
 * @category delays
 * @since 0.1.0
 */
export const capped: {
  (cap: Duration.Input): Same
  <E, Err, R>(self: Schedule.Schedule<unknown, E, Err, R>, cap: Duration.Input): RetryPolicy<E, Err, R>
} = /* @__PURE__ */ Policy.combinator("RetryPolicy.capped", (check, cap) => {
  const capMillis = Math.ceil(check.positiveDuration("cap", cap))
  return Policy.adjusting(capping(capMillis))
}, "cap")

/**
 * How delays are randomized, with `random` uniform in `[0, 1)`:
 *
 * - `"none"`: not at all;
 * - `"full"`: `delay * random`;
 * - `"equal"`: `delay / 2 + delay / 2 * random`;
 * - `{ proportional: p }`: `delay * (1 + p * (2 * random - 1))`, `p` from 0 to 1. At a cap, half of the delays exceed
 *   it and are cut to it: full and equal jitter spread them all.
 *
 * **Source**: Brooker, "Exponential Backoff and Jitter", AWS Architecture Blog, 2015, for full and equal jitter.
 *
 * @category models
 * @since 0.1.0
 */
export type Jitter = "none" | "full" | "equal" | { readonly proportional: number }

/**
 * Randomizes every delay, so that clients that failed together do not retry together.
 *
 * @category delays
 * @since 0.1.0
 */
export const jittered: {
  <E, Err, R>(self: Schedule.Schedule<unknown, E, Err, R>): RetryPolicy<E, Err, R>
  (jitter: Jitter): Same
  <E, Err, R>(self: Schedule.Schedule<unknown, E, Err, R>, jitter: Jitter): RetryPolicy<E, Err, R>
} = /* @__PURE__ */ Policy.combinator(
  "RetryPolicy.jittered",
  (check, jitter) => Policy.adjusting(spread(jitterOf(check, jitter))),
  "jitter",
  "full"
)

/**
 * How far to follow a server's hint.
 *
 * @category models
 * @since 0.1.0
 */
export interface HonorOptions {
  /** The longest hint to follow. Default: no such bound, only the overshoot. */
  readonly atMost?: Duration.Input | undefined
  /** How far a hint may lengthen the delay. Default 5 seconds, or no such bound if `atMost` is given. */
  readonly overshoot?: Duration.Input | undefined
  /** What to do with a longer hint: cut it, or stop retrying with `"retry-after-too-long"`. Default `"clamp"`. */
  readonly beyond?: "clamp" | "stop" | undefined
}

/**
 * Waits at least as long as the server asked.
 *
 * **Details**
 *
 * The delay becomes `max(delay, min(hint, atMost, delay + overshoot))`. A hint never shortens a delay, never makes an
 * error retryable, never exceeds a {@link deadline}. A later {@link capped} bounds it too.
 *
 * @category delays
 * @since 0.1.0
 */
export const honorRetryAfter: {
  (options?: HonorOptions): Same
  <E, Err, R>(self: Schedule.Schedule<unknown, E, Err, R>, options?: HonorOptions): RetryPolicy<E, Err, R>
} = /* @__PURE__ */ Policy.combinator("RetryPolicy.honorRetryAfter", (check, options: HonorOptions) => {
  const atMost = check.duration("atMost", options.atMost, Infinity)
  const overshoot = check.duration("overshoot", options.overshoot, atMost === Infinity ? 5000 : Infinity)
  const stops = check.oneOf("beyond", options.beyond, ["clamp", "stop"], "clamp") === "stop"
  return Policy.adjusting(honoring(atMost, overshoot, stops))
})

type AnySchedule = Schedule.Schedule<unknown, any, any, any>
type InputOf<S> = S extends Schedule.Schedule<any, infer E, any, any> ? E : never
type ErrorOf<S> = S extends Schedule.Schedule<any, any, infer Err, any> ? Err : never
type EnvOf<S> = S extends Schedule.Schedule<any, any, any, infer R> ? R : never
/** What all of them take: in a parameter's place, so that `unknown` does not swallow the others. */
type AllOf<S> = (S extends unknown ? (_: InputOf<S>) => void : never) extends (_: infer I) => void ? I : never
type Joined<Of extends ReadonlyArray<AnySchedule>> = RetryPolicy<
  AllOf<Of[number]>,
  ErrorOf<Of[number]>,
  EnvOf<Of[number]>
>

/** Retries if all would: after the longest delay, at the dearest cost, once. */
export const max = <const Of extends ReadonlyArray<AnySchedule>>(of: Of): Joined<Of> => joined("max", of)

/** Retries if any would: after the shortest delay, at the cheapest cost of those that would. */
export const min = <const Of extends ReadonlyArray<AnySchedule>>(of: Of): Joined<Of> => joined("min", of)

/** One, and when it stops the other, which begins then. */
export const concat: {
  <E2, Err2, R2>(
    that: Schedule.Schedule<unknown, E2, Err2, R2>
  ): <E, Err, R>(self: Schedule.Schedule<unknown, E, Err, R>) => RetryPolicy<E & E2, Err | Err2, R | R2>
  <E, Err, R, E2, Err2, R2>(
    self: Schedule.Schedule<unknown, E, Err, R>,
    that: Schedule.Schedule<unknown, E2, Err2, R2>
  ): RetryPolicy<E & E2, Err | Err2, R | R2>
} = /* @__PURE__ */ dual(2, (self: AnySchedule, that: AnySchedule): any => joined("concat", [self, that]))

/** Several schedules as one policy. */
const joined = (op: "max" | "min" | "concat", of: ReadonlyArray<AnySchedule>): any => {
  const parts = of.map(Policy.partsIn)
  return Policy.fromSource(
    `RetryPolicy.${op}`,
    of.map(Policy.lifted),
    op === "concat" ? following(parts) : joining(op, parts)
  )
}

/** The policy that a failure chooses. They count failures together. */
export const choose = <E, S extends AnySchedule>(
  policy: (failure: Failure<E>) => S
): RetryPolicy<E & AllOf<S>, ErrorOf<S>, EnvOf<S>> =>
  Policy.fromSource(
    "RetryPolicy.choose",
    named(policy),
    choosing((failing) => Policy.partsIn(policy(recordOf(failing))))
  )

/** Retries only failures of which this holds; stops with "condition" before the quota is asked. */
const while_: {
  <E>(
    holds: (failure: Failure<E>) => boolean
  ): <E1 extends E, Err, R>(self: Schedule.Schedule<unknown, E1, Err, R>) => RetryPolicy<E1 & E, Err, R>
  <E, Err, R>(
    self: Schedule.Schedule<unknown, E, Err, R>,
    holds: (failure: Failure<E>) => boolean
  ): RetryPolicy<E, Err, R>
} = /* @__PURE__ */ dual(
  2,
  (self: any, holds: any): any =>
    Policy.extended(self, "RetryPolicy.while", named(holds), (parts: Parts) => ({
      conditions: [...parts.conditions ?? [], (failing: Failing) => holds(recordOf(failing))]
    }))
)
export { while_ as while }

/**
 * Changes every delay with a function of the delay so far and the failed attempt. `undefined` stops retrying with the
 * reason `"schedule"`; a negative or invalid delay counts as 0. The quota has been asked before: if the function stops,
 * the tokens go back.
 *
 * **Example** (Twice as long after a timeout)
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
  <E, Err, R>(
    self: Schedule.Schedule<unknown, E, Err, R>,
    f: (delay: Duration.Duration, failure: Failure) => Duration.Input | undefined
  ): RetryPolicy<E, Err, R>
} = /* @__PURE__ */ Policy.combinator("RetryPolicy.mapDelay", (check, f) => {
  if (typeof f !== "function") check.reject("f", f, "a function from a delay and a failure to a delay")
  check.given.f = named(f)
  return Policy.adjusting((delayMillis, failing) => given(f(Duration.millis(delayMillis), recordOf(failing))))
}, "f")

/**
 * Stops after this many attempts, the first included: 1 means no retries. Of two limits, the smaller applies.
 *
 * @category limits
 * @since 0.1.0
 */
export const maxAttempts: {
  (attempts: number): Same
  <E, Err, R>(self: Schedule.Schedule<unknown, E, Err, R>, attempts: number): RetryPolicy<E, Err, R>
} = /* @__PURE__ */ Policy.combinator("RetryPolicy.maxAttempts", (check, attempts) => {
  const limit = check.count("maxAttempts", attempts, 1)
  return ({ maxAttempts }) => ({ maxAttempts: Math.min(maxAttempts, limit) })
}, "maxAttempts")

/**
 * Retries only errors that the classifier reports as safe to retry.
 *
 * @category limits
 * @since 0.1.0
 */
export const whileRetryable: Same = (self) =>
  Policy.extended(self, "RetryPolicy.whileRetryable", undefined, { whileRetryable: "yes" })

/**
 * Retries errors that the classifier knows, including those after which a retry is only `"Maybe"` safe: for operations
 * that can run twice.
 *
 * @category limits
 * @since 0.1.0
 */
export const whileMaybeRetryable: Same = (self) =>
  Policy.extended(self, "RetryPolicy.whileMaybeRetryable", undefined, { whileRetryable: "maybe" })

/**
 * Stops if the retry would begin at the deadline or later, also because a timer is late. The time counts from the start
 * of the call, first attempt included, on the monotonic clock. No sleep goes past it: no backoff, no wait for the quota,
 * no wait of a retry for its send token. A running attempt is not interrupted, nor is the wait of a first send: use
 * `Effect.timeout` for that. Of two deadlines, the earlier applies.
 *
 * @category limits
 * @since 0.1.0
 */
export const deadline: {
  (limit: Duration.Input): Same
  <E, Err, R>(self: Schedule.Schedule<unknown, E, Err, R>, limit: Duration.Input): RetryPolicy<E, Err, R>
} = /* @__PURE__ */ Policy.combinator("RetryPolicy.deadline", (check, limit) => {
  const millis = check.positiveDuration("deadline", limit)
  return ({ deadlineMillis }) => ({ deadlineMillis: Math.min(deadlineMillis, millis) })
}, "deadline")

/**
 * Removes every {@link deadline} that the policy has so far.
 *
 * @category limits
 * @since 0.1.0
 */
export const withoutDeadline: Same = (self) =>
  Policy.extended(self, "RetryPolicy.withoutDeadline", undefined, { deadlineMillis: Infinity })

/**
 * Leaves retrying to the outermost call: inside an attempt of another call, under any policy, the first failure is
 * final (`"nested"`). So nested layers that all retry make as many sends as one layer, not the product of all.
 *
 * **Gotchas**
 *
 * Once the first such policy is made, every attempt pays for a mark in its context.
 *
 * @category limits
 * @since 0.1.0
 */
export const outermostOnly: Same = (self) => {
  shared.marking = true
  return Policy.extended(self, "RetryPolicy.outermostOnly", undefined, { outermostOnly: true })
}

/**
 * What a retry takes from the quota: finite numbers of at least 0.
 *
 * @category models
 * @since 0.1.0
 */
export interface QuotaOptions {
  /** Tokens that a retry takes. Default 5. */
  readonly cost?: number | undefined
  /** Tokens that a retry after a timeout takes. Default `cost`. */
  readonly timeoutCost?: number | undefined
  /** Tokens that a retry after a throttle takes. Default `cost`. */
  readonly throttlingCost?: number | undefined
  /** Whether a call that the quota refuses to retry is held for its delay before it fails. Default `false`. */
  readonly longPolling?: boolean | undefined
}

/**
 * Pays for every retry from the `RetryQuota`, and stops with `"quota-exhausted"` if there are too few tokens.
 *
 * **Details**
 *
 * The tokens return if the retry succeeds or is never sent; they are spent if it fails. Only effects made with
 * `attempt` report that, so the policy accepts no others; inside `Schedule.max` or `Schedule.min`, the compiler does not
 * notice. A cost above the quota's capacity is refused.
 *
 * @category limits
 * @since 0.1.0
 */
export const quotaGated: {
  <E, Err, R>(self: Schedule.Schedule<unknown, E, Err, R>): RetryPolicy<E, Err, R | RetryQuota>
  (options: QuotaOptions): <E, Err, R>(
    self: Schedule.Schedule<unknown, E, Err, R>
  ) => RetryPolicy<E, Err, R | RetryQuota>
  <E, Err, R>(
    self: Schedule.Schedule<unknown, E, Err, R>,
    options: QuotaOptions
  ): RetryPolicy<E, Err, R | RetryQuota>
} = /* @__PURE__ */ Policy.combinator("RetryPolicy.quotaGated", (check, options: QuotaOptions) => {
  const cost = check.amount("cost", options.cost, 5)
  const timeoutCost = check.amount("timeoutCost", options.timeoutCost, cost)
  const throttlingCost = check.amount("throttlingCost", options.throttlingCost, cost)
  const longPolling = options.longPolling === true
  check.names.add("longPolling")
  if (longPolling) check.given.longPolling = true
  // Of two, the dearer applies, class by class.
  return ({ quota }) => ({
    quota: {
      cost: Math.max(cost, quota?.cost ?? 0),
      timeoutCost: Math.max(timeoutCost, quota?.timeoutCost ?? 0),
      throttlingCost: Math.max(throttlingCost, quota?.throttlingCost ?? 0),
      longPolling: longPolling || quota?.longPolling === true
    }
  })
})

/**
 * Requires an `AdaptiveRateLimiter`, which then holds back every send of the call, and may refuse one.
 *
 * @category limits
 * @since 0.1.0
 */
export const requiresRateLimiter: <E, Err, R>(
  self: Schedule.Schedule<unknown, E, Err, R>
) => RetryPolicy<E, Err | RateLimitExceeded, R | AdaptiveRateLimiter> = (self) =>
  Policy.extended(self, "RetryPolicy.requiresRateLimiter", undefined, { adaptive: true })

/**
 * Uses the delays of another policy after a throttle: its source and its changes to the delay. The retry number keeps
 * counting through both.
 *
 * @category delays
 * @since 0.1.0
 */
export const whenThrottled: {
  (that: RetryPolicy): Same
  <E, Err, R>(self: RetryPolicy<E, Err, R>, that: RetryPolicy): RetryPolicy<E, Err, R>
} = /* @__PURE__ */ dual(2, (self: RetryPolicy<any, any, any>, that: RetryPolicy): any => {
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
  /** From the start of a call to the last moment at which a retry may begin; infinite without a deadline. */
  readonly deadline: Duration.Duration
  /** What a retry takes from the quota; `undefined` if nothing. */
  readonly quota: {
    readonly cost: number
    readonly timeoutCost: number
    readonly throttlingCost: number
    readonly longPolling: boolean
  } | undefined
  /** Whether the policy requires an `AdaptiveRateLimiter`. */
  readonly requiresRateLimiter: boolean
}

/**
 * Reads the limits of a policy, in whatever order they were applied.
 *
 * @category getters
 * @since 0.1.0
 */
export const limits = (self: Schedule.Schedule<unknown, any, any, any>): Limits => {
  const { adaptive, deadlineMillis, maxAttempts, quota } = Policy.partsIn(self)
  return { maxAttempts, deadline: Duration.millis(deadlineMillis), quota, requiresRateLimiter: adaptive }
}

/** Retries nothing: the unit of {@link min}, the zero of {@link max}. */
export const never: RetryPolicy = /* @__PURE__ */ maxAttempts(/* @__PURE__ */ fromDelay(() => 0), 1)

/** Retries at once, for ever: the unit of {@link max}. */
export const immediate: RetryPolicy = /* @__PURE__ */ fromDelay(() => 0)

/**
 * Retry policies: ordinary schedules that can be composed, printed and run fast.
 *
 * Begin with a policy that exists (`httpStandard`, `awsStandard`), with delays of `Backoff`, such as
 * `Backoff.exponential("100 millis")`, or with any schedule; the combinators here add the rest.
 *
 * A policy is a `Schedule` for `Effect.retry`, and it is also data: the source of the delay, the changes to it, and the
 * limits. The combinators here add to that data, so a policy of ten combinators still decides in one step, in this
 * order: retryable, attempts, quota, delay, deadline. A policy that stops keeps nothing from the quota, in whatever
 * order its combinators were applied.
 *
 * Each combinator takes any schedule and gives a policy. Those that change the delay apply in order: AWS uses both a cap
 * before jitter and a cap after it, and they differ. Limits may come in any order: of two of one kind the stricter
 * applies, and {@link withMaxAttempts}, {@link withDeadline}, {@link withQuota} and {@link withMaybeRetryable} replace
 * what was there. {@link max}, {@link min}, {@link concat} and {@link choose} make one policy of several: a retry is
 * paid and notified once.
 *
 * Effect's own schedule combinators work on policies too. What they give is a schedule, which the combinators here take
 * again.
 *
 * @since 0.1.0
 */

import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import type * as Equal from "effect/Equal"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Random from "effect/Random"
import type * as Schedule from "effect/Schedule"
import { type Compiled, type Cost, dearest, free, limitsOf } from "./engine/compiled.ts"
import { adjusted, capping, type Delay, type Failing, honoring, noDelay, spread } from "./engine/delay.ts"
import { isNested } from "./engine/environment.ts"
import { explained } from "./engine/explanation.ts"
import { choosing, following, joining, replacing } from "./engine/policy/joinedPolicies.ts"
import { jitterOf } from "./engine/policy/policy.ts"
import * as Policy from "./engine/policy/policy.ts"
import { both, building, sourced } from "./engine/policy/providedPolicy.ts"
import { also, callable, type Checks, checks, checksOf, flag, rejectUnknown } from "./internal/checks.ts"
import { named, Opaque } from "./internal/format.ts"
import { remembering } from "./internal/remembering.ts"
import { GateKeyed, shared } from "./internal/shared.ts"
import { get } from "./internal/tryGet.ts"
import type { RetryClassifier } from "./RetryClassifier.ts"
import type { RetryDecision, StopReason } from "./RetryDecision.ts"
import type { RetryInfo } from "./RetryInfo.ts"
import type { RetryQuota } from "./RetryQuota.ts"
import type { SendGate } from "./SendGate.ts"

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
export const isRetryPolicy: (u: unknown) => u is RetryPolicy<never, unknown, unknown> = Policy.isPolicy

/** What a user's function gets: no internals, and nothing mutable. Its type is that of what the policy is used for. */
const recordOf = <E>({ error, info, previousMillis, random, step }: Failing): Failure<E> =>
  Object.freeze({
    error: error as E,
    info,
    attempt: step,
    previous: Duration.millis(step === 1 ? 0 : previousMillis),
    random
  })

/** Milliseconds of the delay that a user's function returns. */
const millisOrNone = (delay: Duration.Input | undefined): number => {
  if (delay === undefined) return noDelay
  const millis = typeof delay === "number"
    ? delay
    : Duration.toMillis(Option.getOrElse(Duration.fromInput(delay), () => Duration.zero))
  return millis > 0 ? millis : 0
}

/**
 * Makes a policy from a function of the failed attempt that returns the delay before its retry. `undefined` stops
 * retrying with the reason `"schedule"`; a negative or invalid delay counts as 0.
 *
 * **Example** (The error says how long)
 *
 * ```ts
 * const policy = RetryPolicy.fromDelay((failure: RetryPolicy.Failure<{ readonly wait: number }>) => failure.error.wait)
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromDelay = <E = unknown>(
  delay: (failure: Failure<E>) => Duration.Input | undefined
): RetryPolicy<E> => {
  callable(checks("RetryPolicy.fromDelay"), "delay", delay, "a function from a failure to a delay")
  return Policy.fromSource("RetryPolicy.fromDelay", named(delay), (failing) => millisOrNone(delay(recordOf(failing))))
}

/**
 * Lifts any schedule into a policy: its delays are the policy's, and its end is the stop reason `"schedule"`. It is as
 * slow as the schedule. A policy stays as it is. The combinators here do this by themselves.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromSchedule = <Output, E, Err, R>(
  schedule: Schedule.Schedule<Output, E, Err, R>
): RetryPolicy<E, Err, R> => Policy.lifted(schedule)

/**
 * Retries immediately, forever: the unit of {@link max}.
 *
 * @category constructors
 * @since 0.1.0
 */
export const immediate: RetryPolicy = /* @__PURE__ */ Policy.fromSource("RetryPolicy.immediate", undefined, () => 0)

/**
 * Retries nothing: the unit of {@link min} and {@link concat}, the zero of {@link max}.
 *
 * @category constructors
 * @since 0.1.0
 */
export const never: RetryPolicy = /* @__PURE__ */ Policy.fromSource("RetryPolicy.never", undefined, () => noDelay, {
  maxAttempts: 1
})

/**
 * The errors that all of several schedules take: an intersection in which `unknown` does not swallow the others.
 *
 * @category utility types
 * @since 0.1.0
 */
export type Inputs<S> = (S extends unknown ? (_: Schedule.Input<S>) => void : never) extends (_: infer E) => void ? E
  : never

/** Several schedules as the source of one policy. */
const joined = <E, Err, R>(op: "max" | "min", of: ReadonlyArray<Policy.AnySchedule>): RetryPolicy<E, Err, R> => {
  const tag = `RetryPolicy.${op}`
  if (!Array.isArray(of) || of.length === 0) {
    return checks(tag).reject("policies", of, "an array of at least one schedule, such as [awsStandard]")
  }
  const policies = of.map((schedule, index) => Policy.lifted(schedule, tag, `policies[${index}]`))
  const compiled = policies.map(Policy.compiledOf)
  return Policy.fromSource(tag, policies, joining(op, compiled), requiredBy(compiled))
}

/** A combinator without options. */
const simple =
  (tag: string, change: Policy.Change) =>
  <E, Err, R>(self: Schedule.Schedule<unknown, E, Err, R>): RetryPolicy<E, Err, R> =>
    Policy.extended(self, { tag, change })

/** Bounds a policy by a limit: of two, the stricter applies. */
const within = (name: "maxAttempts" | "deadlineMillis", limit: number): Policy.Change => (compiled) => ({
  [name]: Math.min(compiled[name], limit)
})

/** What a policy requires, and brings along, that is made of these. */
const requiredBy = (of: ReadonlyArray<Compiled>): Pick<Compiled, "gates" | "adaptive" | "services"> => ({
  services: of.map(({ services }) => services).reduce(both),
  gates: [...new Set(of.flatMap(({ gates }) => gates))],
  adaptive: of.some(({ adaptive }) => adaptive)
})

/**
 * Retries while all would: after the longest delay, at the dearest cost, taken once.
 *
 * **Details**
 *
 * Each of them counts every failure, and its deadline counts from the start of the call. Those that take no tokens are
 * asked first: once the answer is certain, nothing waits for tokens. Of several that stop before that, the first gives
 * the reason. Throws `InvalidOption` if the array is empty or holds what is no schedule.
 *
 * **Example** (The standard mode of AWS, at least a second apart)
 *
 * ```ts
 * const policy = RetryPolicy.max([awsStandard, Schedule.spaced("1 second")])
 * ```
 *
 * @category joins
 * @since 0.1.0
 */
export const max = <const Of extends ReadonlyArray<Schedule.Schedule<unknown, never, unknown, unknown>>>(
  policies: Of
): RetryPolicy<Inputs<Of[number]>, Schedule.Error<Of[number]>, Schedule.Env<Of[number]>> => joined("max", policies)

/**
 * Retries while any would: after the shortest delay, at the cheapest cost, of those that would.
 *
 * **Details**
 *
 * So a schedule without limits lifts the limits of the others, the quota too. Otherwise as {@link max}.
 *
 * **Example** (Whichever gives up last)
 *
 * ```ts
 * const policy = RetryPolicy.min([awsStandard, Backoff.fixed("1 minute").pipe(RetryPolicy.maxAttempts(2))])
 * ```
 *
 * @category joins
 * @since 0.1.0
 */
export const min: typeof max = (policies) => joined("min", policies)

/**
 * Retries by one schedule until it stops, then by the other, which begins with the failure that ended the first and
 * counts attempts and deadline from there.
 *
 * **Example** (Then once a minute)
 *
 * ```ts
 * const policy = awsStandard.pipe(RetryPolicy.concat(Schedule.spaced("1 minute")))
 * ```
 *
 * @category joins
 * @since 0.1.0
 */
export const concat: {
  <E2, Err2, R2>(
    that: Schedule.Schedule<unknown, E2, Err2, R2>
  ): <E, Err, R>(self: Schedule.Schedule<unknown, E, Err, R>) => RetryPolicy<E & E2, Err | Err2, R | R2>
  <E, Err, R, E2, Err2, R2>(
    self: Schedule.Schedule<unknown, E, Err, R>,
    that: Schedule.Schedule<unknown, E2, Err2, R2>
  ): RetryPolicy<E & E2, Err | Err2, R | R2>
} = /* @__PURE__ */ Policy.joint("RetryPolicy.concat", "that", (check, that: Policy.AnySchedule) => {
  const second = Policy.lifted(that, check.tag, "that")
  const after = Policy.compiledOf(second)
  check.input.that = second
  return (compiled) => ({
    ...free,
    ...requiredBy([compiled, after]),
    source: following(compiled, after),
    live: compiled.live
  })
})

/**
 * Decides each failure by the policy that the function chooses for it. All of them count all failures.
 *
 * **Gotchas**
 *
 * Choose among policies that exist: one that the function makes has seen no earlier failure. A schedule that is no policy
 * sees only those that it decides about.
 *
 * **Example** (Patience after a throttle only)
 *
 * ```ts
 * const patient = Backoff.exponential("5 seconds", 2, { jitter: "full" })
 *
 * const policy = RetryPolicy.choose(({ info }) => info?.throttling ? patient : awsStandard).pipe(
 *   RetryPolicy.maxAttempts(6)
 * )
 * ```
 *
 * @category joins
 * @since 0.1.0
 */
export const choose = <S extends Schedule.Schedule<unknown, never, unknown, unknown>, E = unknown>(
  policy: (failure: Failure<E>) => S
): RetryPolicy<E & Inputs<S>, Schedule.Error<S>, Schedule.Env<S>> => {
  const tag = "RetryPolicy.choose"
  callable(checks(tag), "policy", policy, "a function from a failure to a policy")
  // One policy for one schedule, so that it is found again.
  const compiled = remembering((chosen: S) => Policy.compiledIn(chosen, tag, "policy"))
  return Policy.fromSource(tag, named(policy), choosing((failing) => compiled(policy(recordOf(failing)))))
}

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
  (cap: Duration.Input): <E, Err, R>(self: Schedule.Schedule<unknown, E, Err, R>) => RetryPolicy<E, Err, R>
  <E, Err, R>(self: Schedule.Schedule<unknown, E, Err, R>, cap: Duration.Input): RetryPolicy<E, Err, R>
} = /* @__PURE__ */ Policy.combinator(
  "RetryPolicy.capped",
  "cap",
  (check, cap: Duration.Input) => Policy.adjusting(capping(Math.ceil(check.positiveDuration("cap", cap))))
)

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
 * A combinator with an option that may be left out: `.pipe(combinator)`, `.pipe(combinator(option))`,
 * `combinator(self)`, `combinator(self, option)`. The policy then needs `R` too.
 *
 * @category models
 * @since 0.1.0
 */
export interface PointFree<O, R = never> {
  <const A extends Schedule.Schedule<unknown, never, unknown, unknown> | O = O>(
    selfOrOption?: A,
    option?: O
  ): [A] extends [Schedule.Schedule<unknown, infer E, infer Err, infer R1>] ? RetryPolicy<E, Err, R1 | R>
    : [Unknown<A, O>] extends [never]
      ? <E, Err, R1>(self: Schedule.Schedule<unknown, E, Err, R1>) => RetryPolicy<E, Err, R1 | R>
    : { readonly "no such option": Unknown<A, O> }
}

/** Misspelled options: a type parameter allows any. */
type Unknown<A, O> = A extends string | Schedule.Schedule<unknown, never, unknown, unknown> ? never
  : Exclude<keyof A, keyof Extract<O, object>>

/**
 * Randomizes every delay, so that clients that failed together do not retry together. Default `"full"`: in a `pipe` it
 * needs no call.
 *
 * @category delays
 * @since 0.1.0
 */
export const jittered: PointFree<Jitter> = /* @__PURE__ */ Policy.preset(
  "RetryPolicy.jittered",
  "jitter",
  (check, jitter: Jitter) => Policy.adjusting(spread(jitterOf(check, jitter))),
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
 * Waits at least as long as the server asked. In a `pipe` it needs no call.
 *
 * **Details**
 *
 * The delay becomes `max(delay, min(hint, atMost, delay + overshoot))`. A hint never shortens a delay, never makes an
 * error retryable, never exceeds a {@link deadline}. A later {@link capped} bounds it too.
 *
 * @category delays
 * @since 0.1.0
 */
export const honorRetryAfter: PointFree<HonorOptions> = /* @__PURE__ */ Policy.options(
  "RetryPolicy.honorRetryAfter",
  (check, options: HonorOptions) => {
    const atMost = check.duration("atMost", options.atMost, Infinity)
    const overshoot = check.duration("overshoot", options.overshoot, atMost === Infinity ? 5000 : Infinity)
    const stops = check.oneOf("beyond", options.beyond, ["clamp", "stop"], "clamp") === "stop"
    return Policy.adjusting(honoring(atMost, overshoot, stops))
  }
)

/**
 * Changes every delay with a function of the delay so far and the failed attempt. `undefined` stops retrying with the
 * reason `"schedule"`; a negative or invalid delay counts as 0. The quota has been asked before: if the function stops,
 * the tokens go back.
 *
 * **Example** (Twice as long after a timeout)
 *
 * ```ts
 * const policy = Backoff.fixed("1 second").pipe(
 *   RetryPolicy.mapDelay((delay, { info }) => info?.timeout ? Duration.times(delay, 2) : delay)
 * )
 * ```
 *
 * @category delays
 * @since 0.1.0
 */
export const mapDelay: {
  <E, E2 = E>(
    f: (delay: Duration.Duration, failure: Failure<E2>) => Duration.Input | undefined
  ): <Err, R>(self: Schedule.Schedule<unknown, E, Err, R>) => RetryPolicy<E & E2, Err, R>
  <E, Err, R, E2 = E>(
    self: Schedule.Schedule<unknown, E, Err, R>,
    f: (delay: Duration.Duration, failure: Failure<E2>) => Duration.Input | undefined
  ): RetryPolicy<E & E2, Err, R>
} = /* @__PURE__ */ Policy.joint(
  "RetryPolicy.mapDelay",
  "f",
  (check, f: (delay: Duration.Duration, failure: Failure<any>) => Duration.Input | undefined) => {
    check.input.f = named(callable(check, "f", f, "a function from a delay and a failure to a delay"))
    return Policy.adjusting((delayMillis, failing) => millisOrNone(f(Duration.millis(delayMillis), recordOf(failing))))
  }
)

/**
 * Uses another policy after a throttle, within the limits of this one so far. The retry number keeps counting through
 * both.
 *
 * **Example** (Slower after a throttle)
 *
 * ```ts
 * const policy = Backoff.exponential("50 millis").pipe(
 *   RetryPolicy.whenThrottled(Backoff.exponential("1 second")),
 *   RetryPolicy.jittered
 * )
 * ```
 *
 * @category delays
 * @since 0.1.0
 */
export const whenThrottled: typeof concat = /* @__PURE__ */ Policy.joint(
  "RetryPolicy.whenThrottled",
  "that",
  (check, that: Policy.AnySchedule) => {
    const policy = Policy.lifted(that, check.tag, "that")
    const throttled = Policy.compiledOf(policy)
    check.input.that = policy
    return (compiled) => {
      const { adjusts, live, source } = compiled
      const [one, other] = [delayIn(compiled), isUnlimited(throttled) ? delayIn(throttled) : undefined]
      const ordinary: Compiled = { ...free, nodes: [], source, adjusts }
      return {
        ...requiredBy([compiled, throttled]),
        adjusts: [],
        live,
        source: one !== undefined && other !== undefined
          ? (failing) => (failing.info?.throttling ? other : one)(failing)
          : choosing(({ info }) => info?.throttling ? throttled : ordinary)
      }
    }
  }
)

/** The delays of a policy as one function, if they are. */
const delayIn = ({ adjusts, source }: Compiled): Delay | undefined =>
  typeof source === "function" ? (failing) => adjusted(adjusts, source(failing), failing) : undefined

/** It has delays, and nothing else. */
const isUnlimited = (compiled: Compiled): boolean =>
  Object.entries(free).every(([name, value]) => name === "adjusts" || compiled[name as keyof Compiled] === value)

/**
 * Stops after this many attempts, the first included: 1 means no retries. Of two limits, the smaller applies:
 * {@link withMaxAttempts} replaces one, as in `awsStandard.pipe(RetryPolicy.withMaxAttempts(5))`.
 *
 * @category limits
 * @since 0.1.0
 */
export const maxAttempts: {
  (attempts: number): <E, Err, R>(self: Schedule.Schedule<unknown, E, Err, R>) => RetryPolicy<E, Err, R>
  <E, Err, R>(self: Schedule.Schedule<unknown, E, Err, R>, attempts: number): RetryPolicy<E, Err, R>
} = /* @__PURE__ */ Policy.combinator(
  "RetryPolicy.maxAttempts",
  "maxAttempts",
  (check, attempts: number) => within("maxAttempts", check.count("maxAttempts", attempts, 1))
)

/**
 * Makes this many attempts, the first included, whatever limit was applied before: also in the policies of {@link max},
 * {@link min} and {@link choose}. The parts of {@link concat}, and a lifted schedule, end where they did.
 *
 * **Example** (The standard mode of AWS, with five attempts)
 *
 * ```ts
 * const policy = awsStandard.pipe(RetryPolicy.withMaxAttempts(5))
 * ```
 *
 * @category limits
 * @since 0.1.0
 */
export const withMaxAttempts: typeof maxAttempts = /* @__PURE__ */ Policy.combinator(
  "RetryPolicy.withMaxAttempts",
  "maxAttempts",
  (check, attempts: number) => replacing("maxAttempts", check.count("maxAttempts", attempts, 1))
)

/**
 * Retries only failures for which the function returns `true`; another stops with the reason `"condition"`, before the
 * quota is asked. Of several conditions, all must hold.
 *
 * **Example** (Only while it is busy)
 *
 * ```ts
 * const policy = awsStandard.pipe(
 *   RetryPolicy.while(({ error }: RetryPolicy.Failure<{ readonly busy: boolean }>) => error.busy)
 * )
 * ```
 *
 * @category limits
 * @since 0.1.0
 */
const while_: {
  <E, E2 = E>(
    holds: (failure: Failure<E2>) => boolean
  ): <Err, R>(self: Schedule.Schedule<unknown, E, Err, R>) => RetryPolicy<E & E2, Err, R>
  <E, Err, R, E2 = E>(
    self: Schedule.Schedule<unknown, E, Err, R>,
    holds: (failure: Failure<E2>) => boolean
  ): RetryPolicy<E & E2, Err, R>
} = /* @__PURE__ */ Policy.joint("RetryPolicy.while", "holds", (check, holds: (failure: Failure<any>) => boolean) => {
  check.input.holds = named(callable(check, "holds", holds, "a function from a failure to true or false"))
  const condition = (failing: Failing) => holds(recordOf(failing))
  return ({ conditions = [] }) => ({ conditions: [...conditions, condition] })
})

export { while_ as while }

/**
 * Retries only errors that the classifier reports as safe to retry.
 *
 * @category limits
 * @since 0.1.0
 */
export const whileRetryable = /* @__PURE__ */ simple(
  "RetryPolicy.whileRetryable",
  ({ whileRetryable }) => typeof whileRetryable === "function" ? {} : { whileRetryable: "yes" }
)

/**
 * Retries errors that the classifier knows, including those after which a retry is only `"Maybe"` safe: for operations
 * that can run twice. With {@link whileRetryable} too, only those that are safe: {@link withMaybeRetryable} replaces it.
 *
 * @category limits
 * @since 0.1.0
 */
export const whileMaybeRetryable = /* @__PURE__ */ simple(
  "RetryPolicy.whileMaybeRetryable",
  ({ whileRetryable }) => whileRetryable === "off" ? { whileRetryable: "maybe" } : {}
)

/**
 * Retries as {@link whileMaybeRetryable} does, whether {@link whileRetryable} was applied before or not: in the same
 * policies as {@link withMaxAttempts}.
 *
 * **Example** (The standard mode of AWS, for operations that can run twice)
 *
 * ```ts
 * const policy = awsStandard.pipe(RetryPolicy.withMaybeRetryable)
 * ```
 *
 * @category limits
 * @since 0.1.0
 */
export const withMaybeRetryable = /* @__PURE__ */ simple(
  "RetryPolicy.withMaybeRetryable",
  /* @__PURE__ */ replacing("whileRetryable", "maybe")
)

/**
 * Stops if the retry would begin at the deadline or later, also because a timer is late. The time counts from the start
 * of the call, first attempt included, on the monotonic clock. No sleep goes past it: no backoff, no wait for the quota,
 * no wait of a retry for its send token. A running attempt is not interrupted, nor is the wait of a first send: use
 * `Effect.timeout` for that. Of two deadlines, the earlier applies: {@link withDeadline} replaces one.
 *
 * @category limits
 * @since 0.1.0
 */
export const deadline: {
  (limit: Duration.Input): <E, Err, R>(self: Schedule.Schedule<unknown, E, Err, R>) => RetryPolicy<E, Err, R>
  <E, Err, R>(self: Schedule.Schedule<unknown, E, Err, R>, limit: Duration.Input): RetryPolicy<E, Err, R>
} = /* @__PURE__ */ Policy.combinator(
  "RetryPolicy.deadline",
  "deadline",
  (check, limit: Duration.Input) => within("deadlineMillis", check.positiveDuration("deadline", limit))
)

/**
 * Sets the {@link deadline}, whatever was applied before: in the same policies as {@link withMaxAttempts}.
 *
 * @category limits
 * @since 0.1.0
 */
export const withDeadline: typeof deadline = /* @__PURE__ */ Policy.combinator(
  "RetryPolicy.withDeadline",
  "deadline",
  (check, limit: Duration.Input) => replacing("deadlineMillis", check.positiveDuration("deadline", limit))
)

/**
 * Removes every {@link deadline} that the policy has so far: in the same policies as {@link withMaxAttempts}.
 *
 * @category limits
 * @since 0.1.0
 */
export const withoutDeadline = /* @__PURE__ */ simple(
  "RetryPolicy.withoutDeadline",
  /* @__PURE__ */ replacing("deadlineMillis")
)

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
export const outermostOnly = /* @__PURE__ */ simple("RetryPolicy.outermostOnly", () => {
  shared.marking = true
  return { outermostOnly: isNested }
})

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

const costOf = (check: Checks, options: QuotaOptions): Cost => {
  const cost = check.amount("cost", options.cost, 5)
  return {
    cost,
    timeoutCost: check.amount("timeoutCost", options.timeoutCost, cost),
    throttlingCost: check.amount("throttlingCost", options.throttlingCost, cost),
    longPolling: flag(check, "longPolling", options.longPolling)
  }
}

/**
 * Pays for every retry from the `RetryQuota`, and stops with `"quota-exhausted"` if there are too few tokens. In a
 * `pipe` it needs no call: a retry then takes 5.
 *
 * **Details**
 *
 * The tokens return if the retry succeeds or is never sent; they are spent if it fails. A cost above the quota's
 * capacity is refused. Of two, the dearer applies, by class of failure: {@link withQuota} replaces one.
 *
 * @category limits
 * @since 0.1.0
 */
export const quotaGated: PointFree<QuotaOptions, RetryQuota> = /* @__PURE__ */ Policy.options(
  "RetryPolicy.quotaGated",
  (check, options: QuotaOptions) => {
    const quota = costOf(check, options)
    return (compiled) => ({ quota: dearest(compiled.quota, quota) })
  }
)

/**
 * Pays as {@link quotaGated} does, in place of what was applied before: in the same policies as {@link withMaxAttempts}.
 *
 * @category limits
 * @since 0.1.0
 */
export const withQuota: PointFree<QuotaOptions, RetryQuota> = /* @__PURE__ */ Policy.options(
  "RetryPolicy.withQuota",
  (check, options: QuotaOptions) => replacing("quota", costOf(check, options))
)

/**
 * Requires a gate: its layer must be provided, and what it refuses a first send with is an error of the call. It then holds back
 * every send, first or retry, as it does without this for any call in its context.
 *
 * **Details**
 *
 * A gate is a service made by `SendGate.Service`, or one of the library's: `AdaptiveRateLimiter`, `CircuitBreakerGate`,
 * `ClientThrottle`, `ConcurrencyLimiter`, `CoolDown`, `TokenLimiter`. Throws `InvalidOption` for another service.
 *
 * **Example** (Forgetting the layer does not compile)
 *
 * ```ts
 * import { ConcurrencyLimiter, layer } from "effect-retry/ConcurrencyLimiter"
 *
 * const limited = call.pipe(
 *   withRetry(awsStandard.pipe(RetryPolicy.requires(ConcurrencyLimiter))),
 *   Effect.catchTag("ConcurrencyLimitExceeded", () => Effect.succeed("later")),
 *   Effect.provide(layer())
 * )
 * ```
 *
 * @category limits
 * @since 0.1.0
 */
export const requires: {
  <I, S extends Gated>(
    gate: Context.Key<I, S>
  ): <E, Err, R>(self: Schedule.Schedule<unknown, E, Err, R>) => RetryPolicy<E, Err | Refusal<S>, R | I>
  <E, Err, R, I, S extends Gated>(
    self: Schedule.Schedule<unknown, E, Err, R>,
    gate: Context.Key<I, S>
  ): RetryPolicy<E, Err | Refusal<S>, R | I>
} = /* @__PURE__ */ Policy.joint("RetryPolicy.requires", "gate", (check, gate: Context.Key<any, Gated>) => {
  const key = keyOf(gate)
  if (key === undefined) {
    check.reject("gate", gate, "a gate: a service made by SendGate.Service, or of the library")
  }
  check.input.gate = gateNamed(key, get(gate, "name"))
  return ({ adaptive, gates }) => ({
    gates: gates.includes(gate) ? gates : [...gates, gate],
    adaptive: adaptive || key === "effect-retry/AdaptiveRateLimiter"
  })
})

/**
 * A service that is a gate, or has one.
 *
 * @category utility types
 * @since 0.1.0
 */
export type Gated = SendGate<unknown> | { readonly gate: SendGate<unknown> | undefined }

/**
 * What the gate of a service refuses with.
 *
 * @category utility types
 * @since 0.1.0
 */
export type Refusal<S> = S extends SendGate<infer E> ? E
  : S extends { readonly gate: SendGate<infer E> | undefined } ? E
  : never

const keyOf = (gate: unknown): string | undefined => get(gate, GateKeyed) as string | undefined

/** In code, a gate of the library stands in the module of its name. */
const gateNamed = (key: string | undefined, name: unknown): Opaque => {
  const own = /^effect-retry\/(\w+)$/.exec(key!)?.[1]
  return own === undefined ? new Opaque(key, String(name || key)) : new Opaque(key, `${own}.${own}`, own)
}

/**
 * Provides the services that a policy needs, such as its quota: for places that take a schedule without services.
 *
 * **Details**
 *
 * The layer is built when the policy is first used, once in the process, by that call: so all calls with this policy
 * object share one quota. A build that fails is an error of the call, before its first send, or when {@link choose} or a
 * schedule comes to the policy; the next call tries again. What is retried does not see the services, and a classifier
 * or an observer among them is not used: those are of the call.
 *
 * **Gotchas**
 *
 * The scope of the layer is never closed. A run has one quota: in a joined policy that of the first that brings one.
 * `RetryWorkflow` takes no such policy.
 *
 * **Example** (A policy that needs nothing)
 *
 * ```ts
 * const policy: RetryPolicy.RetryPolicy = awsStandard.pipe(RetryPolicy.provided(RetryQuota.layer()))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const provided: {
  <ROut, E2, RIn>(
    layer: Layer.Layer<ROut, E2, RIn>
  ): <E, Err, R>(self: Schedule.Schedule<unknown, E, Err, R>) => RetryPolicy<E, Err | E2, Exclude<R, ROut> | RIn>
  <E, Err, R, ROut, E2, RIn>(
    self: Schedule.Schedule<unknown, E, Err, R>,
    layer: Layer.Layer<ROut, E2, RIn>
  ): RetryPolicy<E, Err | E2, Exclude<R, ROut> | RIn>
} = /* @__PURE__ */ Policy.joint("RetryPolicy.provided", "layer", (check, layer: Layer.Layer<any, unknown>) => {
  if (!Layer.isLayer(layer)) check.reject("layer", layer, "a layer, such as RetryQuota.layer()")
  // The type of the policy asks for what the layer needs.
  const own = building(layer)
  check.input.layer = new Opaque(layer, "<layer>")
  return ({ services: others, source }) => {
    const services = both(others, own)!
    return { services, source: typeof source === "function" ? source : sourced(source, services) }
  }
})

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
  readonly quota: Required<QuotaOptions> | undefined
  /** The keys of the gates that it {@link requires}. */
  readonly gates: ReadonlyArray<string>
}

/**
 * Reads the limits of a policy, in whatever order they were applied. Those of {@link choose}, and of a lifted schedule,
 * are not seen.
 *
 * @category getters
 * @since 0.1.0
 */
export const limits = (self: Schedule.Schedule<unknown, never, unknown, unknown>): Limits => {
  const compiled = Policy.compiledIn(self, "RetryPolicy.limits", "self")
  const { deadlineMillis, maxAttempts, quota } = limitsOf(compiled)
  return {
    maxAttempts,
    deadline: Duration.millis(deadlineMillis),
    quota,
    gates: compiled.gates.map((gate) => keyOf(gate)!)
  }
}

/**
 * A failure that {@link explain} explains.
 *
 * @category models
 * @since 0.1.0
 */
export interface ExplainOptions {
  /** How many attempts have failed: a whole number from 1 to 10,000. Default 1. */
  readonly attempt?: number | undefined
  /** What classifies the error. Default: the classifier of the library. */
  readonly classifier?: RetryClassifier | undefined
}

/**
 * What a policy would do about a failure; as a string, one line.
 *
 * @category models
 * @since 0.1.0
 */
export type Explanation = WouldRetry | WouldStop | Uncertain

/**
 * It would retry. As a string: `"would retry after 0.5 to 1 s at 5 tokens"`.
 *
 * @category models
 * @since 0.1.0
 */
export interface WouldRetry {
  readonly _tag: "WouldRetry"
  /** The shortest delay that the random draws give, in whole milliseconds. */
  readonly least: Duration.Duration
  /** The longest. */
  readonly most: Duration.Duration
  /** What the retry takes from the quota, at most; 0 if nothing. */
  readonly tokens: number
  /** Why it stops after the other draws, if some stop: `"deadline"`, for example. */
  readonly otherwise: StopReason | undefined
  readonly toString: () => string
}

/**
 * It would stop. As a string: `"would stop: unknown-error, TypeError: the classifier does not know it"`. Of the error it
 * shows only the code, name and status.
 *
 * @category models
 * @since 0.1.0
 */
export interface WouldStop {
  readonly _tag: "WouldStop"
  /** Why. */
  readonly reason: StopReason
  readonly toString: () => string
}

/**
 * It depends on more than the failure: a schedule in the policy, its services, or its settings while the program runs.
 *
 * @category models
 * @since 0.1.0
 */
export interface Uncertain {
  readonly _tag: "Uncertain"
  readonly toString: () => string
}

/**
 * Explains what a policy would do about a failure, without running anything: it decides as a call does, all of whose
 * attempts fail with this error and take no time. The quota is supposed to have the tokens, and loses none. Gates are
 * not asked, and no call is around this one.
 *
 * **Details**
 *
 * The delays are those at the least random draw and at the greatest. Throws `InvalidOption` when an option is invalid, and
 * whatever a function in the policy throws.
 *
 * **Example** (Is a lost connection retried?)
 *
 * ```ts
 * const lost = Object.assign(new Error(), { code: "ECONNRESET" })
 * String(RetryPolicy.explain(awsStandard, lost)) // "would retry after 0 to 1 s at 5 tokens"
 * String(RetryPolicy.explain(awsStandard, lost, { attempt: 3 })) // "would stop: max-attempts, ECONNRESET: the attempts are used up"
 * ```
 *
 * @see `Explain` of `@effect-retry/lab` for whole calls: how long they take, how often they send, what the quota lets through
 * @category getters
 * @since 0.1.0
 */
export const explain = <E>(
  policy: Schedule.Schedule<unknown, E, unknown, unknown>,
  error: E,
  options: ExplainOptions = {}
): Explanation => {
  const check = checksOf("RetryPolicy.explain", options)
  const { attempt = 1, classifier } = options
  also(check, "attempt", "classifier")
  if (!Number.isInteger(attempt) || attempt < 1 || attempt > 10_000) {
    check.reject("attempt", attempt, "a whole number from 1 to 10,000")
  }
  if (classifier !== undefined) callable(check, "classifier", classifier, "a function of an error")
  rejectUnknown(check, options)
  return explained({ compiled: Policy.compiledIn(policy, check.tag, "policy"), error, attempt, classifier })
}

/**
 * Retry policies: ordinary schedules whose parts can be composed, read and run fast.
 *
 * A policy is a `Schedule` for `Effect.retry`, and it is also data: where the delay comes from, what is done to it, and
 * what ends retrying. The combinators here add to that data, so a policy of ten combinators still decides in one step,
 * in this order: retryable, attempts, quota, delay, deadline. Whatever the order in which they were applied, a policy
 * that stops takes nothing from the quota and waits for nothing. Only combinators that change the delay apply in order:
 * a cap before jitter and a cap after it are both AWS behaviours, and differ.
 *
 * Effect's own schedule combinators work on policies too. Limits belong inside, though: a policy never hears that a
 * `Schedule.upTo` around it has stopped. By then it has taken tokens and told its observer of a retry; the tokens go
 * back when the fiber ends or retries again.
 *
 * @since 0.1.0
 */

import * as Duration from "effect/Duration"
import { dual } from "effect/Function"
import type * as Schedule from "effect/Schedule"
import type { AdaptiveRateLimiter, RateLimitExceeded } from "./AdaptiveRateLimiter.ts"
import { type Adjust, type Delay, type Failing as Failure, hintTooLong, noDelay, type Parts } from "./internal/engine/verdict.ts"
import { shared } from "./internal/shared.ts"
import { toSchedule } from "./internal/engine/bridge.ts"
import * as Delays from "./internal/math/delay.ts"
import { get } from "./internal/safe.ts"
import { checks } from "./InvalidOption.ts"
import type { RetryQuota } from "./RetryQuota.ts"
import type { RetryDecision } from "./RetryDecision.ts"

/**
 * The key under which a policy carries its parts.
 *
 * @category guards
 * @since 0.1.0
 */
export const TypeId = "~effect-retry/RetryPolicy" as const

/**
 * Type of {@link TypeId}.
 *
 * @category guards
 * @since 0.1.0
 */
export type TypeId = typeof TypeId

/**
 * A failed attempt, as a policy sees it: the error, its facts, the number of the attempt, the back-off before.
 *
 * @category models
 * @since 0.1.0
 */
export type { Failing as Failure } from "./internal/engine/verdict.ts"

/**
 * The mark that `attempt` leaves on the error type of an effect, and that a policy which books outcomes asks for. It
 * exists in types only.
 *
 * @category models
 * @since 0.1.0
 */
export interface Attempted {
  readonly "~effect-retry/Attempted": true
}

/**
 * A schedule that decides about failures of type `E`, needs the services `R`, and adds `Err` to what a call fails with.
 *
 * @category models
 * @since 0.1.0
 */
export interface RetryPolicy<in E = unknown, out R = never, out Err = never>
  extends Schedule.Schedule<RetryDecision, E, Err, R>
{
  /** What the policy is made of. Its form is the library's own affair, and changes without notice. */
  readonly [TypeId]: Parts
}

/**
 * Checks whether a value is a `RetryPolicy`.
 *
 * @category guards
 * @since 0.1.0
 */
export const isRetryPolicy = (u: unknown): u is RetryPolicy<never, unknown, unknown> => get(u, TypeId) !== undefined

/**
 * Makes the policy of these parts.
 *
 * @internal
 */
export const fromParts = <E, R, Err>(parts: Parts): RetryPolicy<E, R, Err> =>
  Object.assign(toSchedule(parts), { [TypeId]: parts }) as any

/**
 * The policy that retries for ever after the delays of `source`.
 *
 * @internal
 */
export const fromSource = <E, R, Err>(source: Parts["source"]): RetryPolicy<E, R, Err> =>
  fromParts({
    source,
    adjust: (delayMillis) => delayMillis,
    maxAttempts: Infinity,
    whileRetryable: "off",
    deadlineMillis: Infinity,
    outermostOnly: false,
    quota: undefined,
    adaptive: false
  })

/**
 * Makes a policy of a function from a failed attempt to the delay before its retry, in milliseconds. `undefined` stops
 * retrying with the reason `"schedule"`; a delay that is no number of at least 0 counts as 0.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromDelay = (delayMillis: (failure: Failure) => number | undefined): RetryPolicy => {
  const source: Delay = (failure) => {
    const delay = delayMillis({ ...failure, attempt: failure.nth })
    if (delay === undefined) return noDelay
    return delay > 0 ? delay : 0
  }
  return fromSource(source)
}

/**
 * Lifts any schedule into a policy: its delays are the policy's, and its end is the stop reason `"schedule"`. It costs
 * what the schedule costs.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromSchedule = <Output, E, Err, R>(
  schedule: Schedule.Schedule<Output, E, Err, R>
): RetryPolicy<E, R, Err> => fromSource(schedule)

type Same = <E, R, Err>(self: RetryPolicy<E, R, Err>) => RetryPolicy<E, R, Err>

const with_ = (changes: Partial<Parts>): Same => (self) => fromParts({ ...self[TypeId], ...changes })

const adjusting = (next: Adjust): Same => (self) => {
  const { adjust } = self[TypeId]
  return with_({
    adjust: (delayMillis, failure) => {
      const adjusted = adjust(delayMillis, failure)
      return adjusted < 0 ? adjusted : next(adjusted, failure)
    }
  })(self)
}

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
export const capped = (cap: Duration.Input): Same => {
  const capMillis = Math.ceil(checks("RetryPolicy.capped").positiveDuration("cap", cap))
  return adjusting((delayMillis) => Math.min(delayMillis, capMillis))
}

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
 * The jitter as a function.
 *
 * @internal
 */
export const jitterOf = (constructorName: string, jitter: Jitter): Adjust => {
  const check = checks(constructorName)
  if (typeof jitter === "object" && jitter !== null) {
    const share = check.between("proportional", jitter.proportional, 0, 1)
    return (delayMillis, { random }) => Delays.proportionalJitter(delayMillis, share, random.nextDoubleUnsafe())
  }
  switch (check.oneOf("jitter", jitter, ["none", "full", "equal"])) {
    case "none":
      return (delayMillis) => delayMillis
    case "full":
      return (delayMillis, { random }) => Delays.fullJitter(delayMillis, random.nextDoubleUnsafe())
    case "equal":
      return (delayMillis, { random }) => Delays.equalJitter(delayMillis, random.nextDoubleUnsafe())
  }
}

/**
 * Spreads every delay by chance, so that clients which failed together do not retry together.
 *
 * @category delays
 * @since 0.1.0
 */
export const jittered = (jitter: Jitter): Same => adjusting(jitterOf("RetryPolicy.jittered", jitter))

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
export const honorRetryAfter = (options?: HonorOptions): Same => {
  const check = checks("RetryPolicy.honorRetryAfter")
  const atMost = options?.atMost === undefined ? Infinity : check.duration("atMost", options.atMost)
  const overshoot = options?.overshoot === undefined
    ? options?.atMost === undefined ? 5000 : Infinity
    : check.duration("overshoot", options.overshoot)
  const stops = check.oneOf("beyond", options?.beyond ?? "clamp", ["clamp", "stop"]) === "stop"
  return adjusting((delayMillis, { info }) => {
    if (info?.retryAfter === undefined) return delayMillis
    const hint = Duration.toMillis(info.retryAfter)
    const bound = Math.min(atMost, delayMillis + overshoot)
    return stops && hint > bound ? hintTooLong : Math.max(delayMillis, Math.min(hint, bound))
  })
}

/**
 * Stops after this many attempts, the first included: 1 means no retries. Of two limits the smaller holds.
 *
 * @category limits
 * @since 0.1.0
 */
export const maxAttempts = (attempts: number): Same => {
  const limit = checks("RetryPolicy.maxAttempts").count("maxAttempts", attempts, 1)
  return (self) => with_({ maxAttempts: Math.min(self[TypeId].maxAttempts, limit) })(self)
}

/**
 * Retries only errors that the classifier knows and holds for safe to retry.
 *
 * @category limits
 * @since 0.1.0
 */
export const whileRetryable: Same = /* @__PURE__ */ with_({ whileRetryable: "yes" })

/**
 * Retries errors that the classifier knows, also those after which a retry is only `"Maybe"` safe: for operations that
 * may be carried out twice.
 *
 * @category limits
 * @since 0.1.0
 */
export const whileMaybeRetryable: Same = /* @__PURE__ */ with_({ whileRetryable: "maybe" })

/**
 * Stops when the retry would begin at the deadline or after it. The time counts from the beginning of the call, its
 * first attempt included, on the monotonic clock. Nothing is slept past it: no back-off, no wait for the quota, no wait
 * of a retry for its send token. An attempt that runs is not interrupted, nor is the wait of a first send: that is
 * `Effect.timeout`. Of two deadlines the earlier holds.
 *
 * @category limits
 * @since 0.1.0
 */
export const deadline = (limit: Duration.Input): Same => {
  const millis = checks("RetryPolicy.deadline").positiveDuration("deadline", limit)
  return (self) => with_({ deadlineMillis: Math.min(self[TypeId].deadlineMillis, millis) })(self)
}

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
  return with_({ outermostOnly: true })(self)
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
export const quotaGated = (options: QuotaOptions): <E, R, Err>(
  self: RetryPolicy<E, R, Err>
) => RetryPolicy<E & Attempted, R | RetryQuota, Err> => {
  const check = checks("RetryPolicy.quotaGated")
  const cost = check.amount("cost", options.cost)
  const quota = {
    cost,
    timeoutCost: check.amount("timeoutCost", options.timeoutCost ?? cost),
    throttlingCost: check.amount("throttlingCost", options.throttlingCost ?? cost),
    longPolling: options.longPolling === true
  }
  return (self) => with_({ quota })(self) as any
}

/**
 * Asks for an `AdaptiveRateLimiter`, which then holds back every send of the call, and may refuse one.
 *
 * @category limits
 * @since 0.1.0
 */
export const requiresRateLimiter: <E, R, Err>(
  self: RetryPolicy<E, R, Err>
) => RetryPolicy<E & Attempted, R | AdaptiveRateLimiter, Err | RateLimitExceeded> = (self) =>
  with_({ adaptive: true })(self) as any

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
  const ordinary = delayOf("self", self[TypeId])
  const throttling = delayOf("that", that[TypeId])
  return with_({
    source: (failure) => (failure.info?.throttling ? throttling : ordinary)(failure),
    adjust: (delayMillis) => delayMillis
  })(self)
})

const delayOf = (field: string, { adjust, source }: Parts): Delay =>
  typeof source === "function"
    ? (failure) => {
      const delay = source(failure)
      return delay < 0 ? delay : adjust(delay, failure)
    }
    : checks("RetryPolicy.whenThrottled").reject(field, "a lifted schedule", "a policy whose delays are functions")

/**
 * Delays between attempts, as policies that never stop: bound them with the combinators of `RetryPolicy`.
 *
 * Every delay is computed from the retry's number, so the millionth is as cheap and exact as the first: it saturates
 * instead of overflowing.
 *
 * @since 0.1.0
 */

import type * as Duration from "effect/Duration"
import * as Delays from "./engine/delay.ts"
import { fromSource, jitterOf } from "./engine/policy/policy.ts"
import { type Checks, checks, checksOf, flag, rejectUnknown } from "./internal/checks.ts"
import { get } from "./internal/tryGet.ts"
import * as RetryPolicy from "./RetryPolicy.ts"
import type { RetryQuota } from "./RetryQuota.ts"

/**
 * Options of every backoff: a cap, which bounds the delay both before and after jitter, and a jitter.
 *
 * @category models
 * @since 0.1.0
 */
export interface CommonOptions {
  /** The longest delay: a finite duration above 0, not below `base`. Default: none. */
  readonly cap?: Duration.Input | undefined
  /** How the delay is randomized. Default `"none"`. */
  readonly jitter?: RetryPolicy.Jitter | undefined
}

/** The checks of a backoff: its first delay comes first, in milliseconds, and its options last. */
const checked = (tag: string, options: object, field: "base" | "delay", delay: Duration.Input) => {
  if (get(delay, field) !== undefined) checks(tag).reject(field, delay, "the first argument")
  const check = checksOf(tag, options)
  const millis = check.duration(field, delay)
  check.names.clear()
  return [check, millis] as const
}

const backoff = (
  check: Checks,
  options: CommonOptions,
  baseMillis: number,
  ceiling: (retry: number) => number
): RetryPolicy.RetryPolicy => {
  const capMillis = capOf(check, baseMillis, options.cap)
  const jitter = jitterOf(check, options.jitter, "none")
  rejectUnknown(check, options)
  return fromSource(check.tag, check.input, Delays.growing(ceiling, jitter, capMillis))
}

const capOf = (check: Checks, baseMillis: number, cap: Duration.Input | undefined): number => {
  const capMillis = check.positiveDuration("cap", cap, Delays.maxDelayMillis)
  return cap === undefined || capMillis >= baseMillis
    ? Math.ceil(capMillis)
    : check.reject("cap", cap, "a duration not below base")
}

/**
 * Waits `base * factor^(n - 1)` before retry `n`, from 1: `base` is a finite duration of at least 0, `factor` a finite
 * number of at least 1, by default 2. Alone it has no end and retries every error: add `RetryPolicy.maxAttempts` and
 * `RetryPolicy.whileRetryable`.
 *
 * **Example** (AWS, retry behavior 2.1)
 *
 * ```ts
 * Backoff.exponential("50 millis", 2, { cap: "20 seconds", jitter: "full" })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const exponential = (base: Duration.Input, factor = 2, options: CommonOptions = {}): RetryPolicy.RetryPolicy => {
  const [check, baseMillis] = checked("Backoff.exponential", options, "base", base)
  // The default is not part of what the policy shows: written or not, the policies are equal.
  const growth = factor === 2 ? factor : check.between("factor", factor, 1, Number.MAX_VALUE)
  check.names.clear()
  return backoff(check, options, baseMillis, Delays.exponential(baseMillis, growth))
}

/**
 * Waits `base + increment * (n - 1)` before retry `n`, from 1: `base` is a finite duration of at least 0.
 *
 * @category constructors
 * @since 0.1.0
 */
export const linear = (
  base: Duration.Input,
  options: CommonOptions & {
    /** How much longer each further delay is: a finite duration of at least 0. Default `base`. */
    readonly increment?: Duration.Input | undefined
  } = {}
): RetryPolicy.RetryPolicy => {
  const [check, baseMillis] = checked("Backoff.linear", options, "base", base)
  const increment = check.duration("increment", options.increment, baseMillis)
  return backoff(check, options, baseMillis, Delays.linear(baseMillis, increment))
}

/**
 * Waits `base * fibonacci(n)` before retry `n`: 1, 1, 2, 3, 5, ... times the base, a finite duration of at least 0.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fibonacci = (base: Duration.Input, options: CommonOptions = {}): RetryPolicy.RetryPolicy => {
  const [check, baseMillis] = checked("Backoff.fibonacci", options, "base", base)
  return backoff(check, options, baseMillis, Delays.fibonacci(baseMillis))
}

/**
 * Waits the same time before every retry: a finite duration of at least 0.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fixed = (
  delay: Duration.Input,
  options: {
    /** How the delay is randomized. Default `"none"`. */
    readonly jitter?: RetryPolicy.Jitter | undefined
  } = {}
): RetryPolicy.RetryPolicy => {
  const [check, delayMillis] = checked("Backoff.fixed", options, "delay", delay)
  check.names.add("jitter")
  rejectUnknown(check, options)
  return backoff(check, { jitter: options.jitter }, delayMillis, () => delayMillis)
}

/**
 * Waits between `base`, a finite duration of at least 0, and three times the previous delay, so each delay depends only
 * on the last and on randomness.
 *
 * **Details**
 *
 * `min(cap, random between base and 3 * previous)`, `previous` starting at `base`. With `additive`,
 * `min(cap, base + random * 3 * previous)`, as in smithy-python. Source: Brooker, "Exponential Backoff and Jitter", AWS
 * Architecture Blog, 2015; smithy-python `core/retries.py`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const decorrelated = (base: Duration.Input, options: {
  /** The longest delay: a finite duration above 0, not below `base`. */
  readonly cap: Duration.Input
  /** Adds the random part to the base. Default `false`. */
  readonly additive?: boolean | undefined
}): RetryPolicy.RetryPolicy => {
  const [check, baseMillis] = checked("Backoff.decorrelated", options, "base", base)
  const capMillis = capOf(check, baseMillis, options.cap)
  const additive = flag(check, "additive", options.additive)
  rejectUnknown(check, options)
  return fromSource(check.tag, check.input, Delays.decorrelated(baseMillis, capMillis, additive))
}

const standard = (): RetryPolicy.RetryPolicy<unknown, never, RetryQuota> =>
  exponential("100 millis", 2, { cap: "5 seconds", jitter: "full" }).pipe(
    RetryPolicy.honorRetryAfter({ atMost: "2 minutes", beyond: "stop" }),
    RetryPolicy.deadline("10 seconds"),
    RetryPolicy.whileRetryable,
    RetryPolicy.quotaGated({ cost: 5 })
  )

/**
 * For services outside AWS, over HTTP and otherwise: retries what is safe, in a call that takes about 10 seconds at most.
 *
 * **Details**
 *
 * | setting | value |
 * | --- | --- |
 * | delay before retry `n` | `b * min(100 ms * 2^(n - 1), 5 seconds)`, `b` uniform in `[0, 1)` |
 * | server's hint | a floor; after one above 2 minutes it stops |
 * | end | no retry begins 10 seconds after the call did, or later; attempts are not limited |
 * | quota | a retry takes 5; a success returns those of its retry, or adds 1: provide `RetryQuota.layer()` once |
 *
 * **Example** (More patience, and fewer attempts)
 *
 * ```ts
 * import { httpStandard, RetryPolicy } from "effect-retry"
 *
 * const policy = httpStandard.pipe(RetryPolicy.withDeadline("1 minute"), RetryPolicy.maxAttempts(4))
 * ```
 *
 * @category policies
 * @since 0.1.0
 */
export const httpStandard: RetryPolicy.RetryPolicy<unknown, never, RetryQuota> = /* @__PURE__ */ standard()

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
import { jitterOf } from "./engine/policy/jitter.ts"
import { fromSource } from "./engine/policy/policy.ts"
import { type Checks, checksOf, flag, rejectUnknown } from "./internal/checks.ts"
import type { Jitter, RetryPolicy } from "./RetryPolicy.ts"

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
  readonly jitter?: Jitter | undefined
}

const backoff = (
  check: Checks,
  options: CommonOptions,
  baseMillis: number,
  ceiling: (retry: number) => number
): RetryPolicy => {
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
 * Waits `base * factor^(n - 1)` before retry `n`, from 1.
 *
 * **Example** (AWS, retry behavior 2.1)
 *
 * ```ts
 * Backoff.exponential({ base: "50 millis", cap: "20 seconds", jitter: "full" })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const exponential = (
  options: CommonOptions & {
    /** The first delay: a finite duration of at least 0. */
    readonly base: Duration.Input
    /** The growth factor: a finite number of at least 1. Default 2. */
    readonly factor?: number | undefined
  }
): RetryPolicy => {
  const check = checksOf("Backoff.exponential", options)
  const baseMillis = check.duration("base", options.base)
  check.names.add("factor")
  const factor = options.factor === undefined ? 2 : check.between("factor", options.factor, 1, Number.MAX_VALUE)
  return backoff(check, options, baseMillis, Delays.exponential(baseMillis, factor))
}

/**
 * Waits `base + increment * (n - 1)` before retry `n`, from 1.
 *
 * @category constructors
 * @since 0.1.0
 */
export const linear = (
  options: CommonOptions & {
    /** The first delay: a finite duration of at least 0. */
    readonly base: Duration.Input
    /** How much longer each further delay is: a finite duration of at least 0. Default `base`. */
    readonly increment?: Duration.Input | undefined
  }
): RetryPolicy => {
  const check = checksOf("Backoff.linear", options)
  const baseMillis = check.duration("base", options.base)
  const increment = check.duration("increment", options.increment, baseMillis)
  return backoff(check, options, baseMillis, Delays.linear(baseMillis, increment))
}

/**
 * Waits `base * fibonacci(n)` before retry `n`: 1, 1, 2, 3, 5, ... times the base.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fibonacci = (
  options: CommonOptions & {
    /** The first delay: a finite duration of at least 0. */
    readonly base: Duration.Input
  }
): RetryPolicy => {
  const check = checksOf("Backoff.fibonacci", options)
  const baseMillis = check.duration("base", options.base)
  return backoff(check, options, baseMillis, Delays.fibonacci(baseMillis))
}

/**
 * Waits the same time before every retry.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fixed = (
  options: {
    /** The delay: a finite duration of at least 0. */
    readonly delay: Duration.Input
    /** How the delay is randomized. Default `"none"`. */
    readonly jitter?: Jitter | undefined
  }
): RetryPolicy => {
  const check = checksOf("Backoff.fixed", options)
  const delayMillis = check.duration("delay", options.delay)
  check.names.add("jitter")
  rejectUnknown(check, options)
  return backoff(check, { jitter: options.jitter }, delayMillis, () => delayMillis)
}

/**
 * Waits between `base` and three times the previous delay, so each delay depends only on the last and on randomness.
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
export const decorrelated = (options: {
  /** The least delay: a finite duration of at least 0. */
  readonly base: Duration.Input
  /** The longest delay: a finite duration above 0, not below `base`. */
  readonly cap: Duration.Input
  /** Adds the random part to the base. Default `false`. */
  readonly additive?: boolean | undefined
}): RetryPolicy => {
  const check = checksOf("Backoff.decorrelated", options)
  const baseMillis = check.duration("base", options.base)
  const capMillis = capOf(check, baseMillis, options.cap)
  const additive = flag(check, "additive", options.additive)
  rejectUnknown(check, options)
  return fromSource(check.tag, check.input, Delays.decorrelated(baseMillis, capMillis, additive))
}

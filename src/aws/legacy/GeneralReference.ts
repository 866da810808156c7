/**
 * "Error retries and exponential backoff in AWS", from the AWS General Reference: what to do without an SDK.
 *
 * Server errors (5xx) and throttling are retried, client errors (4xx) are not. The waits double, from 100 milliseconds
 * up to a maximum, without jitter. The result of an asynchronous operation is polled with the same waits, as long as it
 * is not ready or the service throttles.
 *
 * The page has a rule for the waits and names for the bounds, `MAX_WAIT_INTERVAL` and `MAX_RETRIES`. It gives no values
 * for those, which it says depend on the operation: the defaults here are the library's own.
 *
 * **Source**: AWS General Reference 1.0, "Error Retries and Exponential Backoff in AWS", text and pseudocode.
 *
 * @since 0.1.0
 */

import type * as Duration from "effect/Duration"
import type * as Layer from "effect/Layer"
import * as Backoff from "../../Backoff.ts"
import * as Waiter from "../../drivers/Waiter.ts"
import { callable, checksOf } from "../../internal/checks.ts"
import { codesOf, shapeOf } from "../../internal/classification/errorCodes.ts"
import { statusOf } from "../../internal/classification/wire.ts"
import { count, duration, inCode, positiveDuration, validOptions } from "../../internal/options.ts"
import * as RetryClassifier from "../../RetryClassifier.ts"
import * as RetryPolicy from "../../RetryPolicy.ts"
import { answering, withHint } from "../internal/classifiers.ts"

const answered = answering({
  status429: true,
  transient: new Set(),
  statuses: { has: (status) => status >= 500 && status < 600 }
})

const service: RetryClassifier.RetryClassifier = (error) =>
  withHint(answered(codesOf(error).map(shapeOf), statusOf(error)), error)

/**
 * What the page retries: throttling and server errors, nothing else.
 *
 * **Details**
 *
 * Throttling is one of the 14 codes that the AWS SDKs share, regardless of status, or the status 429. A code is the
 * `name`, `code`, `Code` or `__type` of the error. A server error is any status from 500 to 599, including 501 and 505.
 * If the error says nothing and is not a response, its causes are checked. Facts that an error itself carries come
 * first.
 *
 * Unlike `RetryClassifier.defaultClassifier` it knows no network failures and no timeouts, including 408. The page has
 * no list of codes: which are throttling, and that 429 is, comes from the SDKs.
 *
 * @category constructors
 * @since 0.1.0
 */
export const classifier: RetryClassifier.RetryClassifier = RetryClassifier.followingCause(
  RetryClassifier.chain([RetryClassifier.carried, service])
)

/**
 * A layer that sets the {@link classifier} of the page.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<never> = RetryClassifier.layer(classifier)

const baseMillis = 100

/**
 * Options of the policy.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /**
   * Retries, not counting the first attempt: a whole number of at least 0, or `Infinity`. The page's `MAX_RETRIES`, for
   * which it gives no value. Default 3.
   */
  readonly maxRetries?: number | undefined
  /**
   * The longest wait: a finite duration above 0. The page's `MAX_WAIT_INTERVAL`, for which it gives no value. Default
   * 20 seconds.
   */
  readonly maxWaitInterval?: Duration.Input | undefined
}

/**
 * Makes the policy of the page: it waits `min(2^n * 100 ms, maxWaitInterval)`, `n` the retries made so far, from 0.
 *
 * **Details**
 *
 * So the waits are exactly 100, 200, 400 milliseconds and so on: there is no jitter, and a server's hint is not
 * followed. `RetryPolicy.jittered` and `RetryPolicy.honorRetryAfter` add them. The classifier decides what is retried,
 * and what is a throttle: {@link layer} sets that of the page. Throws `InvalidOption` for options out of range.
 *
 * The page's loop also waits before its first try, since it polls: see {@link polling}. A call does not.
 *
 * **Example** (Up to five retries, only of server errors and throttling)
 *
 * ```ts
 * call.pipe(withRetry(GeneralReference.policy({ maxRetries: 5 })), Effect.provide(GeneralReference.layer))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const policy = (options: Options = {}): RetryPolicy.RetryPolicy => {
  const record = { maxRetries: count(0, 3), maxWaitInterval: positiveDuration(20_000) }
  const check = checksOf("GeneralReference.policy", options)
  const { maxRetries, maxWaitIntervalMillis } = validOptions(check, record, options)
  return Backoff.exponential(baseMillis).pipe(
    RetryPolicy.capped(maxWaitIntervalMillis),
    RetryPolicy.maxAttempts(maxRetries + 1),
    RetryPolicy.whileRetryable
  )
}

/**
 * The statuses of an asynchronous operation: three named by the page, and any other, which ends the wait.
 *
 * @category models
 * @since 0.1.0
 */
export type Status = "SUCCESS" | "NOT_READY" | "THROTTLED" | (string & {})

/**
 * Options for polling the result of an asynchronous operation.
 *
 * @category models
 * @since 0.1.0
 */
export interface PollingOptions<in A> {
  /** Reads the status from a poll's output. */
  readonly status: (output: A) => Status
  /**
   * Polls: a whole number of at least 1, or `Infinity`. The page's `MAX_RETRIES`, with which its loop counts polls, and
   * for which it gives no value. Default 10.
   */
  readonly maxPolls?: number | undefined
  /**
   * The longest wait: a finite duration of at least 1 ms. The page's `MAX_WAIT_INTERVAL`, for which it gives no value.
   * Default 20 seconds.
   */
  readonly maxWaitInterval?: Duration.Input | undefined
  /**
   * The maximum wait, all polls included: a finite duration above the first wait, which is 100 ms or `maxWaitInterval`.
   * The page has no such bound. Default 10 minutes.
   */
  readonly maxWait?: Duration.Input | undefined
}

const pollingOptions = {
  status: inCode,
  maxPolls: count(1, 10),
  maxWaitInterval: duration(20_000),
  maxWait: duration(600_000)
}

/**
 * Makes the waiter of the page: it polls for the result of a started operation, with an incremental delay.
 *
 * **Details**
 *
 * Before every poll, including the first, it waits `min(2^n * 100 ms, maxWaitInterval)`, `n` the polls made so far,
 * from 0. The result of a poll is checked in this order: `SUCCESS` ends the wait; `NOT_READY` continues it; so does
 * `THROTTLED`, or an error that the fiber's classifier considers a throttle; any other status or error ends it with
 * `WaiterFailed`. If the polls are used up, it fails with `WaiterTimedOut` and the reason `"delays"`; if `maxWait` is
 * over, with `"time"`. Throws `InvalidOption` for options out of range.
 *
 * The page's Java version differs from its pseudocode, which this follows: it makes its first poll immediately, makes
 * one more poll than `MAX_RETRIES`, and continues after a server error. For the latter, retry within the poll:
 * `poll.pipe(withRetry(GeneralReference.policy()), Waiter.waitUntil(waiter))`.
 *
 * **Example** (Until a job is done, at most 8 polls)
 *
 * ```ts
 * GeneralReference.polling({ status: (job: Job) => job.status, maxPolls: 8 })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const polling = <A>(options: PollingOptions<A>): Waiter.Waiter<A> => {
  const check = checksOf("GeneralReference.polling", options)
  const status = callable(check, "status", options.status, "a function from an output to its status")
  const valid = validOptions(check, pollingOptions, options)
  const { maxPolls, maxWaitIntervalMillis: maxDelay, maxWaitMillis: maxWait } = valid
  if (maxDelay < 1) check.reject("maxWaitInterval", options.maxWaitInterval, "a finite duration of at least 1 ms")
  const firstMillis = Math.min(baseMillis, maxDelay)
  if (maxWait <= firstMillis) check.reject("maxWait", options.maxWait, "a duration above the first wait")
  const is = (expected: Status) => (output: A) => status(output) === expected
  return Waiter.make({
    acceptors: [
      Waiter.output("success", is("SUCCESS")),
      Waiter.output("retry", is("NOT_READY")),
      Waiter.output("retry", is("THROTTLED")),
      Waiter.throttled("retry"),
      Waiter.output("failure", () => true, (output: A) => `the status is ${status(output)}`)
    ],
    // The first of the waits is over by then.
    delay: Backoff.exponential(2 * baseMillis).pipe(RetryPolicy.capped(maxDelay), RetryPolicy.maxAttempts(maxPolls)),
    initialDelay: firstMillis,
    minDelay: firstMillis,
    maxDelay,
    maxWait
  })
}

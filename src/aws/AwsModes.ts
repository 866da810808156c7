/**
 * The retry modes of the AWS SDKs, composed from the library's own parts.
 *
 * All need a `RetryQuota`: `RetryQuota.layer()` matches that of the SDKs. `awsAdaptive` also needs an
 * `AdaptiveRateLimiter`.
 *
 * @since 0.1.0
 */

import type * as Duration from "effect/Duration"
import * as Backoff from "../Backoff.ts"
import { AdaptiveRateLimiter, type RateLimitExceeded } from "../gates/AdaptiveRateLimiter.ts"
import { type Checks, checksOf, flag, rejectUnknown } from "../internal/checks.ts"
import * as RetryPolicy from "../RetryPolicy.ts"
import type { RetryQuota } from "../RetryQuota.ts"

/**
 * Options of the AWS modes.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Attempts, the first included: a whole number of at least 1, or `Infinity`. Default 3. */
  readonly maxAttempts?: number | undefined
  /** The longest backoff: a finite duration, not below the base. Default 20 seconds. */
  readonly maxBackoff?: Duration.Input | undefined
}

/** Rejects invalid options under their own names. */
const valid = (check: Checks, options: Options, baseMillis: number) => {
  const { maxAttempts = 3, maxBackoff = "20 seconds" } = options
  check.count("maxAttempts", maxAttempts, 1)
  if (check.positiveDuration("maxBackoff", maxBackoff) < baseMillis) {
    check.reject("maxBackoff", maxBackoff, "a duration not below base")
  }
  return rejectUnknown(check, options, { maxAttempts, maxBackoff })
}

/**
 * Makes the standard mode of the AWS reference, "retry behavior 2.0".
 *
 * **Details**
 *
 * | setting | value |
 * | --- | --- |
 * | delay before retry `n` | `min(b * 2^(n - 1) seconds, maxBackoff)`, `b` uniform in `[0, 1)`: the cap comes after jitter |
 * | attempts | 3 |
 * | quota | a retry takes 5, after a timeout 10; a success returns those of its retry, or adds 1 |
 * | server's hint | a floor, followed up to `maxBackoff` |
 *
 * The SDKs differ in base, factor and cost; this is the specification that botocore, Ruby, Swift and Rust follow.
 * Source: AWS SDKs and Tools Reference Guide, "Retry behavior".
 *
 * @category constructors
 * @since 0.1.0
 */
export const standard = (options: Options = {}): RetryPolicy.RetryPolicy<unknown, never, RetryQuota> => {
  const { maxAttempts, maxBackoff } = valid(checksOf("AwsModes.standard", options), options, 1000)
  return Backoff.exponential("1 second").pipe(
    RetryPolicy.jittered,
    RetryPolicy.capped(maxBackoff),
    RetryPolicy.honorRetryAfter({ atMost: maxBackoff }),
    RetryPolicy.maxAttempts(maxAttempts),
    RetryPolicy.whileRetryable,
    RetryPolicy.quotaGated({ cost: 5, timeoutCost: 10 })
  )
}

/**
 * Options of retry behavior 2.1.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options2026 extends Options {
  /** The first ceiling after a failure that is not a throttle. Default 50 milliseconds. */
  readonly base?: Duration.Input | undefined
  /**
   * Whether the operation polls: a call that the quota refuses to retry is then held back before it fails. Default
   * `false`.
   */
  readonly longPolling?: boolean | undefined
}

/**
 * Makes the standard mode of 2026, "retry behavior 2.1".
 *
 * **Details**
 *
 * | setting | value |
 * | --- | --- |
 * | delay before retry `n` | `b * min(x * 2^(n - 1), maxBackoff)`, `x` 1 second after a throttle, else `base`: the cap comes before jitter |
 * | attempts | 3 |
 * | quota | a retry takes 14, after a throttle 5; a success returns those of its retry, or adds 1 |
 * | server's hint | followed within `[delay, delay + 5 seconds]` |
 *
 * Source: AWS developer blog, "Announcing updated retry behavior for AWS SDKs and Tools", 2026; botocore
 * `retries/standard.py`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const standard2026 = (options: Options2026 = {}): RetryPolicy.RetryPolicy<unknown, never, RetryQuota> => {
  const check = checksOf("AwsModes.standard2026", options)
  const base = check.duration("base", options.base, 50)
  const longPolling = flag(check, "longPolling", options.longPolling)
  const { maxAttempts, maxBackoff } = valid(check, options, base)
  return Backoff.exponential(base, 2, { cap: maxBackoff, jitter: "full" }).pipe(
    RetryPolicy.whenThrottled(
      Backoff.exponential("1 second").pipe(
        RetryPolicy.capped(maxBackoff),
        RetryPolicy.jittered
      )
    ),
    RetryPolicy.honorRetryAfter({ overshoot: "5 seconds" }),
    RetryPolicy.maxAttempts(maxAttempts),
    RetryPolicy.whileRetryable,
    RetryPolicy.quotaGated({ cost: 14, throttlingCost: 5, longPolling })
  )
}

/**
 * The standard mode of the AWS reference, "retry behavior 2.0": 3 attempts, with waits of up to 1 and then 2 seconds.
 *
 * **Details**
 *
 * - Retries what is safe to retry: throttles, timeouts, lost connections, statuses 5xx, and errors with facts that allow it.
 * - Delay before retry `n`: `min(b * 2^(n - 1) seconds, 20 seconds)`, `b` uniform in `[0, 1)`.
 * - `Retry-After` and similar hints are a floor, followed up to 20 seconds.
 * - A retry takes 5 tokens of the quota, after a timeout 10; a success returns those of its retry, or adds 1. With the
 *   500 of `RetryQuota.layer()` an outage is retried 100 times, then calls are sent once until they succeed again.
 * - Needs `RetryQuota.layer()`, provided once for all calls of a resource.
 *
 * Other attempts: `awsStandard.pipe(RetryPolicy.withMaxAttempts(5))`.
 *
 * @see {@link standard} for its options and sources
 * @category policies
 * @since 0.1.0
 */
export const awsStandard: RetryPolicy.RetryPolicy<unknown, never, RetryQuota> = /* @__PURE__ */ standard()

/**
 * The standard mode of 2026, "retry behavior 2.1": 3 attempts, with waits of up to 50 and then 100 ms, after a
 * throttle 1 and then 2 seconds.
 *
 * **Details**
 *
 * - Retries what is safe to retry: throttles, timeouts, lost connections, statuses 5xx, and errors with facts that allow it.
 * - Delay before retry `n`: `b * min(x * 2^(n - 1), 20 seconds)`, `b` uniform in `[0, 1)`, `x` 50 milliseconds, after a
 *   throttle 1 second.
 * - `Retry-After` and similar hints are a floor, followed for at most 5 seconds more than the delay.
 * - A retry takes 14 tokens of the quota, after a throttle 5; a success returns those of its retry, or adds 1. With the
 *   500 of `RetryQuota.layer()` an outage is retried 35 times, then calls are sent once until they succeed again.
 * - Needs `RetryQuota.layer()`, provided once for all calls of a resource.
 *
 * @see {@link standard2026} for its options and sources
 * @category policies
 * @since 0.1.0
 */
export const awsStandard2026: RetryPolicy.RetryPolicy<unknown, never, RetryQuota> = /* @__PURE__ */ standard2026()

/**
 * Retry behavior 2.1 for DynamoDB and DynamoDB Streams: {@link awsStandard2026} with 4 attempts, and waits of up to 25,
 * 50 and 100 milliseconds.
 *
 * @category policies
 * @since 0.1.0
 */
export const awsDynamoDB2026: RetryPolicy.RetryPolicy<unknown, never, RetryQuota> = /* @__PURE__ */ standard2026({
  base: "25 millis",
  maxAttempts: 4
})

/**
 * The adaptive mode of the AWS reference: {@link awsStandard}, so 3 attempts at 5 tokens a retry, with an
 * `AdaptiveRateLimiter` that holds back every send, first or retry, once the service has throttled.
 *
 * **Details**
 *
 * Needs `RetryQuota.layer()` and `AdaptiveRateLimiter.layer()`, each provided once for all calls of a resource.
 *
 * **Gotchas**
 *
 * The AWS reference calls this mode experimental: its behavior might change. It is for calls of one resource that can
 * wait. If the limiter fails fast, or its queue is full, a first send that it refuses fails with `RateLimitExceeded`.
 *
 * @category policies
 * @since 0.1.0
 */
export const awsAdaptive: RetryPolicy.RetryPolicy<
  unknown,
  RateLimitExceeded,
  RetryQuota | AdaptiveRateLimiter
> = /* @__PURE__ */ RetryPolicy.requires(awsStandard, AdaptiveRateLimiter)

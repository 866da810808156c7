/**
 * The retry system of the AWS SDK for Java 1.x: a ceiling that doubles, full jitter after ordinary failures, equal
 * jitter after throttles.
 *
 * Full jitter retries quickly after a transient failure and spreads clients widest; equal jitter gives a throttling
 * service a break of at least half the ceiling.
 *
 * @since 0.1.0
 */

import type * as Duration from "effect/Duration"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { Failing } from "../../engine/delay.ts"
import { fromSource } from "../../engine/policy/policy.ts"
import { checksOf } from "../../internal/checks.ts"
import * as codes from "../../internal/classification/errorCodes.ts"
import { statusOf } from "../../internal/classification/wire.ts"
import { count, positiveDuration, validOptions } from "../../internal/options.ts"
import { short } from "../../internal/tryGet.ts"
import * as RetryClassifier from "../../RetryClassifier.ts"
import * as RetryInfo from "../../RetryInfo.ts"
import * as RetryPolicy from "../../RetryPolicy.ts"
import { answering, namesOf, olderSdk, throttlingBut } from "../internal/classifiers.ts"

/** From here on the ceiling stays the same, capped or not: in the SDK the shift would overflow. */
const maxExponent = 30

/** `java.util.Random.nextInt(bound)`: a whole number from 0 to `bound - 1`. */
const nextInt: Draw = (bound, { random }) => Math.floor(random.nextDoubleUnsafe() * bound)

/**
 * Options of the backoffs.
 *
 * @category models
 * @since 0.1.0
 */
export interface BackoffOptions {
  /** The first ceiling: a finite duration above 0. */
  readonly baseDelay: Duration.Input
  /** The highest ceiling: a finite duration above 0. If it is below `baseDelay`, it is the ceiling throughout. */
  readonly maxBackoff: Duration.Input
}

const backoffOptions = { baseDelay: positiveDuration(), maxBackoff: positiveDuration() }

/** A delay, given the ceiling. */
type Draw = (ceilingMillis: number, failing: Failing) => number

const backoff = (tag: string, options: BackoffOptions, draw: Draw): RetryPolicy.RetryPolicy => {
  const check = checksOf(tag, options)
  const { baseDelayMillis, maxBackoffMillis } = validOptions(check, backoffOptions, options)
  return fromSource(tag, check.input, (failing) => {
    const doubled = baseDelayMillis * 2 ** Math.min(failing.step - 1, maxExponent)
    return draw(Math.min(doubled, maxBackoffMillis), failing)
  })
}

/**
 * Waits the whole ceiling: `min(baseDelay * 2^min(n, 30), maxBackoff)`, `n` the retries made so far, from 0.
 *
 * **Details**
 *
 * The bound on the exponent matters if `maxBackoff` exceeds `2^30` times `baseDelay`: the delay then stays below it.
 * Source: aws-sdk-java `PredefinedBackoffStrategies.ExponentialBackoffStrategy`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const exponentialBackoff = (options: BackoffOptions): RetryPolicy.RetryPolicy =>
  backoff("JavaV1.exponentialBackoff", options, (ceiling) => ceiling)

/**
 * Waits whole milliseconds from 0 up to, but excluding, the ceiling of {@link exponentialBackoff}.
 *
 * **Details**
 *
 * `floor(random * ceiling)`. Source: aws-sdk-java `PredefinedBackoffStrategies.FullJitterBackoffStrategy`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fullJitterBackoff = (options: BackoffOptions): RetryPolicy.RetryPolicy =>
  backoff("JavaV1.fullJitterBackoff", options, nextInt)

/**
 * Waits whole milliseconds from half the ceiling of {@link exponentialBackoff} to the ceiling, both included.
 *
 * **Details**
 *
 * `half + floor(random * (half + 1))`, `half = floor(ceiling / 2)`.
 * Source: aws-sdk-java `PredefinedBackoffStrategies.EqualJitterBackoffStrategy`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const equalJitterBackoff = (options: BackoffOptions): RetryPolicy.RetryPolicy =>
  backoff("JavaV1.equalJitterBackoff", options, (ceiling, failing) => {
    const half = Math.floor(ceiling / 2)
    return half + nextInt(half + 1, failing)
  })

/**
 * Options of the policy.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The first ceiling after a failure that is not a throttle: a finite duration above 0. Default 100 milliseconds. */
  readonly baseDelay?: Duration.Input | undefined
  /** The first ceiling after a throttle: a finite duration above 0. Default 500 milliseconds. */
  readonly throttledBaseDelay?: Duration.Input | undefined
  /** The highest ceiling: a finite duration above 0. Default 20 seconds. */
  readonly maxBackoff?: Duration.Input | undefined
  /** Retries, not counting the first attempt: a whole number of at least 0, or `Infinity`. Default 3. */
  readonly maxRetries?: number | undefined
}

const policyOptions = {
  baseDelay: positiveDuration(100),
  throttledBaseDelay: positiveDuration(500),
  maxBackoff: positiveDuration(20_000),
  maxRetries: count(0, 3)
}

/**
 * Makes a policy of the SDK: {@link fullJitterBackoff} from `baseDelay`, and after a throttle
 * {@link equalJitterBackoff} from `throttledBaseDelay`. Both share one retry count.
 *
 * **Details**
 *
 * A server's hint is not followed. The classifier decides what is retried, and what is a throttle: {@link layer} sets
 * that of the SDK. Source: aws-sdk-java `PredefinedBackoffStrategies.SDKDefaultBackoffStrategy`,
 * `PredefinedRetryPolicies`.
 *
 * **Gotchas**
 *
 * The SDK's client also limits retries by a quota, which is not part of its policies, nor of this one. Its costs are
 * `RetryPolicy.quotaGated({ cost: 5, throttlingCost: 0 })`, its capacity is that of `RetryQuota.layer()`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const policy = (options: Options = {}): RetryPolicy.RetryPolicy => {
  const valid = validOptions(checksOf("JavaV1.policy", options), policyOptions, options)
  const maxBackoff = valid.maxBackoffMillis
  return fullJitterBackoff({ baseDelay: valid.baseDelayMillis, maxBackoff }).pipe(
    RetryPolicy.whenThrottled(equalJitterBackoff({ baseDelay: valid.throttledBaseDelayMillis, maxBackoff })),
    RetryPolicy.maxAttempts(valid.maxRetries + 1),
    RetryPolicy.whileRetryable
  )
}

/**
 * The default policy of the SDK: 3 retries, ceilings from 100 milliseconds, after a throttle from 500 milliseconds, up to
 * 20 seconds. See {@link policy}.
 *
 * @category policies
 * @since 0.1.0
 */
export const defaultPolicy: RetryPolicy.RetryPolicy = /* @__PURE__ */ policy()

/**
 * The policy of the SDK for DynamoDB: 10 retries and ceilings from 25 milliseconds; after a throttle from 500, as
 * usual.
 *
 * @category policies
 * @since 0.1.0
 */
export const dynamoDBPolicy: RetryPolicy.RetryPolicy = /* @__PURE__ */ policy({ baseDelay: 25, maxRetries: 10 })

const answered = /* @__PURE__ */ answering({
  status429: true,
  throttling: /* @__PURE__ */ throttlingBut("LimitExceededException", "TransactionInProgressException"),
  transient: /* @__PURE__ */ new Set([
    ...codes.awsTransientCodes,
    "IDPCommunicationError",
    "TransactionInProgressException"
  ]),
  corrected: codes.awsClockSkewCodes
})

/** Without a body the SDK builds the code from the status and the reason phrase: "503 Slow Down" is `SlowDown`. */
const spelled = (code: unknown, status: number | undefined): unknown =>
  typeof code === "string" && status !== undefined && code.startsWith(String(status))
    ? short(code).slice(String(status).length).replace(/\s/g, "")
    : code

const service: RetryClassifier.RetryClassifier = (error) => {
  const status = statusOf(error)
  const names = namesOf(error).map((code) => spelled(code, status))
  if (names.includes("TimeoutError")) return Option.some(RetryInfo.timedOut)
  return Option.fromUndefinedOr(answered(names, status))
}

/**
 * What the SDK retries: its throttling codes and any 429 as throttling; the statuses 500, 502, 503 and 504; the codes
 * `IDPCommunicationError`, `RequestTimeout`, `RequestTimeoutException` and `TransactionInProgressException`; six codes
 * for clock skew; network failures, including timeouts.
 *
 * **Details**
 *
 * A code is the `name`, `code` or `Code` of the error, or the words after the status in `"503 Slow Down"`. A status is
 * its `$metadata.httpStatusCode`, `statusCode` or `status`, or that of its response. A `TransportError` of Effect's
 * HTTP client is an `IOException`: retried, whatever the method. If the error says nothing, its causes are checked.
 * Facts that an error itself carries come first.
 *
 * Unlike `RetryClassifier.defaultClassifier`, `TransactionInProgressException` is not a throttle,
 * `LimitExceededException` is retried only if its status is, `IDPCommunicationError` is retried, and so is clock skew:
 * the SDK has corrected it by then, and so should the caller. Source: aws-sdk-java `RetryUtils` of the late 1.x, which
 * has `RETRYABLE_ERROR_CODES` (1.11 of 2017 lacks them and two of the throttling codes),
 * `PredefinedRetryPolicies.SDKDefaultRetryCondition`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const classifier: RetryClassifier.RetryClassifier = /* @__PURE__ */ olderSdk(service)

/**
 * A layer that sets the {@link classifier} of the SDK.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<never> = /* @__PURE__ */ RetryClassifier.layer(classifier)

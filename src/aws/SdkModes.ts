/**
 * The retry modes of the AWS SDKs as each implements them: with its own constants, order of cap and jitter, definition
 * of a timeout, and quota.
 *
 * `AwsModes` is the specification that all SDKs cite; their code differs from it, and from each other. This module has
 * "retry behavior 2.0", which an SDK uses until it is switched to that of 2026. Retry behavior 2.1 is the same in all:
 * `awsStandard2026`; `docs/aws-modes.md` lists the few differences.
 *
 * **Example** (As the SDK for Ruby retries)
 *
 * ```ts
 * const ruby = SdkModes.ruby()
 * const program = callDynamo.pipe(withRetry(ruby.policy), Effect.provide(ruby.layer))
 * ```
 *
 * The package's index does not export this module: import `effect-retry/aws/SdkModes`. Older SDKs, and all settings of
 * Kotlin, are in `aws/legacy`.
 *
 * @since 0.1.0
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Backoff from "../Backoff.ts"
import { AdaptiveRateLimiter, type RateLimitExceeded } from "../gates/AdaptiveRateLimiter.ts"
import { checksOf } from "../internal/checks.ts"
import * as codes from "../internal/classification/errorCodes.ts"
import { count, positiveDuration, validOptions } from "../internal/options.ts"
import { tokensIn, watched } from "../internal/sharing.ts"
import * as RetryClassifier from "../RetryClassifier.ts"
import * as RetryPolicy from "../RetryPolicy.ts"
import * as RetryQuota from "../RetryQuota.ts"
import { classifierOf, type ErrorRules, throttlingBut } from "./internal/classifiers.ts"
import { rewardingEverySuccess } from "./internal/rewardingStore.ts"
import * as JavaV1 from "./legacy/JavaV1.ts"
import * as Kotlin from "./legacy/Kotlin.ts"

/**
 * Options of an SDK's mode.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Attempts, the first included: a whole number of at least 1, or `Infinity`. Default 3, in Java's legacy mode 4. */
  readonly maxAttempts?: number | undefined
  /** The longest backoff: a finite duration above 0. Default 20 seconds. */
  readonly maxBackoff?: Duration.Input | undefined
}

/**
 * The modes of an SDK, and what they need.
 *
 * @category models
 * @since 0.1.0
 */
export interface SdkMode {
  /** Its standard mode, or the legacy mode if that was requested. */
  readonly policy: RetryPolicy.RetryPolicy<unknown, never, RetryQuota.RetryQuota>
  /** Its adaptive mode: the same, with a send token before every send. */
  readonly adaptive: RetryPolicy.RetryPolicy<
    unknown,
    RateLimitExceeded,
    RetryQuota.RetryQuota | AdaptiveRateLimiter
  >
  /** Decides what is retried, what counts as a throttle, and what costs as much as a timeout. */
  readonly classifier: RetryClassifier.RetryClassifier
  /** A quota like the SDK's, and the classifier. Like `RetryQuota.layer`, provide it once per resource. */
  readonly layer: Layer.Layer<RetryQuota.RetryQuota>
}

/** What else differs. */
interface Others {
  /** Default 3. */
  readonly attempts?: number
  /** Default: a retry takes 5, or 10 after what the SDK considers a timeout. */
  readonly costs?: RetryPolicy.QuotaOptions
  /** Default: a full quota of 500. */
  readonly quota?: () => Layer.Layer<RetryQuota.RetryQuota>
}

const mode = (
  name: string,
  delays: (maxMillis: number) => RetryPolicy.RetryPolicy,
  errors: ErrorRules | RetryClassifier.RetryClassifier,
  { attempts = 3, costs = { cost: 5, timeoutCost: 10 }, quota = RetryQuota.layer }: Others = {}
) =>
(options: Options = {}): SdkMode => {
  const record = { maxAttempts: count(1, attempts), maxBackoff: positiveDuration(20_000) }
  const { maxAttempts, maxBackoffMillis } = validOptions(checksOf(`SdkModes.${name}`, options), record, options)
  const policy = delays(maxBackoffMillis).pipe(
    RetryPolicy.maxAttempts(maxAttempts),
    RetryPolicy.whileRetryable,
    RetryPolicy.quotaGated(costs)
  )
  const classifier = typeof errors === "function" ? errors : classifierOf(errors)
  return {
    policy,
    adaptive: RetryPolicy.requires(policy, AdaptiveRateLimiter),
    classifier,
    layer: Layer.merge(quota(), RetryClassifier.layer(classifier))
  }
}

/** `b * min(base * 2^(n - 1), cap)`. */
const cappedThenJittered = (base: Duration.Input, maxMillis: number): RetryPolicy.RetryPolicy =>
  Backoff.exponential(base).pipe(RetryPolicy.capped(maxMillis), RetryPolicy.jittered("full"))

/** `min(b * base * 2^(n - 1), cap)`. */
const jitteredThenCapped = (base: Duration.Input, maxMillis: number): RetryPolicy.RetryPolicy =>
  Backoff.exponential(base).pipe(RetryPolicy.jittered("full"), RetryPolicy.capped(maxMillis))

const second = 1000

/** A hint replaces the delay, however short; one beyond the cap is cut to it. */
const orHint = (delays: RetryPolicy.RetryPolicy, maxMillis: number): RetryPolicy.RetryPolicy =>
  RetryPolicy.mapDelay(delays, function hintOrDelay(delay, { info }) {
    return info?.retryAfter === undefined ? delay : Math.min(Duration.toMillis(info.retryAfter), maxMillis)
  })

/**
 * The SDK for JavaScript v3 before retry behavior 2.1, up to `@smithy/core` 3.39.
 *
 * **Details**
 *
 * | setting | value |
 * | --- | --- |
 * | delay before retry `n` | `b * min(100 ms * 2^(n - 1), maxBackoff)`, from 500 ms if throttled |
 * | quota | a retry takes 10, after a throttle 5: the SDK charges every transient error like a timeout |
 * | server's hint | within `[delay, delay + 5 seconds]` (since April 2026) |
 * | retried | what `RetryClassifier.defaultClassifier` retries |
 *
 * Delays are rounded up to whole milliseconds; the SDK rounds down.
 * Source: @smithy/core 3.39.0 `submodules/retry/util-retry`, which the tests run.
 *
 * @category constructors
 * @since 0.1.0
 */
export const javaScript = /* @__PURE__ */ mode(
  "javaScript",
  (max) =>
    cappedThenJittered("100 millis", max).pipe(
      RetryPolicy.whenThrottled(cappedThenJittered("500 millis", max)),
      RetryPolicy.honorRetryAfter({ overshoot: "5 seconds" })
    ),
  RetryClassifier.defaultClassifier,
  { costs: { cost: 10, throttlingCost: 5 } }
)

const javaErrors: ErrorRules = {
  throttling: /* @__PURE__ */ throttlingBut(
    "LimitExceededException",
    "PriorRequestNotComplete",
    "TransactionInProgressException"
  ),
  status429: true,
  transient: /* @__PURE__ */ new Set([
    ...codes.awsTransientCodes,
    ...codes.awsClockSkewCodes,
    "PriorRequestNotComplete"
  ])
}

/** In Java a success without a retry adds nothing. */
const javaQuota = () => RetryQuota.layer({ successIncrement: 0 })

/** Its modes differ in the delay after a throttle and in its cost. */
const javaDelays = (throttled: RetryPolicy.RetryPolicy, maxBackoff: number): RetryPolicy.RetryPolicy =>
  JavaV1.fullJitterBackoff({ baseDelay: 100, maxBackoff }).pipe(
    RetryPolicy.whenThrottled(throttled),
    RetryPolicy.honorRetryAfter({ atMost: maxBackoff })
  )

/**
 * The SDK for Java 2.x in standard mode.
 *
 * **Details**
 *
 * | setting | value |
 * | --- | --- |
 * | delay before retry `n` | `b * min(100 ms * 2^(n - 1), maxBackoff)`, from 1 second if throttled; whole milliseconds
 * |
 * | quota | a retry takes 5, also after timeouts; a success returns those of its retry, without a retry nothing |
 * | server's hint | a floor, cut to `maxBackoff` (in the SDK, unbounded, and followed only by its synchronous clients)
 * |
 * | retried | all but three of the throttling codes, and 429, as throttling; `PriorRequestNotComplete`, timeouts, clock
 * skew, 500, 502, 503, 504 |
 *
 * Source: aws-sdk-java-v2 `core/retries` `DefaultRetryStrategy`, `AwsErrorCode`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const java = /* @__PURE__ */ mode(
  "java",
  (maxBackoff) => javaDelays(JavaV1.fullJitterBackoff({ baseDelay: second, maxBackoff }), maxBackoff),
  javaErrors,
  { costs: { cost: 5 }, quota: javaQuota }
)

/**
 * The SDK for Java 2.x in legacy mode, its default until it is switched to retry behavior 2.1: 4 attempts; after a
 * throttle, equal jitter from 500 milliseconds and a free retry. The rest is as in {@link java}.
 *
 * Source: aws-sdk-java-v2 `core/retries` `DefaultRetryStrategy.Legacy`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const javaLegacy = /* @__PURE__ */ mode(
  "javaLegacy",
  (maxBackoff) => javaDelays(JavaV1.equalJitterBackoff({ baseDelay: 500, maxBackoff }), maxBackoff),
  javaErrors,
  { attempts: 4, costs: { cost: 5, throttlingCost: 0 }, quota: javaQuota }
)

const goDelays = (maxMillis: number): RetryPolicy.RetryPolicy => {
  const lastJittered = Math.floor(Math.log2(maxMillis / second))
  return RetryPolicy.fromDelay(function goDelay({ attempt, random }) {
    return attempt > lastJittered ? maxMillis : random.nextDoubleUnsafe() * second * 2 ** attempt
  })
}

const goQuota = () =>
  Layer.effect(
    RetryQuota.RetryQuota,
    watched("RetryQuota", Effect.map(RetryQuota.make(), rewardingEverySuccess), tokensIn)
  )

/**
 * The SDK for Go v2.
 *
 * **Details**
 *
 * | setting | value |
 * | --- | --- |
 * | delay before retry `n` | `b * 2^n` seconds: the exponent counts from 1. Once `n` exceeds `log2` of the cap, the
 * whole cap, without jitter |
 * | quota | a retry takes 5, 10 after a client timeout; a success returns those of its retry and adds 1, whether or not
 * it was retried |
 * | server's hint | none |
 * | retried | the 14 throttling codes, `RequestTimeout`, `RequestTimeoutException`, 500, 502, 503, 504; no 429 without a code |
 *
 * Source: aws-sdk-go-v2 `aws/retry` `jitter_backoff.go`, `standard.go`, `middleware.go`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const go = /* @__PURE__ */ mode("go", goDelays, {}, { quota: goQuota })

/**
 * The SDK for Rust.
 *
 * **Details**
 *
 * | setting | value |
 * | --- | --- |
 * | delay before retry `n` | `b * min(2^(n - 1) seconds, maxBackoff)` |
 * | quota | a retry takes 5; 10 after a transient error, which is any except throttles and those that only a model
 * calls retryable |
 * | server's hint | replaces the delay, cut to `maxBackoff` |
 * | retried | as {@link go} |
 *
 * Source: smithy-rs 56ee88c5c6 `client/retries/strategy/standard.rs`, `token_bucket.rs`, `classifiers.rs`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const rust = /* @__PURE__ */ mode("rust", (max) => orHint(cappedThenJittered(second, max), max), {
  modelFirst: true,
  timeout: { codes: codes.awsTransientCodes, statuses: codes.awsTransientStatuses, network: "all" }
})

/**
 * The SDK for Kotlin with its defaults: `Kotlin.standardRetryStrategy` of `aws/legacy/Kotlin`, where everything is
 * configurable.
 *
 * **Details**
 *
 * | setting | value |
 * | --- | --- |
 * | delay before retry `n` | `min(10 ms * 1.5^(n - 1), maxBackoff) * (1 - b)`, from 1 second if throttled; whole
 * milliseconds |
 * | quota | a retry takes 5; 10 after throttles and transient errors |
 * | server's hint | within `[delay, delay + 5 seconds]` |
 *
 * Source: smithy-kotlin 6373a5f747.
 *
 * @category constructors
 * @since 0.1.0
 */
export const kotlin = /* @__PURE__ */ mode(
  "kotlin",
  (maxBackoff) => Kotlin.exponentialBackoffWithJitter({ maxBackoff }),
  Kotlin.awsRetryPolicy,
  { costs: { cost: 5, throttlingCost: 10, timeoutCost: 10 } }
)

const networking = /* @__PURE__ */ new Set([...codes.awsTransientCodes, "IDPCommunicationError", "InternalError"])

/**
 * The SDK for Swift.
 *
 * **Details**
 *
 * | setting | value |
 * | --- | --- |
 * | delay before retry `n` | `min(b * 2^(n - 1) seconds, maxBackoff)` |
 * | quota | a retry takes 5; 10 after the statuses 408 and 504 and client timeouts |
 * | server's hint | replaces the delay, cut to `maxBackoff` (in the SDK unbounded) |
 * | retried | as {@link go}, and `InternalError`, `IDPCommunicationError`, 408 |
 *
 * Source: smithy-swift d55aa01ea4 `SmithyRetries`, aws-sdk-swift `AWSRetryErrorInfoProvider`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const swift = /* @__PURE__ */ mode("swift", (max) => orHint(jitteredThenCapped(second, max), max), {
  transient: networking,
  statuses: /* @__PURE__ */ new Set([...codes.awsTransientStatuses, 408]),
  timeout: { statuses: /* @__PURE__ */ new Set([408, 504]) }
})

/**
 * The SDK for Ruby.
 *
 * **Details**
 *
 * | setting | value |
 * | --- | --- |
 * | delay before retry `n` | `min(b * 2^(n - 1) seconds, maxBackoff)` |
 * | quota | a retry takes 5; 10 after a network failure, `RequestTimeout`, `RequestTimeoutException`, `InternalError`,
 * `IDPCommunicationError` |
 * | server's hint | none |
 * | retried | every status from 500 to 599; any code containing `throttl`, and 429, as throttling; `BadDigest`,
 * `CRC32CheckFailed` |
 *
 * Left out: clock skew, expired credentials and stale endpoints, which the SDK corrects before it retries. Source:
 * aws-sdk-ruby bac3491f81 `plugins/retry_errors.rb`, `plugins/retries`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const ruby = /* @__PURE__ */ mode("ruby", (max) => jitteredThenCapped(second, max), {
  throttlingWord: /throttl/i,
  status429: true,
  transient: /* @__PURE__ */ new Set([...networking, "BadDigest", "CRC32CheckFailed"]),
  statuses: { has: (status) => status >= 500 && status <= 599 },
  timeout: { codes: networking, network: "all" }
})

/**
 * The SDK for PHP.
 *
 * **Details**
 *
 * | setting | value |
 * | --- | --- |
 * | delay before retry `n` | `min(b * 2^n seconds, maxBackoff)`: the exponent counts from 1 |
 * | quota | a retry takes 5, 10 after a network failure |
 * | server's hint | none |
 * | retried | as {@link go} |
 *
 * The SDK asks its quota before it checks the attempts, so the last failure of a call takes tokens too. Here it does
 * not. Source: aws-sdk-php `RetryMiddlewareV2`, `Retry/QuotaManager`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const php = /* @__PURE__ */ mode("php", (max) => jitteredThenCapped(2 * second, max), {
  timeout: { network: "all" }
})

/**
 * The SDK for .NET.
 *
 * **Details**
 *
 * | setting | value |
 * | --- | --- |
 * | delay before retry `n` | `min(b * 2^(n - 1) seconds, maxBackoff)` |
 * | quota | a retry takes 5; 10 after `RequestTimeout` and `RequestTimeoutException`, but not after client timeouts |
 * | server's hint | none |
 * | retried | as {@link go} without `EC2ThrottledException` |
 *
 * Left out: clock skew and stale endpoints, which the SDK corrects before it retries. Source: aws-sdk-net
 * `Pipeline/RetryHandler/StandardRetryPolicy.cs`, `RetryPolicy.cs`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const dotNet = /* @__PURE__ */ mode("dotNet", (max) => jitteredThenCapped(second, max), {
  throttling: /* @__PURE__ */ throttlingBut("EC2ThrottledException"),
  timeout: { codes: codes.awsTransientCodes, network: "none" }
})

/** The maximum shift in C++. */
const cppMaxShift = 15

const cppDelays = (maxMillis: number): RetryPolicy.RetryPolicy =>
  RetryPolicy.fromDelay(function cppDelay({ attempt, random }) {
    const start = Math.floor(random.nextDoubleUnsafe() * second)
    return Math.min(start * 2 ** Math.min(attempt - 1, cppMaxShift), maxMillis)
  })

/**
 * The SDK for C++.
 *
 * **Details**
 *
 * | setting | value |
 * | --- | --- |
 * | delay before retry `n` | `min(r * 2^min(n - 1, 15), maxBackoff)`, `r` whole milliseconds from 0 to 999 |
 * | quota | a retry takes 5; 10 after `RequestTimeout` and `RequestTimeoutException` |
 * | server's hint | none |
 * | retried | as {@link go}, and the statuses 408, 419, 440, 509, 598, 599; 429 |
 *
 * It could not be established which timeouts of its HTTP clients the SDK counts as `REQUEST_TIMEOUT`, or its own list
 * of throttling codes: here they are client timeouts, and the 14 that the SDKs share. Source: aws-sdk-cpp f7972a01f1
 * `client/RetryStrategy.cpp`, `http/HttpResponse.h`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const cpp = /* @__PURE__ */ mode("cpp", cppDelays, {
  status429: true,
  statuses: /* @__PURE__ */ new Set([...codes.awsTransientStatuses, 408, 419, 440, 509, 598, 599]),
  timeout: { codes: codes.awsTransientCodes }
})

/**
 * The SDK for Python, botocore and boto3, in standard mode. Its default until it is switched to retry behavior 2.1 is
 * legacy mode: `BotocoreLegacy`.
 *
 * **Details**
 *
 * | setting | value |
 * | --- | --- |
 * | delay before retry `n` | `b * min(2^(n - 1) seconds, maxBackoff)` |
 * | quota | a retry takes 5, 10 after a client timeout |
 * | server's hint | none |
 * | retried | as {@link go} |
 *
 * The SDK checks the attempts before the error: the same calls are retried, but the reason of the last failure differs.
 * It retries `IDPCommunicationError` for STS; here only `BotocoreLegacy` and the classifiers that say so do. Source:
 * botocore 0e6e2404b8 `retries/standard.py`, `retries/quota.py`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const python = /* @__PURE__ */ mode("python", (max) => cappedThenJittered(second, max), {})

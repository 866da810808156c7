/**
 * The retry system of the AWS SDK for JavaScript 2.x: full jitter under a ceiling that doubles without end, and a
 * custom backoff function that can stop retrying.
 *
 * @since 0.1.0
 */

import type * as Duration from "effect/Duration"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { type Delay, exponential, fullJitter, noDelay } from "../../engine/delay.ts"
import { fromSource } from "../../engine/policy/policy.ts"
import { callable, type Checks, checksOf } from "../../internal/checks.ts"
import * as codes from "../../internal/classification/errorCodes.ts"
import { headerIn, headersOf, statusOf } from "../../internal/classification/wire.ts"
import { named } from "../../internal/format.ts"
import * as Valid from "../../internal/options.ts"
import { get } from "../../internal/tryGet.ts"
import * as RetryClassifier from "../../RetryClassifier.ts"
import * as RetryInfo from "../../RetryInfo.ts"
import * as RetryPolicy from "../../RetryPolicy.ts"
import { hintMillis, namesOf, olderSdk, throttlingBut } from "../internal/classifiers.ts"

/**
 * Options of the delays.
 *
 * @category models
 * @since 0.1.0
 */
export interface BackoffOptions {
  /** The first ceiling: a finite duration of at least 0. Default 100 milliseconds. */
  readonly base?: Duration.Input | undefined
  /**
   * Returns the delay in milliseconds, in place of `base` and randomness, given the retries made so far (0 at first)
   * and the error. A negative delay stops retrying; one that is not a number counts as 0.
   */
  readonly customBackoff?: ((retryCount: number, error: unknown) => number) | undefined
  /**
   * Whether to add a server's hint to the delay, as the SDK does when it requests credentials; the calls of its service
   * clients ignore hints. Default `false`.
   */
  readonly addRetryAfter?: boolean | undefined
  /**
   * The longest hint to add; a longer one is cut to it: a finite duration of at least 0. The SDK has no such bound.
   * Default 20 seconds.
   */
  readonly maxRetryAfter?: Duration.Input | undefined
}

/**
 * Options of the policy.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends BackoffOptions {
  /** Retries, not counting the first attempt: a whole number of at least 0, or `Infinity`. Default 3. */
  readonly maxRetries?: number | undefined
}

const delayOf = (baseMillis: number, custom: BackoffOptions["customBackoff"]): Delay =>
  custom === undefined
    ? ({ random, step }) => fullJitter(exponential(baseMillis, 2)(step), random.nextDoubleUnsafe())
    : ({ attempt, error }) => numberOf(custom(attempt - 1, error))

const numberOf = (value: unknown): number => typeof value === "number" && !Number.isNaN(value) ? value : 0

const backoffOptions = {
  base: Valid.duration(100),
  customBackoff: Valid.inCode,
  addRetryAfter: Valid.flag(),
  maxRetryAfter: Valid.duration(20_000)
}

const backoffOf = (check: Checks, options: BackoffOptions): RetryPolicy.RetryPolicy => {
  const { customBackoff } = options
  if (customBackoff !== undefined) {
    check.input.customBackoff = named(callable(check, "customBackoff", customBackoff))
  }
  const { addRetryAfter, baseMillis, maxRetryAfterMillis } = Valid.validOptions(check, backoffOptions, options)
  const backoff = delayOf(baseMillis, customBackoff)
  return fromSource("JavaScriptV2.backoff", check.input, (failing) => {
    if (Option.isSome(redirects(failing.error))) return 0
    const delay = backoff(failing)
    if (delay < 0) return noDelay
    return addRetryAfter ? delay + Math.min(hintMillis(failing), maxRetryAfterMillis) : delay
  })
}

/**
 * Waits `random * 2^n * base`, `n` the retries made so far, from 0: the delays of {@link policy}. They end when a
 * `customBackoff` stops.
 *
 * @category constructors
 * @since 0.1.0
 */
export const backoff = (options: BackoffOptions = {}): RetryPolicy.RetryPolicy =>
  backoffOf(checksOf("JavaScriptV2.backoff", options), options)

/**
 * Makes a policy of the SDK: `random * 2^n * base`, `n` the retries made so far, from 0.
 *
 * **Details**
 *
 * As in the SDK, the calls of a service client ignore a server's hint, and requests for credentials add it to the
 * delay: `addRetryAfter`. There is no cap: `RetryPolicy.capped` adds one. A redirect is retried immediately, ignoring
 * hints. A `customBackoff` that stops retrying does so with the reason `"schedule"`. The classifier decides what is
 * retried: {@link layer} sets that of the SDK. Source: aws-sdk 2.1693.0 `lib/util.js`, `lib/service.js`,
 * `lib/event_listeners.js`.
 *
 * **Gotchas**
 *
 * The SDK's clients also follow up to 10 redirects after all retries; here a redirect is a retry like any other. They
 * also ask `customBackoff` about errors that are then not retried.
 *
 * @category constructors
 * @since 0.1.0
 */
export const policy = (options: Options = {}): RetryPolicy.RetryPolicy => {
  const check = checksOf("JavaScriptV2.policy", options)
  const retries = check.count("maxRetries", options.maxRetries, 0, 3)
  // It is no option of the delays, which show those that they have.
  delete check.input.maxRetries
  return backoffOf(check, options).pipe(
    RetryPolicy.maxAttempts(retries + 1),
    RetryPolicy.whileRetryable
  )
}

/**
 * The policy of the SDK for most services: 3 retries, base 100 milliseconds. See {@link policy}.
 *
 * @category policies
 * @since 0.1.0
 */
export const defaultPolicy: RetryPolicy.RetryPolicy = /* @__PURE__ */ policy()

/**
 * The policy of the SDK for DynamoDB: 10 retries, base 50 milliseconds.
 *
 * @category policies
 * @since 0.1.0
 */
export const dynamoDBPolicy: RetryPolicy.RetryPolicy = /* @__PURE__ */ policy({ base: 50, maxRetries: 10 })

const throttlingCodes: ReadonlySet<unknown> = /* @__PURE__ */ throttlingBut(
  "BandwidthLimitExceeded",
  "LimitExceededException",
  "PriorRequestNotComplete",
  "SlowDown",
  "ThrottledException"
)

/** Network failures, credentials that the SDK has renewed by then, and DynamoDB's own error. */
const retryableCodes: ReadonlySet<unknown> = /* @__PURE__ */ new Set([
  "NetworkingError",
  "UnknownEndpoint",
  "ExpiredToken",
  "ExpiredTokenException",
  "RequestExpired",
  "CRC32CheckFailed"
])

const hasCode = (error: unknown, set: ReadonlySet<unknown>): boolean => namesOf(error).some((code) => set.has(code))

const headerOf = (error: unknown, name: string): unknown => headerIn(headersOf(error) ?? {})(name)

const isRedirect = (error: unknown): boolean => {
  if (get(error, "redirect") === true) return true
  const status = statusOf(error) ?? 0
  return status >= 300 && status < 400 && (headerOf(error, "location") ?? undefined) !== undefined
}

const redirects = RetryClassifier.followingCause((error) =>
  isRedirect(error) ? Option.some(RetryInfo.make()) : Option.none()
)

const isExpiredSignature = (error: unknown): boolean =>
  String(get(error, "message")).includes("expired") && namesOf(error).some((code) => String(code).includes("Signature"))

/** Whole seconds, as `parseInt` reads them; on an error of the SDK the hint is already in milliseconds. */
const retryAfterOf = (error: unknown): unknown =>
  get(error, "retryAfter") ?? Number.parseInt(String(headerOf(error, "retry-after")), 10) * 1000

const isRetryable = (error: unknown): boolean =>
  get(error, "retryable") === true || hasCode(error, retryableCodes) || isRedirect(error) || isExpiredSignature(error)

const infoOf = (error: unknown): RetryInfo.RetryInfo | undefined => {
  if (get(error, "retryable") === false) return RetryInfo.notRetryable
  const status = statusOf(error) ?? 0
  if (status === 429 || hasCode(error, throttlingCodes)) return RetryInfo.throttled()
  if (namesOf(error).includes("TimeoutError")) return RetryInfo.timedOut
  if (status >= 500) return RetryInfo.transient
  return isRetryable(error) ? RetryInfo.make() : undefined
}

const service: RetryClassifier.RetryClassifier = (error) =>
  Option.map(
    Option.fromUndefinedOr(infoOf(error)),
    (info) => RetryInfo.make({ ...info, retryAfter: retryAfterOf(error) as Duration.Input })
  )

/**
 * What the SDK retries: its throttling codes and any 429 as throttling; every status of at least 500; network failures,
 * including timeouts; expired credentials and signatures; redirects; DynamoDB's `CRC32CheckFailed`.
 *
 * **Details**
 *
 * If an error of the SDK itself has `retryable`, that decides. Otherwise a code is the `code`, `name` or `Code` of the
 * error, a status its `$metadata.httpStatusCode`, `statusCode` or `status`, or that of its response. The hint is
 * `retry-after` in whole seconds. A `TransportError` of Effect's HTTP client is a `NetworkingError`: retried, whatever
 * the method. If the error says nothing, its causes are checked. Facts that an error itself carries come first.
 *
 * Unlike `RetryClassifier.defaultClassifier`, 501 and 505 are retried; `BandwidthLimitExceeded`,
 * `LimitExceededException`, `PriorRequestNotComplete`, `RequestTimeout`, `SlowDown` and `ThrottledException` are not,
 * unless their status is: some of them are retried by the client of one service, which sets `retryable`.
 * Source: aws-sdk 2.1693.0 `lib/service.js`, `lib/event_listeners.js`, `lib/services/dynamodb.js`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const classifier: RetryClassifier.RetryClassifier = /* @__PURE__ */ olderSdk(service)

/**
 * What the SDK retries if its `correctClockSkew` is set: what {@link classifier} retries, and six codes for clock skew.
 * The caller corrects the clock.
 *
 * @category constructors
 * @since 0.1.0
 */
export const correctingClockSkew: RetryClassifier.RetryClassifier = /* @__PURE__ */ RetryClassifier.orElse(
  classifier,
  /* @__PURE__ */ RetryClassifier.followingCause((error) =>
    hasCode(error, codes.awsClockSkewCodes) ? Option.some(RetryInfo.make({ fault: "client" })) : Option.none()
  )
)

/**
 * A layer that sets the {@link classifier} of the SDK.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<never> = /* @__PURE__ */ RetryClassifier.layer(classifier)

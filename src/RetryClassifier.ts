/**
 * What an error says about retrying.
 *
 * A classifier turns an error of any shape into `RetryInfo`, or into nothing when it does not know it. Classifiers form
 * an ordered chain: the first one that answers decides, and an answer whose `safety` is `"No"` is a veto that no later
 * one can lift. Policies ask the one in {@link CurrentClassifier}.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import { dual } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as codes from "./internal/codes.ts"
import * as Hint from "./internal/hint.ts"
import { get, getNumber, getString } from "./internal/safe.ts"
import * as RetryInfo from "./RetryInfo.ts"

/**
 * A function from an error to its facts; none when it does not know the error.
 *
 * @category models
 * @since 0.1.0
 */
export type RetryClassifier = (error: unknown) => Option.Option<RetryInfo.RetryInfo>

/** How far a chain of causes is followed, as in the AWS SDK for JavaScript. */
const maxCauseDepth = 10

const none: Option.Option<RetryInfo.RetryInfo> = Option.none()
const veto = Option.some(RetryInfo.notRetryable)
const transient = Option.some(RetryInfo.transient)
const timedOut = Option.some(RetryInfo.timedOut)
const throttledInfo = RetryInfo.throttled()
const throttled = Option.some(throttledInfo)

/**
 * Asks a classifier. One that throws, whatever the error does to it, counts as one that does not know.
 *
 * @category getters
 * @since 0.1.0
 */
export const classify = (classifier: RetryClassifier, error: unknown): Option.Option<RetryInfo.RetryInfo> => {
  try {
    return classifier(error)
  } catch {
    return none
  }
}

/**
 * Asks `that` about the errors that `self` does not know.
 *
 * @category combinators
 * @since 0.1.0
 */
export const orElse: {
  (that: RetryClassifier): (self: RetryClassifier) => RetryClassifier
  (self: RetryClassifier, that: RetryClassifier): RetryClassifier
} = dual(2, (self: RetryClassifier, that: RetryClassifier): RetryClassifier => (error) => {
  const info = classify(self, error)
  return Option.isSome(info) ? info : classify(that, error)
})

/**
 * Forbids a retry of the errors that satisfy the predicate, whatever the chain says of them.
 *
 * @category combinators
 * @since 0.1.0
 */
export const vetoing: {
  (predicate: (error: unknown) => boolean): (self: RetryClassifier) => RetryClassifier
  (self: RetryClassifier, predicate: (error: unknown) => boolean): RetryClassifier
} = dual(
  2,
  (self: RetryClassifier, predicate: (error: unknown) => boolean): RetryClassifier =>
    orElse((error) => predicate(error) ? veto : none, self)
)

/**
 * The facts that the error carries itself.
 *
 * @category constructors
 * @since 0.1.0
 */
export const own: RetryClassifier = RetryInfo.of

const withHint = (info: RetryInfo.RetryInfo, error: unknown): Option.Option<RetryInfo.RetryInfo> => {
  const millis = Hint.retryAfterMillis((name) => get(headersOf(error), name))
  return Option.some(millis === undefined ? info : RetryInfo.make({ ...info, retryAfter: millis }))
}

const headersOf = (error: unknown): unknown =>
  get(get(error, "$response"), "headers") ?? get(get(error, "response"), "headers") ?? get(error, "headers")

const isIdempotent = (method: unknown) => method !== "POST" && method !== "PATCH"

const neverSent = (cause: unknown): boolean => {
  let current = cause
  for (let depth = 0; depth <= maxCauseDepth && current !== undefined; depth++) {
    if (codes.neverSentCodes.has(getString(current, "code") ?? "")) return true
    current = get(current, "cause")
  }
  return false
}

const httpClient: RetryClassifier = (error) => {
  const reason = get(error, "reason")
  const idempotent = isIdempotent(get(get(reason, "request"), "method"))
  if (get(reason, "_tag") === "TransportError") {
    return Option.some(RetryInfo.make({ safety: idempotent || neverSent(get(reason, "cause")) ? "Yes" : "Maybe" }))
  }
  const status = getNumber(get(reason, "response"), "status")
  return Option.map(
    withStatus(status, reason),
    (info) => idempotent || info.throttling ? info : { ...info, safety: "Maybe" as const }
  )
}

const withReason: RetryClassifier = (error) => {
  const reason = get(error, "reason") ?? error
  const retryAfter = get(reason, "retryAfter") as any
  switch (get(reason, "_tag")) {
    case "RateLimitExceeded":
    case "RateLimitError":
      return Option.some(RetryInfo.throttled(retryAfter))
    case "CircuitOpen":
    case "CircuitHalfOpen":
      return Option.some(RetryInfo.make({ fault: "server", retryAfter }))
  }
  const retryable = get(error, "isRetryable") ?? get(reason, "isRetryable")
  return retryable === true ? Option.some(RetryInfo.make({ retryAfter })) : retryable === false ? veto : none
}

const effectTags = new Map<string, RetryClassifier>([
  ["HttpClientError", httpClient],
  ["TimeoutError", () => timedOut],
  ["SqlError", withReason],
  ["AiError", withReason],
  ["RateLimiterError", withReason],
  ["CircuitBreakerError", withReason]
])

/**
 * Effect's own errors: `HttpClientError`, `TimeoutError`, `SqlError`, `AiError`, `RateLimiterError`,
 * `CircuitBreakerError`.
 *
 * **Details**
 *
 * An HTTP request that may have been carried out and is not idempotent (POST, PATCH) is `"Maybe"` safe; one that was
 * throttled, or whose connection was never made, is safe.
 *
 * @category constructors
 * @since 0.1.0
 */
export const effectErrors: RetryClassifier = (error) => {
  const tag = getString(error, "_tag")
  return (tag === undefined ? undefined : effectTags.get(tag))?.(error) ?? none
}

/** The code of an AWS error: the class name, the `Code` of the query and XML protocols, the `__type` of the JSON ones. */
const awsCodes = (error: unknown): ReadonlyArray<string> => {
  const type = getString(error, "__type")
  const found = [
    getString(error, "name"),
    getString(error, "Code"),
    getString(error, "code"),
    type?.slice(type.lastIndexOf("#") + 1)
  ]
  return found.filter((code) => code !== undefined)
}

const byCode = (error: unknown): RetryInfo.RetryInfo | undefined => {
  const names = awsCodes(error)
  if (names.some((code) => codes.awsThrottlingCodes.has(code))) return throttledInfo
  if (names.some((code) => codes.awsTransientCodes.has(code))) return RetryInfo.transient
  return names.includes("TimeoutError") ? RetryInfo.timedOut : undefined
}

const byTrait = (error: unknown): RetryInfo.RetryInfo | undefined => {
  const retryable = get(error, "$retryable")
  if (retryable === undefined || retryable === null) return undefined
  return get(retryable, "throttling") === true ? throttledInfo : RetryInfo.transient
}

const byAwsMetadata = (error: unknown): RetryInfo.RetryInfo | undefined => {
  const metadata = get(error, "$metadata")
  if (get(metadata, "clockSkewCorrected") === true) return RetryInfo.transient
  const status = getNumber(metadata, "httpStatusCode")
  if (status === 429) return throttledInfo
  return status !== undefined && codes.awsTransientStatuses.has(status) ? RetryInfo.transient : undefined
}

/**
 * Errors of the AWS SDKs: the published throttling and transient codes, the `$retryable` trait, the statuses 500, 502,
 * 503 and 504.
 *
 * **Details**
 *
 * Where the SDKs disagree: a bare 429 is throttling (as in JavaScript, Java and Ruby; botocore does not retry it);
 * `LimitExceededException` and `PriorRequestNotComplete` are throttling (as in every SDK but Java 2.0); only a time-out
 * of the client itself counts as `timeout` (as in botocore; JavaScript counts every transient error). A code decides
 * before a status. `x-amz-retry-after` (milliseconds), then `retry-after` (seconds), is the hint.
 * Source: smithy-typescript `service-error-classification/constants.ts`, botocore `retries/standard.py`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const aws: RetryClassifier = (error) => {
  const trait = byTrait(error)
  const info = trait?.throttling === true ? trait : byCode(error) ?? trait ?? byAwsMetadata(error)
  return info === undefined ? none : withHint(info, error)
}

const withStatus = (status: number | undefined, error: unknown): Option.Option<RetryInfo.RetryInfo> => {
  if (status === undefined) return none
  if (status === 429) return withHint(throttledInfo, error)
  return codes.httpTransientStatuses.has(status) ? withHint(RetryInfo.transient, error) : none
}

/**
 * Errors with an HTTP status (`status`, `statusCode`, or that of their `response`): 429 is throttling; 408, 425, 500,
 * 502, 503 and 504 pass.
 *
 * @category constructors
 * @since 0.1.0
 */
export const httpStatus: RetryClassifier = (error) =>
  get(error, "$metadata") !== undefined ? none : withStatus(
    getNumber(error, "status") ?? getNumber(error, "statusCode") ?? getNumber(get(error, "response"), "status"),
    error
  )

/**
 * Network failures of Node, undici and browsers, by `code` and message.
 *
 * @category constructors
 * @since 0.1.0
 */
export const network: RetryClassifier = (error) => {
  const code = getString(error, "code") ?? ""
  if (codes.timeoutCodes.has(code)) return timedOut
  if (codes.neverSentCodes.has(code) || codes.brokenCodes.has(code)) return transient
  const message = getString(error, "message") ?? ""
  if (code === "ERR_HTTP2_STREAM_ERROR" && message.includes("NGHTTP2_REFUSED_STREAM")) return transient
  return getString(error, "name") === "TypeError" && codes.browserNetworkMessages.has(message) ? transient : none
}

/**
 * gRPC statuses (an integer `code` beside a `details` string): `UNAVAILABLE` passes, `RESOURCE_EXHAUSTED` is throttling,
 * `DEADLINE_EXCEEDED` is a time-out after which a retry is `"Maybe"` safe, `ABORTED` passes.
 *
 * @category constructors
 * @since 0.1.0
 */
export const grpc: RetryClassifier = (error) => {
  if (getString(error, "details") === undefined) return none
  switch (getNumber(error, "code")) {
    case 4:
      return Option.some(RetryInfo.make({ safety: "Maybe", timeout: true }))
    case 8:
      return throttled
    case 10:
    case 14:
      return transient
    default:
      return none
  }
}

/**
 * Asks the classifier about the error, then about its `cause`, and so on: at most 10 causes deep, so a cycle ends.
 *
 * @category combinators
 * @since 0.1.0
 */
export const followingCause = (self: RetryClassifier): RetryClassifier => (error) => {
  let current = error
  for (let depth = 0; depth <= maxCauseDepth && current !== undefined && current !== null; depth++) {
    const info = classify(self, current)
    if (Option.isSome(info)) return info
    current = get(current, "cause")
  }
  return none
}

/**
 * The default chain: the error's own facts, Effect's errors, AWS codes and statuses, HTTP statuses, network codes, gRPC
 * statuses; then the same of its cause. Knows nothing of any other error, so it is not retried.
 *
 * @category constructors
 * @since 0.1.0
 */
export const defaultClassifier: RetryClassifier = followingCause(
  [effectErrors, aws, httpStatus, network, grpc].reduce<RetryClassifier>((chain, next) => orElse(chain, next), own)
)

/**
 * The classifier that policies ask. Defaults to {@link defaultClassifier}.
 *
 * **Example** (Never retry a validation error)
 *
 * ```ts
 * program.pipe(Effect.provideService(
 *   RetryClassifier.CurrentClassifier,
 *   RetryClassifier.vetoing(RetryClassifier.defaultClassifier, (error) => error instanceof ValidationError)
 * ))
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export const CurrentClassifier: Context.Reference<RetryClassifier> = Context.Reference<RetryClassifier>(
  "effect-retry/RetryClassifier/CurrentClassifier",
  { defaultValue: () => defaultClassifier }
)

/**
 * A layer that sets the classifier.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (classifier: RetryClassifier): Layer.Layer<never> => Layer.succeed(CurrentClassifier, classifier)

/**
 * What an error says about retrying.
 *
 * A classifier turns an error of any shape into `RetryInfo`, or into nothing when it does not know it. Classifiers form
 * an ordered chain: the first one that answers decides, and an answer whose `safety` is `"No"` is a veto that no later
 * one can lift. Policies ask the one in {@link CurrentClassifier}. Classifiers are plain functions: their combinators
 * take them first, or last with `pipe` from `effect/Function`.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import { dual } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as codes from "./internal/codes.ts"
import * as Hint from "./internal/hint.ts"
import { get } from "./internal/safe.ts"
import { statusOf } from "./internal/wire.ts"
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
} = dual(2, (self: RetryClassifier, that: RetryClassifier): RetryClassifier => chain([self, that]))

/**
 * Asks the classifiers in turn: the first that knows the error decides.
 *
 * @category combinators
 * @since 0.1.0
 */
export const chain = (classifiers: ReadonlyArray<RetryClassifier>): RetryClassifier => (error) => {
  for (const classifier of classifiers) {
    const info = classify(classifier, error)
    if (Option.isSome(info)) return info
  }
  return none
}

/**
 * Forbids a retry of the errors that satisfy the predicate, or have a cause that does, at most 10 causes deep, whatever
 * the chain says of them. A predicate that throws forbids it too.
 *
 * @category combinators
 * @since 0.1.0
 */
export const vetoing: {
  (predicate: (error: unknown) => boolean): (self: RetryClassifier) => RetryClassifier
  (self: RetryClassifier, predicate: (error: unknown) => boolean): RetryClassifier
} = dual(2, (self: RetryClassifier, predicate: (error: unknown) => boolean): RetryClassifier => {
  const forbids = followingCauseUntil((error) => holds(predicate, error) ? veto : none, () => false)
  return chain([forbids, self])
})

const holds = (predicate: (error: unknown) => boolean, error: unknown): boolean => {
  try {
    return predicate(error)
  } catch {
    return true
  }
}

/**
 * Asks the classifier about the error, then about its `cause`, and so on: at most 10 causes deep, so a cycle ends, and
 * not beyond a response with a status from 400 to 599: what caused an answer is no reason to ask again.
 *
 * @category combinators
 * @since 0.1.0
 */
export const followingCause = (self: RetryClassifier): RetryClassifier => followingCauseUntil(self, isResponse)

const isResponse = (error: unknown): boolean => {
  const status = statusOf(error)
  return status !== undefined && status >= 400 && status < 600
}

const followingCauseUntil = (self: RetryClassifier, ends: (error: unknown) => boolean): RetryClassifier => (error) => {
  let current = error
  for (let depth = 0; depth <= maxCauseDepth && current !== undefined && current !== null; depth++) {
    const info = classify(self, current)
    if (Option.isSome(info) || ends(current)) return info
    current = get(current, "cause")
  }
  return none
}

/**
 * The facts that the error carries itself.
 *
 * @category constructors
 * @since 0.1.0
 */
export const own: RetryClassifier = RetryInfo.of

/** An error that is looked into. What it does when it is looked at is up to {@link classify}. */
type Opaque = { readonly [key: string]: any }

const isObject = (u: unknown): u is Opaque => (typeof u === "object" && u !== null) || typeof u === "function"

/** A classifier of objects. */
const ofObject = (f: (error: Opaque) => Option.Option<RetryInfo.RetryInfo>): RetryClassifier => (error) =>
  isObject(error) ? f(error) : none

const withHint = (info: RetryInfo.RetryInfo, error: Opaque): Option.Option<RetryInfo.RetryInfo> => {
  const retryAfter = Hint.retryAfterMillis(error)
  return Option.some(retryAfter === undefined ? info : RetryInfo.make({ ...info, retryAfter }))
}

const isIdempotent = (method: unknown) => method !== "POST" && method !== "PATCH"

const neverSent = (cause: unknown): boolean => {
  let current = cause
  for (let depth = 0; depth <= maxCauseDepth && isObject(current); depth++) {
    if (codes.neverSentCodes.has(current.code)) return true
    current = current.cause
  }
  return false
}

const httpClient = ({ reason }: Opaque): Option.Option<RetryInfo.RetryInfo> => {
  const idempotent = isIdempotent(reason?.request?.method)
  if (reason?._tag === "TransportError") {
    return Option.some(RetryInfo.make({ safety: idempotent || neverSent(reason.cause) ? "Yes" : "Maybe" }))
  }
  const info = withStatus(reason?.response?.status, reason)
  return Option.map(
    info,
    (info) => idempotent || info.throttling ? info : { ...info, safety: "Maybe" as const }
  )
}

const withReason = (error: Opaque): Option.Option<RetryInfo.RetryInfo> => {
  const reason = isObject(error.reason) ? error.reason : error
  const retryAfter = reason.retryAfter
  switch (reason._tag) {
    case "RateLimitExceeded":
    case "RateLimitError":
      return Option.some(RetryInfo.throttled(retryAfter))
    case "CircuitOpen":
    case "CircuitHalfOpen":
      return Option.some(RetryInfo.make({ fault: "server", retryAfter }))
  }
  const retryable = error.isRetryable ?? reason.isRetryable
  if (retryable === true) return Option.some(RetryInfo.make({ retryAfter }))
  return retryable === false ? veto : none
}

const effectTags = new Map<unknown, (error: Opaque) => Option.Option<RetryInfo.RetryInfo>>([
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
export const effectErrors: RetryClassifier = ofObject((error) => effectTags.get(error._tag)?.(error) ?? none)

const byCode = (code: unknown): RetryInfo.RetryInfo | undefined => {
  if (typeof code !== "string") return undefined
  if (codes.awsThrottlingCodes.has(code)) return throttledInfo
  if (codes.awsTransientCodes.has(code)) return RetryInfo.transient
  return code === "TimeoutError" ? RetryInfo.timedOut : undefined
}

/** The code of an AWS error: its class name, the `Code` of the query and XML protocols, the `__type` of the JSON ones. */
const byCodes = (error: Opaque): RetryInfo.RetryInfo | undefined => {
  const type: unknown = error.__type
  return byCode(error.name) ?? byCode(error.Code) ?? byCode(error.code) ??
    (typeof type === "string" ? byCode(type.slice(type.lastIndexOf("#") + 1)) : undefined)
}

const byTrait = ({ $retryable }: Opaque): RetryInfo.RetryInfo | undefined => {
  if (!isObject($retryable)) return undefined
  return $retryable.throttling === true ? throttledInfo : RetryInfo.transient
}

const byMetadata = ({ $metadata }: Opaque): RetryInfo.RetryInfo | undefined => {
  if (!isObject($metadata)) return undefined
  if ($metadata.clockSkewCorrected === true) return RetryInfo.transient
  return byStatus($metadata.httpStatusCode, codes.awsTransientStatuses)
}

const byStatus = (status: unknown, passing: ReadonlySet<number>): RetryInfo.RetryInfo | undefined => {
  if (status === 429) return throttledInfo
  return typeof status === "number" && passing.has(status) ? RetryInfo.transient : undefined
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
export const aws: RetryClassifier = ofObject((error) => {
  const trait = byTrait(error)
  const info = trait?.throttling === true ? trait : byCodes(error) ?? trait ?? byMetadata(error)
  return info === undefined ? none : withHint(info, error)
})

const withStatus = (status: unknown, error: Opaque): Option.Option<RetryInfo.RetryInfo> => {
  const info = byStatus(status, codes.httpTransientStatuses)
  return info === undefined ? none : withHint(info, error)
}

/**
 * Errors with an HTTP status (`status`, `statusCode`, or that of their `response`): 429 is throttling; 408, 425, 500,
 * 502, 503 and 504 pass.
 *
 * @category constructors
 * @since 0.1.0
 */
export const httpStatus: RetryClassifier = ofObject((error) =>
  error.$metadata === undefined
    ? withStatus(error.status ?? error.statusCode ?? error.response?.status, error)
    : none
)

/**
 * Network failures of Node, undici and browsers, by `code` and message.
 *
 * @category constructors
 * @since 0.1.0
 */
export const network: RetryClassifier = ofObject(({ code, message, name }) => {
  if (typeof code === "string") {
    if (codes.timeoutCodes.has(code)) return timedOut
    if (codes.neverSentCodes.has(code) || codes.brokenCodes.has(code)) return transient
  }
  if (typeof message !== "string") return none
  const refused = code === "ERR_HTTP2_STREAM_ERROR" && message.includes("NGHTTP2_REFUSED_STREAM")
  return refused || (name === "TypeError" && codes.browserNetworkMessages.has(message)) ? transient : none
})

/**
 * gRPC statuses (an integer `code` beside a `details` string): `UNAVAILABLE` passes, `RESOURCE_EXHAUSTED` is throttling,
 * `DEADLINE_EXCEEDED` is a time-out after which a retry is `"Maybe"` safe, `ABORTED` passes.
 *
 * @category constructors
 * @since 0.1.0
 */
export const grpc: RetryClassifier = ofObject((error) => {
  if (typeof error.details !== "string") return none
  switch (error.code) {
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
})

/**
 * The default chain: the error's own facts, Effect's errors, AWS codes and statuses, HTTP statuses, network codes, gRPC
 * statuses; then the same of its cause, unless the error is a response with a status. Knows nothing of any other error,
 * so it is not retried.
 *
 * @category constructors
 * @since 0.1.0
 */
export const defaultClassifier: RetryClassifier = followingCause(
  chain([own, effectErrors, aws, httpStatus, network, grpc])
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

/**
 * What an error says about retrying.
 *
 * A classifier turns an error of any shape into `RetryInfo`, or into nothing when it does not know the error.
 * Classifiers form an ordered chain: the first to answer decides, and an answer whose `safety` is `"No"` is a veto that
 * no later one can lift. Policies ask the one in {@link CurrentClassifier}. Classifiers are plain functions: their
 * combinators take them first, or last with `pipe` from `effect/Function`.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import { constFalse, constTrue, dual } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { failureOf, noFailure } from "./internal/cause.ts"
import { infoOfKind, kindOf } from "./internal/classification/answer.ts"
import { databaseInfo } from "./internal/classification/databaseErrors.ts"
import * as codes from "./internal/classification/errorCodes.ts"
import * as GrpcHint from "./internal/classification/grpcHint.ts"
import { hintMillis, retryAfterMillis } from "./internal/classification/hint.ts"
import * as wire from "./internal/classification/wire.ts"
import { wallMillis } from "./internal/clock.ts"
import { get, guarded, look, short } from "./internal/tryGet.ts"
import * as RetryInfo from "./RetryInfo.ts"

/**
 * A function from an error to its facts; none if it does not know the error.
 *
 * @category models
 * @since 0.1.0
 */
export type RetryClassifier = (error: unknown) => Option.Option<RetryInfo.RetryInfo>

const none: Option.Option<RetryInfo.RetryInfo> = Option.none()
const veto = Option.some(RetryInfo.notRetryable)
const mayHaveRun = RetryInfo.make({ safety: "Maybe" })
const throttled = RetryInfo.throttled()

/**
 * Asks a classifier. One that throws, for any reason, does not know the error. Of a `Cause`, it is asked about the first
 * failure; one with a defect, or with only an interruption, is never retried.
 *
 * @category getters
 * @since 0.1.0
 */
export const classify = (classifier: RetryClassifier, error: unknown): Option.Option<RetryInfo.RetryInfo> => {
  const failure = failureOf(error)
  return failure === noFailure ? veto : asked(classifier, failure)
}

/** What a classifier answers about an error that is no `Cause`. */
const asked = (classifier: RetryClassifier, error: unknown): Option.Option<RetryInfo.RetryInfo> => {
  try {
    const info = classifier(error)
    return info === none || Option.isOption(info) ? info : none
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
} = /* @__PURE__ */ dual(2, (self: RetryClassifier, that: RetryClassifier): RetryClassifier => chain([self, that]))

/**
 * Asks the classifiers in turn: the first that knows the error decides.
 *
 * @category combinators
 * @since 0.1.0
 */
export const chain = (classifiers: ReadonlyArray<RetryClassifier>): RetryClassifier => (error) => {
  const failure = failureOf(error)
  if (failure === noFailure) return veto
  for (let next = 0; next < classifiers.length; next++) {
    const info = asked(classifiers[next]!, failure)
    if (Option.isSome(info)) return info
  }
  return none
}

/**
 * Forbids retrying errors that satisfy the predicate, or have a cause that does, at most 10 causes deep, regardless of
 * the chain. A predicate that throws forbids it too.
 *
 * @category combinators
 * @since 0.1.0
 */
export const vetoing: {
  (predicate: (error: unknown) => boolean): (self: RetryClassifier) => RetryClassifier
  (self: RetryClassifier, predicate: (error: unknown) => boolean): RetryClassifier
} = /* @__PURE__ */ dual(2, (self: RetryClassifier, predicate: (error: unknown) => boolean): RetryClassifier => {
  const vetoed = Option.some(RetryInfo.vetoed)
  const forbids = guarded(predicate, constTrue)
  return chain([followingCauseUntil((error) => forbids(error) ? vetoed : none, constFalse), self])
})

/**
 * Asks the classifier about the error, then about its `cause` (or that of its `reason`), and so on: at most 10 causes
 * deep, so a cycle ends, and not beyond a response: a status from 400 to 599, or a gRPC status. The cause of a response
 * is no reason to retry.
 *
 * @category combinators
 * @since 0.1.0
 */
export const followingCause = (self: RetryClassifier): RetryClassifier => followingCauseUntil(self, wire.isAnswer)

const followingCauseUntil = (self: RetryClassifier, ends: (error: unknown) => boolean): RetryClassifier => (error) => {
  let current = error
  for (let depth = 0; depth <= codes.maxCauseDepth && current !== undefined && current !== null; depth++) {
    current = failureOf(current)
    if (current === noFailure) return veto
    const info = asked(self, current)
    if (Option.isSome(info) || ends(current)) return info
    current = codes.causeOf(current)
  }
  return none
}

/**
 * The facts that the error itself carries.
 *
 * @category constructors
 * @since 0.1.0
 */
export const carried: RetryClassifier = RetryInfo.fromError

/** An error to inspect. If inspecting it throws, {@link classify} handles that. */
type Opaque = { readonly [key: string]: any }

const isObject = (u: unknown): u is Opaque => (typeof u === "object" && u !== null) || typeof u === "function"

/** What an object says; `undefined` if it is not known. */
type Reading = (error: Opaque) => RetryInfo.RetryInfo | undefined

/** A classifier of objects. */
const ofObject = (read: Reading): RetryClassifier => (error) =>
  isObject(error) ? Option.fromUndefinedOr(read(error)) : none

const withHint = (info: RetryInfo.RetryInfo, millis: number | undefined): RetryInfo.RetryInfo =>
  millis === undefined ? info : RetryInfo.make({ ...info, retryAfter: millis })

const safetyOf = (cause: unknown, repeatable: boolean): RetryInfo.Safety =>
  repeatable || codes.isNeverSent(cause) ? "Yes" : "Maybe"

/** Whether an error shows a request that cannot be sent twice. */
const isUnrepeatable = (error: unknown): boolean =>
  look(() => {
    const request = wire.requestOf(error)
    return request !== undefined && !wire.isRepeatable(request)
  }) === true

const isClassified = (error: unknown): boolean => wire.isAnswer(error) || Option.isSome(carried(error))

/** Whether an error says how safe it is to send the request of it again. */
const isConclusive = (error: unknown): boolean => isClassified(error) || isUnrepeatable(error)

/** What may have run is not sent twice, if the error, or a cause before any facts or an answer, shows a request. */
const cautious = (self: RetryClassifier): RetryClassifier => (error) => {
  const found = self(error)
  const info = Option.getOrUndefined(found)
  if (info?.safety !== "Yes" || info.throttling) return found
  const first = codes.findCause(error, isConclusive)
  if (first === undefined || isClassified(first)) return found
  return Option.some(RetryInfo.make({ ...info, safety: wire.isRedirected(first) ? "Maybe" : safetyOf(error, false) }))
}

/** The facts of an exception while a request was sent or its response read, if the network or the caller is to blame. */
const broken = (cause: unknown, idempotent: boolean): RetryInfo.RetryInfo | undefined => {
  const info = Option.getOrUndefined(followingCause(network)(cause))
  return info?.safety !== "Yes" ? info : RetryInfo.make({ ...info, safety: safetyOf(cause, idempotent) })
}

/** The facts of the response that an error carries. By default, the error or a cause may show to what request. */
const answered = (error: Opaque, repeatable?: boolean): RetryInfo.RetryInfo | undefined => {
  const status = wire.statusOf(error)
  // Without a status it may be an event of a stream, or what an SDK makes of one.
  if (status === undefined && typeof error.type !== "string" && !isObject(error.error)) return undefined
  const answer = wire.answerOf(error, status)
  const kind = kindOf(answer, wire.retryStatusOf(() => wire.requestOf(error), wire.isRetryStatus))
  if (kind === undefined) return undefined
  const unsafe = repeatable === undefined ? codes.findCause(error, isUnrepeatable) : error
  const facts = infoOfKind(kind, status, repeatable ?? unsafe === undefined, () => wire.isRedirected(unsafe))
  return RetryInfo.make({ ...facts, retryAfter: hintMillis(answer, wallMillis) })
}

const httpReasons = new Map<unknown, (reason: Opaque, idempotent: boolean) => RetryInfo.RetryInfo | undefined>([
  [
    "TransportError",
    ({ cause }, idempotent) =>
      broken(cause, idempotent) ??
        RetryInfo.make({
          safety: safetyOf(cause, idempotent),
          timeout: codes.findCause(cause, codes.isTimeout) !== undefined
        })
  ],
  ["EncodeError", () => RetryInfo.notRetryable],
  ["InvalidUrlError", () => RetryInfo.notRetryable],
  ["StatusCodeError", answered],
  [
    "DecodeError",
    (reason, idempotent) => answered(reason, idempotent) ?? broken(reason.cause, idempotent) ?? RetryInfo.notRetryable
  ],
  ["EmptyBodyError", (reason, idempotent) => answered(reason, idempotent) ?? RetryInfo.notRetryable]
])

const httpClient: Reading = ({ reason }) =>
  httpReasons.get(reason?._tag)?.(reason, wire.isRepeatable(reason.request ?? {}))

const byRetryable = (retryable: unknown, retryAfter: any): RetryInfo.RetryInfo | undefined => {
  if (retryable === true) return RetryInfo.make({ retryAfter })
  return retryable === false ? RetryInfo.notRetryable : undefined
}

/**
 * What Effect's SQL has no reason for, the code of its cause may explain. A connection that is lost may have carried the
 * statement.
 */
const byDatabase: Reading = ({ _tag, cause, operation }) => {
  const isLost = _tag === "ConnectionError"
  if (!isLost && _tag !== "UnknownError") return undefined
  if (isLost && (operation === "connect" || codes.isNeverSent(cause))) return RetryInfo.transient
  return Option.getOrUndefined(classify(followingCause(database), cause)) ?? (isLost ? mayHaveRun : undefined)
}

const withReason: Reading = (error) => {
  const reason = isObject(error.reason) ? error.reason : error
  const { _tag, isRetryable } = reason
  const retryAfter = reason.retryAfter ?? hintMillis(wire.answerOf(reason.http ?? {}), wallMillis)
  if (_tag === "RateLimitExceeded" || _tag === "RateLimitError") return RetryInfo.throttled(retryAfter)
  if (_tag === "CircuitOpen" || _tag === "CircuitHalfOpen") return RetryInfo.make({ fault: "server", retryAfter })
  return byDatabase(reason) ?? byRetryable(error.isRetryable ?? isRetryable, retryAfter)
}

const platform: Reading = ({ reason }) => {
  if (reason?._tag === "TimedOut") return RetryInfo.timedOut
  return reason?._tag === "Busy" || reason?._tag === "WouldBlock" ? RetryInfo.transient : undefined
}

const socket: Reading = ({ cause, kind }) =>
  kind === "Timeout" ? RetryInfo.timedOut : broken(cause, true) ?? RetryInfo.transient

/**
 * Close codes after which another connection may work: going away, lost, an internal error, a restart, a bad gateway; 1013
 * is "try again later". Source: IANA, WebSocket Close Code Numbers.
 */
const socketClosed: Reading = ({ code }) =>
  code === 1013 ? throttled : [1001, 1006, 1011, 1012, 1014].includes(code) ? RetryInfo.transient : undefined

const byReason: Reading = ({ reason }) => isObject(reason) ? byTag(reason) : undefined

/** Whether a procedure can be called twice is unknown, but one that was never called can be. */
const rpc: Reading = (error) => {
  const { reason } = error
  if (reason?._tag === "HttpError") return httpClient({ reason: reason.cause })
  if (reason?._tag === "SocketOpenError") return socket(reason)
  const info = byReason(error)
  return info && RetryInfo.make({ ...info, safety: "Maybe" })
}

const effectTags = new Map<unknown, Reading>([
  ["HttpClientError", httpClient],
  ["TimeoutError", () => RetryInfo.timedOut],
  ["SqlError", withReason],
  ["AiError", withReason],
  ["RateLimiterError", withReason],
  ["CircuitBreakerError", withReason],
  ["GraphQLClientError", withReason],
  ["PlatformError", platform],
  ["SocketError", byReason],
  ["SocketOpenError", socket],
  ["SocketReadError", socket],
  ["SocketWriteError", socket],
  ["SocketCloseError", socketClosed],
  ["RpcClientError", rpc],
  ["MailboxFull", (error) => "~effect/cluster/ClusterError" in error ? throttled : undefined],
  ["EntityNotAssignedToRunner", () => RetryInfo.transient],
  ["RunnerUnavailable", () => RetryInfo.transient]
])

/** Classes of reasons, which `Effect.unwrapReason` fails with: their tags alone could belong to other errors. */
const reasonClass = /^effect\/(?:sql\/SqlError|ai\/AiError|persistence\/(?:RateLimiter|CircuitBreaker))\//

const isReason = ({ constructor }: { readonly constructor?: any }): boolean => {
  const identifier: unknown = constructor?.identifier
  return typeof identifier === "string" && reasonClass.test(identifier)
}

const byTag: Reading = (error) => {
  const read = effectTags.get(error._tag)
  return read === undefined && isReason(error) ? withReason(error) : read?.(error)
}

/**
 * Effect's own errors: `HttpClientError`, `TimeoutError`, `SqlError`, `AiError`, `RateLimiterError`,
 * `CircuitBreakerError`, `GraphQLClientError`, `PlatformError`, `SocketError`, `RpcClientError` and those of the cluster.
 *
 * **Details**
 *
 * An HTTP request that may have been processed and is not idempotent (POST, PATCH) is `"Maybe"` safe; one that was
 * throttled, or whose connection was never made, is safe. The same goes for a procedure of `RpcClient`. A fault in a
 * request or response itself is never retried. `SqlError`, `AiError` and `GraphQLClientError` say themselves whether
 * they are retryable, but a statement whose connection was lost is `"Maybe"` safe; the hint is theirs, or that of the response they show. If the store of a limiter or a breaker
 * failed, the call never ran, and the store's `cause` decides. A reason that `Effect.unwrapReason` took out of its
 * error is treated like the error. `docs/effect-errors.md` has the full table.
 *
 * @category constructors
 * @since 0.1.0
 */
export const effectErrors: RetryClassifier = ofObject(byTag)

const byCode = (code: unknown): RetryInfo.RetryInfo | undefined => {
  if (typeof code !== "string") return undefined
  if (codes.awsThrottlingCodes.has(code)) return throttled
  if (codes.awsTransientCodes.has(code)) return RetryInfo.transient
  return code === "TimeoutError" ? RetryInfo.timedOut : undefined
}

/** The code of an AWS error: its class name, the `Code` of the query and XML protocols, the `__type` of the JSON ones. */
const byCodes: Reading = (error) =>
  byCode(error.name) ?? byCode(error.Code) ?? byCode(error.code) ?? byCode(codes.shapeOf(error.__type))

const byTrait: Reading = ({ $retryable }) => {
  if (!isObject($retryable)) return undefined
  return $retryable.throttling === true ? throttled : RetryInfo.transient
}

const byMetadata: Reading = ({ $metadata }) => {
  if (!isObject($metadata)) return undefined
  const { clockSkewCorrected, httpStatusCode: status } = $metadata
  if (status === 429) return throttled
  return codes.awsTransientStatuses.has(status) || clockSkewCorrected === true ? RetryInfo.transient : undefined
}

/** Throttling first, otherwise the first that was asked. */
const heaviest = (first: RetryInfo.RetryInfo | undefined, other: RetryInfo.RetryInfo | undefined) =>
  other?.throttling === true ? other : first ?? other

/**
 * Errors of the AWS SDKs: the published throttling and transient codes, the `$retryable` trait, the statuses 500, 502,
 * 503 and 504.
 *
 * **Details**
 *
 * Where the SDKs disagree: a bare 429 is throttling (as in JavaScript, Java and Ruby; botocore does not retry it);
 * `LimitExceededException` and `PriorRequestNotComplete` are throttling (as in every SDK but Java 2.0); only a timeout
 * of the client itself counts as `timeout` (as in botocore; JavaScript counts every transient error). Throttling wins,
 * whether it comes from code, trait or status 429; then a code before a status. `x-amz-retry-after` (milliseconds),
 * then `retry-after` (seconds or a date), is the hint.
 * Source: smithy-typescript `service-error-classification/constants.ts`, botocore `retries/standard.py`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const aws: RetryClassifier = ofObject((error) => {
  const info = heaviest(heaviest(byCodes(error), byTrait(error)), byMetadata(error))
  return info && withHint(info, retryAfterMillis(error, wallMillis))
})

/** The OpenAI and Anthropic SDKs have a class for it, without a name that says so or a cause. */
const isSdkTimeout = (error: Opaque): boolean => error.message === "Request timed out." && "requestID" in error

/**
 * Errors with an HTTP status, and what the response in them says: those of `fetch`, axios, got, ky, undici, the OpenAI
 * and Anthropic SDKs, and most clients; a `Response` too. It ignores errors of the AWS SDKs.
 *
 * **Details**
 *
 * | response | facts |
 * | --- | --- |
 * | 429 | throttling |
 * | 408, 425, 5xx except 501, 505, 506, 508, 510, 511 | transient |
 * | `x-should-retry: true` / `false` | the server permits / forbids, whatever the status |
 * | 429 whose body says `insufficient_quota`, `abnormal-usage-detected`, or names a quota of Google's per day | forbidden |
 * | 503 whose body says `temporary-reduced-capacity`; `x-envoy-ratelimited` | throttling |
 * | no status, as in the error event of a stream: `rate_limit_error` / `overloaded_error`, `api_error`, `server_error` | throttling / transient |
 * | `x-envoy-overloaded`, `finagle-http-nonretryable-nack`, a negative `grpc-retry-pushback-ms` | forbidden |
 *
 * `docs/http.md` lists the headers read for a hint, and their order. The status is the `status` or `statusCode` of the
 * error or of its `response`; the body is looked for in the error, in its `error`, `data` and `body`, and in those of
 * its `response`. If the error or a cause shows a request that is not idempotent and has no `Idempotency-Key` (in `config`,
 * `options` or `request`), a response that does not prove that it was rejected makes it `"Maybe"` safe. After a redirect
 * none proves it, and got no longer shows the method.
 *
 * @category constructors
 * @since 0.1.0
 */
export const httpStatus: RetryClassifier = ofObject((error) => {
  if (error.$metadata !== undefined) return undefined
  return isSdkTimeout(error) ? RetryInfo.timedOut : answered(error)
})

/**
 * Network failures by `code`: those of Node, undici, Bun, axios. Without a code, by their message: those of Chromium,
 * Firefox, Safari, React Native, Deno and Cloudflare Workers.
 *
 * **Details**
 *
 * Browsers report every failed `fetch` the same way, so a request forbidden by CORS, or with a bad certificate, is
 * retried too. What no retry changes is final: a bad certificate, a bad argument, a request that the caller has
 * aborted. Firefox reports a connection that is reset in the middle of a body as an `AbortError`, as if the caller
 * had aborted it: not retried.
 *
 * @category constructors
 * @since 0.1.0
 */
export const network: RetryClassifier = ofObject((error) => {
  const { code } = error
  if (codes.timeoutCodes.has(code)) return RetryInfo.timedOut
  if (codes.isRefusedStream(error)) return RetryInfo.transient
  const isFailed = codes.neverSentCodes.has(code) || codes.brokenCodes.has(code) || codes.isNetworkFailure(error)
  if (!isFailed) return codes.isFinalCause(error) ? RetryInfo.notRetryable : undefined
  if (codes.isTimeoutMessage(error)) return RetryInfo.timedOut
  return codes.findCause(error, codes.isFinalCause) === undefined ? RetryInfo.transient : RetryInfo.notRetryable
})

const byGrpcStatus = (status: number, error: unknown): RetryInfo.RetryInfo | undefined => {
  if (status === 4) return RetryInfo.make({ safety: "Maybe", timeout: true })
  if (status === 8) return codes.grpcTooLong.test(short(get(error, "details"))) ? undefined : throttled
  if (status === 14) return RetryInfo.transient
  return [2, 10, 13].includes(status) ? broken(get(error, "cause"), true) : undefined
}

/**
 * gRPC statuses, as errors of grpc-js, nice-grpc, Connect and grpc-web show them: `UNAVAILABLE` is transient,
 * `RESOURCE_EXHAUSTED` is throttling unless a message was too long, `DEADLINE_EXCEEDED` is a timeout after which a
 * retry is `"Maybe"` safe.
 *
 * **Details**
 *
 * `grpc-retry-pushback-ms` in the metadata is the hint; a value that is negative or not a number forbids the retry,
 * whatever the status. Without it the `google.rpc.RetryInfo` of the status is the hint. `ABORTED` is not retried: the
 * whole transaction has to be repeated, reads included. Connect calls a broken connection `ABORTED`, `INTERNAL` or
 * `UNKNOWN`: caused by a network failure, these are transient too. Source: gRPC proposal A6; Google's AIP-194, which
 * retries `UNAVAILABLE` only.
 *
 * @category constructors
 * @since 0.1.0
 */
export const grpc: RetryClassifier = ofObject((error) => {
  const status = wire.grpcStatusOf(error)
  if (status === undefined) return undefined
  const pushback = GrpcHint.pushback(error)
  if (pushback === "stop") return RetryInfo.notRetryable
  const info = byGrpcStatus(status, error)
  return info && withHint(info, pushback ?? GrpcHint.retryInfoMillis(error))
})

/**
 * Errors of databases: SQLSTATEs of the classes 40, 53, 57P, 08, 22, 23 and 42, in the `code` or `sqlState` of the error, words of pg,
 * and the labels of MongoDB.
 *
 * **Details**
 *
 * | error | facts |
 * | --- | --- |
 * | 40 except 40002 and 40003; 53; 57P03; 08001, 08004; `SQLITE_CANTOPEN` | transient: nothing has had an effect |
 * | 40003; 57P01, 57P02, 57P05; 08 except 08P01; pg: `Connection terminated unexpectedly` | `"Maybe"` safe |
 * | 22, 23, 42: data, a constraint, syntax or access | final |
 * | MongoDB: `RetryableError`, `TransientTransactionError` | transient |
 * | MongoDB: `SystemOverloadedError` | throttling; without one of the above `"Maybe"` safe |
 *
 * The hint is MongoDB's `retryAfterMS` or `baseBackoffMS`. After a failure in a transaction, retry the transaction, not the
 * statement. Source: PostgreSQL, "PostgreSQL Error Codes"; mongodb/specifications, `client-backpressure.md`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const database: RetryClassifier = ofObject((error) => {
  const facts = databaseInfo(error)
  return facts && RetryInfo.make(facts)
})

const others = chain([httpStatus, network, database, grpc])

/** What only AWS answers can say, `aws` has read: the others are not asked about one without a code of its own. */
const unlessAws: RetryClassifier = (error) =>
  isObject(error) && !(error.$metadata?.httpStatusCode >= 400 && error.code === undefined) ? others(error) : none

const inTurn = chain([carried, effectErrors, aws, unlessAws])

/**
 * The default chain: the error's own facts, Effect's errors, AWS codes and statuses, HTTP statuses, network codes, those of
 * databases, gRPC statuses; then the same for its cause, unless the error is a response with a status. It does not know any other
 * error, so those are not retried. If the error or a cause shows a POST, a PATCH or the like without a key, it is
 * `"Maybe"` safe once it may have been processed.
 *
 * @category constructors
 * @since 0.1.0
 */
export const defaultClassifier: RetryClassifier = cautious(followingCause(inTurn))

/**
 * The classifier that policies ask. Default {@link defaultClassifier}.
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

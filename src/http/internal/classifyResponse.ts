import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import { HttpClientError, isHttpClientError, TransportError } from "effect/http/HttpClientError"
import { empty, type HttpClientRequest, makeWith, toUrl } from "effect/http/HttpClientRequest"
import { type HttpClientResponse, TypeId as ResponseTypeId } from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import { infoOfKind, kindOf } from "../../internal/classification/answer.ts"
import * as codes from "../../internal/classification/errorCodes.ts"
import * as Hint from "../../internal/classification/hint.ts"
import { hintOfValue } from "../../internal/classification/resource.ts"
import * as wire from "../../internal/classification/wire.ts"
import { wallMillis } from "../../internal/clock.ts"
import * as Options from "../../internal/options.ts"
import { firstFound, get, look, short } from "../../internal/tryGet.ts"
import { classify, defaultClassifier, type RetryClassifier } from "../../RetryClassifier.ts"
import * as RetryInfo from "../../RetryInfo.ts"
import type { Outcome } from "../../SendGate.ts"
import { isRepeatable } from "./requestSafety.ts"

/**
 * The destination of a request: scheme, host and path. For a relative URL, only the path; for an invalid one, an empty
 * string.
 */
const placeOf = (url: string): string => {
  const absolute = look(() => new URL(url))
  const path = (absolute ?? look(() => new URL(url, "http://relative")))?.pathname
  const origin = absolute === undefined || absolute.host === "" ? "" : `${absolute.protocol}//${absolute.host}`
  return origin + (path?.startsWith("/") ? path : "")
}

/** The method and destination of a request: no user, no query, no headers, no body. */
const outlineOf = ({ method, url }: HttpClientRequest): HttpClientRequest =>
  makeWith(method, placeOf(url), empty.urlParams, empty.hash, empty.headers, empty.body)

/** The same errors, with the request as sent. */
const wholes = new WeakMap<object, HttpClientError>()

/**
 * The error of an attempt that got no response in time, or had no time to be sent. It shows only the outline of the
 * request.
 */
export const timedOut = (request: HttpClientRequest, millis: number): HttpClientError => {
  const description = millis === 0
    ? "the deadline of the call has passed: it was not sent"
    : `no response within ${Duration.format(Duration.millis(millis))}`
  const cause = new Cause.TimeoutError(description)
  const errorOf = (request: HttpClientRequest) =>
    new HttpClientError({ reason: new TransportError({ request, cause, description }) })
  const error = errorOf(outlineOf(request))
  wholes.set(error, errorOf(request))
  return error
}

/** A failure with the whole request, for deciding whether a retry is safe. */
const wholeOf = (failure: unknown): unknown =>
  typeof failure === "object" && failure !== null ? wholes.get(failure) ?? failure : failure

/**
 * Reads how long a response asks the client to wait; `undefined` if it says nothing meaningful.
 *
 * `nowMillis` is the current time in epoch milliseconds, for headers that name a point in time: from the response's
 * `Date` header, else from the wall clock. It is NaN outside a fiber. A reader that throws counts as saying nothing.
 *
 * @category models
 * @since 0.1.0
 */
export type HintReader = (response: HttpClientResponse, nowMillis: number) => Duration.Input | undefined

/** The longest hint: a day. */
const maxHintMillis = 86_400_000

/** The answer in a response. */
export const answerOf = (response: HttpClientResponse): wire.Answer => ({
  status: response.status,
  header: (name) => response.headers[name],
  bodies: () => [get(response, "data")]
})

const reading = (reader: Hint.Reader): HintReader => (response, nowMillis) => reader(answerOf(response), nowMillis)

/**
 * Reads a header in whole milliseconds.
 *
 * @category hints
 * @since 0.1.0
 */
export const hintMillis = (name: string): HintReader => reading(Hint.named(name, Hint.millis))

/**
 * Reads a header in whole seconds.
 *
 * @category hints
 * @since 0.1.0
 */
export const hintSeconds = (name: string): HintReader => reading(Hint.named(name, Hint.seconds))

/**
 * Reads a header like `Retry-After`: whole seconds or an HTTP date. A date in the past says nothing.
 *
 * @category hints
 * @since 0.1.0
 */
export const hintRetryAfter = (name: string): HintReader => reading(Hint.named(name, Hint.secondsOrDate))

/**
 * Reads a header like `RateLimit-Reset`: the seconds until the window ends, or, from 1,000,000,000 up, its end in epoch
 * seconds, or, from 1,000,000,000,000 up, in epoch milliseconds; a time such as `6m0s`; or an RFC 3339 date. Services
 * send it with every response, so it is a hint only on a 429, or if the response says that nothing remains: in
 * `ratelimit-remaining`, `x-ratelimit-remaining`, or the header of the same name with `remaining` in place of `reset`.
 *
 * @category hints
 * @since 0.1.0
 */
export const hintReset = (name: string): HintReader => reading(Hint.resets(name))

/**
 * The default readers, in this order: `grpc-retry-pushback-ms`, `x-amz-retry-after`, `retry-after-ms` and
 * `x-ms-retry-after-ms` in milliseconds, `retry-after` and `x-ratelimit-retry-after` in seconds or as a date, `ratelimit` as
 * drafted by the IETF, `ratelimit-reset`, `x-ratelimit-reset`, `x-rate-limit-reset`, the reset headers of OpenAI and
 * Anthropic, then the `retryDelay` of Google's `RetryInfo` in a JSON body. The first that says something decides.
 *
 * @category hints
 * @since 0.1.0
 */
export const defaultHints: ReadonlyArray<HintReader> = /* @__PURE__ */ Hint.readers.map(reading)

/** The duration, unless a user's reader returned an invalid one. */
const valid = (hint: Duration.Input | undefined): Duration.Duration | undefined => {
  if (hint === undefined || (typeof hint === "number" && !(hint >= 0))) return undefined
  const duration = Option.getOrUndefined(Duration.fromInput(hint))
  if (duration === undefined || Duration.isNegative(duration)) return undefined
  return Duration.min(duration, Duration.millis(maxHintMillis))
}

/** The hint of the first reader that finds one; at most a day. Never throws. */
export const readHint = (
  readers: ReadonlyArray<HintReader>,
  response: HttpClientResponse,
  wallMillis: number
): Duration.Duration | undefined => {
  const nowMillis = Hint.presentMillis(answerOf(response), wallMillis)
  return firstFound(readers, (reader) => look(() => valid(reader(response, nowMillis))))
}

/**
 * The `hint` of a `CoolDown` for services with their own headers: the facts decide for a failure, the readers for any
 * other response, before what `CoolDown` itself reads.
 *
 * **Gotchas**
 *
 * The readers see every response, including successes: use none that reports something on each, as `hintRetryAfter` may
 * for a running job. Failures are read by the `hints` of {@link retry}.
 *
 * **Example** (A service with its own header for how long to wait)
 *
 * ```ts
 * const coolDownLayer = CoolDown.layer({ hint: RetryHttp.hintOf([RetryHttp.hintSeconds("x-vendor-wait")]) })
 * ```
 *
 * @category hints
 * @since 0.1.0
 */
export const hintOf =
  (readers: ReadonlyArray<HintReader>) => ({ info, value }: Outcome): Duration.Duration | undefined => {
    if (info !== undefined || !isResponse(value)) return info?.retryAfter
    const millis = hintOfValue(value, wallMillis)
    return readHint(readers, value, wallMillis()) ?? (millis === undefined ? undefined : Duration.millis(millis))
  }

type Info = Option.Option<RetryInfo.RetryInfo>

const notRetryable: Info = Option.some(RetryInfo.notRetryable)

/**
 * The statuses retried by default: 408, 425, 429 and the 5xx, except 501, 505, 506, 508, 510 and 511.
 *
 * @category getters
 * @since 0.1.0
 */
export const isRetryStatus: (status: number) => boolean = wire.isRetryStatus

const isFunction = (u: unknown): boolean => typeof u === "function"

/** Options of a classifier of HTTP failures. */
export const classifierOptions = {
  hints: Options.option("readers", {}, (check, field, value: ReadonlyArray<HintReader> = defaultHints) => {
    const areReaders = Array.isArray(value) && value.every(isFunction)
    return areReaders ? value : check.reject(field, value, "an array of functions of a response")
  }),
  retryStatus: Options.functionOf("a function of a status", isRetryStatus)
}

type ClassifierSettings = Options.Valid<typeof classifierOptions>

/** Whether a value is a response of Effect's HTTP client. */
export const isResponse = (u: unknown): u is HttpClientResponse => get(u, ResponseTypeId) === ResponseTypeId

/** Whether it may be a failure: what has no readable status is none. */
export const mayFail = (response: unknown): boolean => (get(response, "status") as number) >= 400

/** Whether a response is to another request than was sent: of `XMLHttpRequest`, that alone shows a redirect. */
const isFromElsewhere = ({ request, url }: HttpClientResponse): boolean => {
  const asked = Option.getOrUndefined(toUrl(request))
  if (asked === undefined) return false
  asked.hash = ""
  return asked.href !== url
}

/** The facts of a response; none if it is not a failure. */
const ofResponse = (settings: ClassifierSettings, response: HttpClientResponse): Info => {
  const { request, status } = response
  const kind = kindOf(answerOf(response), wire.retryStatusOf(() => request, settings.retryStatus))
  if (kind === undefined) {
    return status >= 500 ? Option.some(RetryInfo.make({ safety: "No", fault: "server" })) : Option.none()
  }
  const isMoved = () => wire.isRedirected(response) || isFromElsewhere(response)
  return Option.some(RetryInfo.make({
    ...infoOfKind(kind, status, isRepeatable(request), isMoved),
    retryAfter: kind === "final" ? undefined : readHint(settings.hints, response, wallMillis())
  }))
}

/** Of an error without a code, only the message says that `fetch` has refused the request. */
const isRefused = (error: unknown): boolean =>
  typeof get(error, "code") !== "string" &&
  codes.fetchRefusals.some((words) => words.test(short(get(error, "message"))))

const ofTransport = (request: HttpClientRequest, cause: unknown): RetryInfo.RetryInfo => {
  const causes = codes.causesOf(cause)
  if (causes.some((error) => codes.isFinalCause(error) || isRefused(error))) return RetryInfo.notRetryable
  return RetryInfo.make({
    safety: isRepeatable(request) || codes.isNeverSent(cause) ? "Yes" : "Maybe",
    timeout: causes.some(codes.isTimeout)
  })
}

const ofError = (settings: ClassifierSettings, { reason, response }: HttpClientError): Info => {
  if (reason._tag === "TransportError") return Option.some(ofTransport(reason.request, reason.cause))
  const info = response === undefined ? Option.none() : ofResponse(settings, response)
  return reason._tag === "StatusCodeError" ? info : Option.orElse(info, () => notRetryable)
}

/** The classifier of responses and of the errors of Effect's HTTP client; it knows nothing else. */
export const classifierOf = (settings: ClassifierSettings): RetryClassifier => (shown) => {
  const failure = wholeOf(shown)
  if (isResponse(failure)) return ofResponse(settings, failure)
  if (isHttpClientError(failure)) return ofError(settings, failure)
  return Option.none()
}

/**
 * A classifier of HTTP failures inside the one around its calls, which knows errors outside HTTP, and may forbid any
 * retry. A response that the first does not know is no failure.
 */
export const inside = (own: RetryClassifier, outer: RetryClassifier): RetryClassifier => (shown) => {
  const failure = wholeOf(shown)
  const classified = classify(own, failure)
  const isAnswer = isResponse(failure) && Option.isNone(classified)
  if (isAnswer || (Option.isSome(classified) && outer === defaultClassifier)) return classified
  const around = classify(outer, failure)
  const isVeto = Option.isSome(around) && around.value.safety === "No"
  return isVeto || Option.isNone(classified) ? around : classified
}

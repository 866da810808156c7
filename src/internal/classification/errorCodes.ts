import { failureOf } from "../cause.ts"
import { get, look, short } from "../tryGet.ts"

/** The 14 throttling codes of the AWS SDKs: the same list in JavaScript v3, botocore, Go v2, Rust and Kotlin. */
export const awsThrottlingCodes: ReadonlySet<string> = new Set([
  "BandwidthLimitExceeded",
  "EC2ThrottledException",
  "LimitExceededException",
  "PriorRequestNotComplete",
  "ProvisionedThroughputExceededException",
  "RequestLimitExceeded",
  "RequestThrottled",
  "RequestThrottledException",
  "SlowDown",
  "ThrottledException",
  "Throttling",
  "ThrottlingException",
  "TooManyRequestsException",
  "TransactionInProgressException"
])

/**
 * The name of a shape in `__type` or `x-amzn-errortype`, without a namespace before `#` or the URL that some services
 * add after a colon. Source: Smithy, AWS JSON 1.1 protocol, "Operation error serialization"; smithy-typescript cuts at
 * a comma too.
 */
export const shapeOf = (type: unknown): string | undefined =>
  typeof type === "string" ? short(type).replace(/[:,].*/s, "").replace(/^.*#/, "") : undefined

/** The properties that may hold the code of an AWS error: see `RetryClassifier.aws`. */
export const codesOf = (error: unknown): ReadonlyArray<unknown> => [
  get(error, "name"),
  get(error, "Code"),
  get(error, "code"),
  shapeOf(get(error, "__type"))
]

/** The transient codes that every AWS SDK shares. */
export const awsTransientCodes: ReadonlySet<string> = new Set(["RequestTimeout", "RequestTimeoutException"])

/** The transient statuses that every AWS SDK shares; 501, 505 and the rest of the 5xx are not retried. */
export const awsTransientStatuses: ReadonlySet<number> = new Set([500, 502, 503, 504])

/** Signature errors caused by a wrong clock: the same list in Java v1 and JavaScript v2. */
export const awsClockSkewCodes: ReadonlySet<string> = new Set([
  "AuthFailure",
  "InvalidSignatureException",
  "RequestExpired",
  "RequestInTheFuture",
  "RequestTimeTooSkewed",
  "SignatureDoesNotMatch"
])

/** Network failures of Node, its DNS and undici: the connection was never made, so nothing was processed. */
export const neverSentCodes: ReadonlySet<string> = new Set([
  "EAI_AGAIN",
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "UND_ERR_CONNECT_TIMEOUT"
])

/** How deep a chain of causes is followed, as in the AWS SDK for JavaScript. */
export const maxCauseDepth = 10

const messageOf = (error: any): unknown => look(() => error.message)

/** Of a message: some hold an address. */
const maxMessageLength = 4096

/** Whether an HTTP/2 server refused the stream, which it does before looking at the request. */
export const isRefusedStream = (error: any): boolean =>
  look(() => error.code) === "ERR_HTTP2_STREAM_ERROR" && /NGHTTP2_REFUSED_STREAM/.test(short(messageOf(error)))

/** The cause of the error, or of the reason in it. */
export const causeOf = (error: any): unknown => look(() => error.cause) ?? look(() => error.reason?.cause)

/**
 * Whether there was no connection. The system call tells, if it is named: the name lookup, then the connect. A route
 * can also be lost later, with the same code.
 */
const isUnconnected = (error: unknown): boolean => {
  const syscall = get(error, "syscall")
  return typeof syscall === "string"
    ? /^(?:connect|getaddrinfo|query\w+)$/.test(short(syscall))
    : neverSentCodes.has(get(error, "code") as string)
}

/** Node tries all addresses of a name, and lists the error of each in `errors`. */
const areUnconnected = (errors: unknown): boolean =>
  Array.isArray(errors) && errors.length > 0 && errors.every(isUnconnected)

const isUnsent = (error: unknown): boolean =>
  isUnconnected(error) || isRefusedStream(error) || areUnconnected(get(error, "errors")) ||
  unsentWords.test(short(messageOf(error), maxMessageLength))

/** The first of the error and its causes, those in a `Cause` too, that is wanted. For hot paths, which create no list for each error. */
export const findCause = (error: unknown, isWanted: (cause: unknown) => boolean): unknown => {
  let current = failureOf(error)
  for (let depth = 0; depth <= maxCauseDepth && current !== undefined && current !== null; depth++) {
    if (isWanted(current)) return current
    current = failureOf(causeOf(current))
  }
  return undefined
}

/** The error and its causes. */
export const causesOf = (error: unknown): ReadonlyArray<unknown> => {
  const found: Array<unknown> = []
  findCause(error, (cause) => found.push(cause) === 0)
  return found
}

/** Whether the error, or a cause of it, says that nothing was sent, or that the server looked at nothing of it. */
export const isNeverSent = (error: unknown): boolean => findCause(error, isUnsent) !== undefined

/**
 * Network failures after which it is unknown whether the request was processed. `ERR_NETWORK` is axios in a browser,
 * `ECONNABORTED` axios when it gives up.
 */
export const brokenCodes: ReadonlySet<string> = new Set([
  "ECONNABORTED",
  "ECONNRESET",
  "EPIPE",
  "ERR_NETWORK",
  "UND_ERR_SOCKET"
])

/** The client gave up waiting. */
export const timeoutCodes: ReadonlySet<string> = new Set([
  "ESOCKETTIMEDOUT",
  "ETIMEDOUT",
  "UND_ERR_BODY_TIMEOUT",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT"
])

/** Whether the client gave up waiting. */
export const isTimeout = (error: unknown): boolean =>
  timeoutCodes.has(get(error, "code") as string) || get(error, "name") === "TimeoutError" ||
  get(error, "_tag") === "TimeoutError"

/**
 * Messages of network failures without a code, for requests that were never sent. Source: Deno 2.9 and 1; Bun before
 * 1.4; pg-pool 3.
 */
const unsentWords =
  /^timeout exceeded when trying to|^Connection terminated due to|^error sending request .*(?:tcp connect|dns) error|^Unable to connect\. Is the|^Was there a typo in/

/**
 * The same, where it is unknown whether the request was processed. Source: Deno 2.9; Bun before 1.4; workerd of
 * November 2026.
 */
const brokenWords =
  /^error sending request .*SendRequest\): conn|^error reading a body|^Connection reset by peer|^The socket connection was closed|^Network connection lost\.?$/

/**
 * Messages of a `TypeError`, with the host in parentheses where Chrome or Sentry adds it. Source: Chromium 156, Firefox
 * 153, React Native; Safari 14 to 18 and newer Chrome as reported (npm `is-network-error`).
 */
const fetchWords =
  /^(?:Content-Length header of |(?:Failed to fetch|Load failed|NetworkError when attempting to fetch resource\.?|The Internet connection appears to be offline\.?|The network connection was lost\.|Network request failed|Network request timed out|network error| A network error occurred\.)(?: \(.*\))?$)/

const networkWords = /* @__PURE__ */ new RegExp(`${unsentWords.source}|${brokenWords.source}`)

/** Whether an error without a code has the message of a known network failure. */
export const isNetworkFailure = (error: unknown): boolean => {
  const message = messageOf(error)
  const isOfFetch = error instanceof TypeError || look(() => (error as Error).name) === "TypeError"
  return networkWords.test(short(message, maxMessageLength)) ||
    (isOfFetch && fetchWords.test(short(message, maxMessageLength)))
}

/** Whether a network failure says that the client gave up waiting. */
export const isTimeoutMessage = (error: unknown): boolean =>
  /time(?:d |)out/i.test(short(messageOf(error), maxMessageLength))

/**
 * Messages of `fetch` when it refuses to send such a request, or to such a server. Source: undici `lib/web/fetch`; the
 * others as seen in Chromium 156, Firefox 153, Deno 2.9, Bun 1.4 and workerd of November 2026.
 */
export const fetchRefusals: ReadonlyArray<RegExp> = [
  /^Headers\.|ByteString|^Invalid header name|^Header '.*' has invalid value$/,
  /^Request (?:cannot be constructed|with )/,
  /HTTP method(?: is unsupported)?\.$|^Invalid HTTP method|^Method is not valid$/,
  /^(?:unknown scheme|bad port)$|^Url scheme |^Fetch API cannot load: |^Fetch failed: Requests to port /,
  /^Failed to (?:execute|construct) '|^\w+\.fetch: |^Invalid URL/,
  /invalid peer certificate/
]

/**
 * Codes of Node, undici and axios that a second try will not change: a certificate, an argument, a closed client, a
 * request that the caller has canceled.
 */
const finalCodes =
  /^(?:CERT_|DEPTH_ZERO_|ERR_(?:CANCELED$|(?:HTTP_)?INVALID_|TLS_CERT|UNESCAPED_)|SELF_SIGNED_|UNABLE_TO_|UND_ERR_(?:CLOSED|DESTROYED|INVALID_|NOT_SUPPORTED|REQ_CONTENT_LENGTH_))/

/** Whether a second try cannot help, or the caller has canceled it: by a signal that is not that of a timeout. */
export const isFinalCause = (error: unknown): boolean => {
  if (get(error, "name") === "AbortError") return get(causeOf(error), "name") !== "TimeoutError"
  return finalCodes.test(short(get(error, "code")))
}

/**
 * Messages of grpc-js for an `UNAVAILABLE` call that no server has looked at: no connection, or a stream refused
 * (REFUSED_STREAM) before it reached the application. Source: grpc-js `load-balancer-*.ts`, `resolver-dns.ts`,
 * `subchannel-call.ts`.
 */
export const grpcNeverProcessed: RegExp =
  /^(?:(?:weighted_)?round_robin: )?No connection established|^Name resolution failed for target|^Stream refused by server/

/**
 * Messages of gRPC libraries for a `RESOURCE_EXHAUSTED` caused by a message that is too long, which no retry makes
 * shorter. Source: grpc-js, grpc-go, grpc core (`larger than`), grpc-java (`exceeds maximum size`).
 */
export const grpcTooLong: RegExp = /message (?:\S+ ){0,6}larger than|message exceeds maximum size/i

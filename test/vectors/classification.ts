// The class of an error as smithy-typescript gives it, and whether the client itself gave up waiting: that is ours, as
// botocore has it (JavaScript makes every transient error cost as much as a time-out).
// Source: smithy-typescript service-error-classification.spec.ts @6815d3e96f.

const throttlingCodes = [
  "BandwidthLimitExceeded",
  "EC2ThrottledException",
  "LimitExceededException",
  // In botocore also a transient code, in Java 2.0 only that; throttling wins here, as in JavaScript.
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
]

const refusedStream = {
  code: "ERR_HTTP2_STREAM_ERROR",
  message: "Stream closed with error code NGHTTP2_REFUSED_STREAM"
}

const selfReferencing = () => {
  const error: { cause?: unknown } = {}
  error.cause = error
  return error
}

export interface JsVector {
  readonly name: string
  readonly error: object
  readonly errorType: "THROTTLING" | "TRANSIENT" | "SERVER_ERROR" | "CLIENT_ERROR"
  readonly timeout?: true
}

export const js: ReadonlyArray<JsVector> = [
  ...throttlingCodes.map((name): JsVector => ({ name, error: { name, $metadata: {} }, errorType: "THROTTLING" })),
  // botocore does not retry a 429 that has none of the codes; ours is throttling, as in JavaScript, Java and Ruby.
  { name: "status 429", error: { $metadata: { httpStatusCode: 429 } }, errorType: "THROTTLING" },
  { name: "trait, throttling", error: { $retryable: { throttling: true } }, errorType: "THROTTLING" },
  { name: "trait, not throttling", error: { $retryable: { throttling: false } }, errorType: "TRANSIENT" },
  { name: "trait, empty", error: { $retryable: {} }, errorType: "TRANSIENT" },
  { name: "TimeoutError", error: { name: "TimeoutError" }, errorType: "TRANSIENT", timeout: true },
  // The server gave up waiting for the client, so it is no time-out of ours.
  { name: "RequestTimeout", error: { name: "RequestTimeout" }, errorType: "TRANSIENT" },
  { name: "RequestTimeoutException", error: { name: "RequestTimeoutException" }, errorType: "TRANSIENT" },
  { name: "status 500", error: { $metadata: { httpStatusCode: 500 } }, errorType: "TRANSIENT" },
  { name: "status 502", error: { $metadata: { httpStatusCode: 502 } }, errorType: "TRANSIENT" },
  { name: "status 503", error: { $metadata: { httpStatusCode: 503 } }, errorType: "TRANSIENT" },
  { name: "status 504", error: { $metadata: { httpStatusCode: 504 } }, errorType: "TRANSIENT" },
  { name: "cause TimeoutError", error: { cause: { name: "TimeoutError" } }, errorType: "TRANSIENT", timeout: true },
  { name: "cause RequestTimeout", error: { cause: { name: "RequestTimeout" } }, errorType: "TRANSIENT" },
  {
    name: "cause RequestTimeoutException",
    error: { cause: { name: "RequestTimeoutException" } },
    errorType: "TRANSIENT"
  },
  { name: "ECONNRESET", error: { code: "ECONNRESET" }, errorType: "TRANSIENT" },
  { name: "ECONNREFUSED", error: { code: "ECONNREFUSED" }, errorType: "TRANSIENT" },
  { name: "EPIPE", error: { code: "EPIPE" }, errorType: "TRANSIENT" },
  { name: "ETIMEDOUT", error: { code: "ETIMEDOUT" }, errorType: "TRANSIENT", timeout: true },
  { name: "EHOSTUNREACH", error: { code: "EHOSTUNREACH" }, errorType: "TRANSIENT" },
  { name: "ENETUNREACH", error: { code: "ENETUNREACH" }, errorType: "TRANSIENT" },
  { name: "ENOTFOUND", error: { code: "ENOTFOUND" }, errorType: "TRANSIENT" },
  { name: "EAI_AGAIN", error: { code: "EAI_AGAIN" }, errorType: "TRANSIENT" },
  { name: "status 501", error: { $metadata: { httpStatusCode: 501 } }, errorType: "SERVER_ERROR" },
  { name: "status 505", error: { $metadata: { httpStatusCode: 505 } }, errorType: "SERVER_ERROR" },
  { name: "status 511", error: { $metadata: { httpStatusCode: 511 } }, errorType: "SERVER_ERROR" },
  { name: "refused HTTP/2 stream", error: refusedStream, errorType: "TRANSIENT" },
  { name: "cause refused HTTP/2 stream", error: { cause: refusedStream }, errorType: "TRANSIENT" },
  { name: "cause itself", error: selfReferencing(), errorType: "CLIENT_ERROR" }
]

/** A response as botocore classifies it; `code` or `status` may be missing. */
export interface BotocoreVector {
  readonly status: number
  readonly code?: string
  /** `"no"`: neither throttled nor transient. */
  readonly is: "throttled" | "transient" | "no"
}

// Source: botocore tests/unit/retries/test_standard.py @0e6e2404b8. It asks "throttled?" and "transient?" apart; the rows
// of both are in this one table, each response once.
export const botocore: ReadonlyArray<BotocoreVector> = [
  { status: 400, code: "Throttling", is: "throttled" },
  { status: 400, code: "ThrottlingException", is: "throttled" },
  { status: 400, code: "ThrottledException", is: "throttled" },
  { status: 400, code: "RequestThrottledException", is: "throttled" },
  { status: 400, code: "TooManyRequestsException", is: "throttled" },
  { status: 400, code: "ProvisionedThroughputExceededException", is: "throttled" },
  { status: 400, code: "TransactionInProgressException", is: "throttled" },
  { status: 503, code: "RequestLimitExceeded", is: "throttled" },
  { status: 509, code: "BandwidthLimitExceeded", is: "throttled" },
  { status: 400, code: "LimitExceededException", is: "throttled" },
  { status: 403, code: "RequestThrottled", is: "throttled" },
  { status: 503, code: "SlowDown", is: "throttled" },
  // Both throttled and transient in botocore; throttling wins here.
  { status: 400, code: "PriorRequestNotComplete", is: "throttled" },
  { status: 502, code: "EC2ThrottledException", is: "throttled" },
  { status: 400, code: "NotAThrottlingError", is: "no" },
  { status: 500, code: "InternalServerError", is: "transient" },
  { status: 400, is: "no" },
  { status: 200, is: "no" },
  { status: 400, code: "RequestTimeout", is: "transient" },
  { status: 400, code: "RequestTimeoutException", is: "transient" },
  { status: 500, is: "transient" },
  { status: 502, is: "transient" },
  { status: 503, is: "transient" },
  { status: 504, is: "transient" },
  { status: 500, code: "InternalServiceError", is: "transient" },
  { status: 502, code: "BadError", is: "transient" }
]

/** What botocore's ConnectionError and HTTPClientError, both transient, are in Node; same source. */
export const botocoreExceptions = [
  { name: "ConnectionError", error: { code: "ECONNREFUSED" } },
  { name: "HTTPClientError", error: { code: "UND_ERR_SOCKET" } }
]

/** Errors that the service model marks, which JavaScript reads from `$retryable`; same source. */
export const botocoreModeled: ReadonlyArray<BotocoreVector & { readonly trait?: { readonly throttling?: true } }> = [
  { status: 400, code: "ModeledThrottlingError", trait: { throttling: true }, is: "throttled" },
  { status: 400, code: "ModeledRetryableError", trait: {}, is: "transient" },
  { status: 400, code: "ErrorCodeRetryable", trait: { throttling: true }, is: "throttled" },
  { status: 400, code: "NonRetryableError", is: "no" }
]

/** Retried only once the signer has corrected its clock. Source: smithy-typescript constants.ts @6815d3e96f. */
export const clockSkewCodes = [
  "AccessDeniedException",
  "AuthFailure",
  "InvalidSignatureException",
  "RequestExpired",
  "RequestInTheFuture",
  "RequestTimeTooSkewed",
  "SignatureDoesNotMatch"
]

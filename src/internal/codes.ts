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

/** The transient codes that every AWS SDK shares. */
export const awsTransientCodes: ReadonlySet<string> = new Set(["RequestTimeout", "RequestTimeoutException"])

/** The transient statuses that every AWS SDK shares; 501, 505 and the rest of the 5xx are not retried. */
export const awsTransientStatuses: ReadonlySet<number> = new Set([500, 502, 503, 504])

/** What signatures fail with when the clock is wrong: the same list in Java v1 and JavaScript v2. */
export const awsClockSkewCodes: ReadonlySet<string> = new Set([
  "AuthFailure",
  "InvalidSignatureException",
  "RequestExpired",
  "RequestInTheFuture",
  "RequestTimeTooSkewed",
  "SignatureDoesNotMatch"
])

/** HTTP statuses that are worth a retry when the error has no AWS shape. */
export const httpTransientStatuses: ReadonlySet<number> = new Set([408, 425, 500, 502, 503, 504])

/** Network failures of Node, its DNS and undici: the connection was never made, so nothing was processed. */
export const neverSentCodes: ReadonlySet<string> = new Set([
  "EAI_AGAIN",
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "UND_ERR_CONNECT_TIMEOUT"
])

/** Network failures after which nobody knows whether the request was processed. */
export const brokenCodes: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"])

/** The client gave up waiting. */
export const timeoutCodes: ReadonlySet<string> = new Set([
  "ESOCKETTIMEDOUT",
  "ETIMEDOUT",
  "UND_ERR_BODY_TIMEOUT",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT"
])

/** How browsers word a failed fetch. */
export const browserNetworkMessages: ReadonlySet<string> = new Set([
  "Failed to fetch",
  "NetworkError when attempting to fetch resource",
  "The Internet connection appears to be offline",
  "Load failed",
  "Network request failed"
])

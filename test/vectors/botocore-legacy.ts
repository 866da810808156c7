// What botocore 1.43.107 does in legacy mode; seconds. Made by running its own code (`translate.build_retry_config`,
// `retryhandler`), its unit tests `test_retryhandler.py` and functional tests `test_retry.py`, and `retries/test_special.py`.
// Source: boto/botocore @0e6e2404b8.

/** A response, and whether the service retries it. */
export interface Decision {
  readonly status: number
  readonly code?: string
  readonly retry: boolean
}

const row = (status: number, code: string | undefined, retry: boolean): Decision => ({
  status,
  ...(code !== undefined && { code }),
  retry
})

/** All probes of a service without overrides. */
export const decisions: ReadonlyArray<Decision> = [
  row(500, undefined, true),
  row(501, undefined, false),
  row(502, undefined, true),
  row(503, undefined, true),
  row(504, undefined, true),
  row(509, undefined, true),
  row(429, undefined, true),
  row(400, undefined, false),
  row(403, undefined, false),
  row(408, undefined, false),
  row(409, undefined, false),
  row(400, "Throttling", true),
  row(400, "ThrottlingException", true),
  row(400, "ThrottledException", true),
  row(400, "RequestThrottledException", true),
  row(400, "ProvisionedThroughputExceededException", true),
  row(400, "TooManyRequestsException", false),
  row(400, "LimitExceededException", false),
  row(400, "RequestTimeout", false),
  row(400, "BadDigest", false),
  row(400, "PriorRequestNotComplete", false),
  row(400, "IDPCommunicationError", false),
  row(400, "TransactionInProgressException", false),
  row(400, "SlowDown", false),
  row(400, "RequestLimitExceeded", false),
  row(429, "TooManyRequestsException", true),
  row(503, "SlowDown", true),
  row(503, "RequestLimitExceeded", true),
  row(503, "EC2ThrottledException", true),
  row(403, "RequestThrottled", false),
  row(408, "RequestTimeoutException", false),
  row(409, "ReplicatedWriteConflictException", false),
  row(509, "BandwidthLimitExceeded", true),
  row(403, "Throttling", false)
]

/** The services with overrides: the probes that they answer differently, and no others. */
export const services: Readonly<Record<string, ReadonlyArray<Decision>>> = {
  organizations: [
    row(429, undefined, false),
    row(400, "TooManyRequestsException", true),
    row(429, "TooManyRequestsException", false)
  ],
  dynamodb: [
    row(400, "TransactionInProgressException", true),
    row(409, "ReplicatedWriteConflictException", true)
  ],
  ec2: [],
  cloudsearch: [],
  kinesis: [row(400, "LimitExceededException", true)],
  sqs: [row(403, "RequestThrottled", true)],
  s3: [row(400, "RequestTimeout", true), row(400, "BadDigest", true)],
  glacier: [row(408, "RequestTimeoutException", true)],
  route53: [row(400, "PriorRequestNotComplete", true)],
  sts: [row(400, "IDPCommunicationError", true)]
}

const on = (status: number, code?: string) => ({ _tag: "Response", status, code })

/** The policies of every service, by their names. */
export const defaultPolicies = {
  general_socket_errors: { _tag: "SocketErrors" },
  general_server_error: on(500),
  bad_gateway: on(502),
  service_unavailable: on(503),
  gateway_timeout: on(504),
  limit_exceeded: on(509),
  throttling_exception: on(400, "ThrottlingException"),
  throttled_exception: on(400, "ThrottledException"),
  request_throttled_exception: on(400, "RequestThrottledException"),
  throttling: on(400, "Throttling"),
  too_many_requests: on(429),
  throughput_exceeded: on(400, "ProvisionedThroughputExceededException")
}

/** What a service has of its own: policies that the default lacks, or has with another condition. */
export interface Override {
  readonly maxAttempts: number
  readonly base: number | "rand"
  readonly policies: Readonly<Record<string, object>>
}

const override = (policies: Override["policies"]): Override => ({ maxAttempts: 5, base: "rand", policies })

export const overrides: Readonly<Record<string, Override>> = {
  organizations: override({ too_many_requests: on(400, "TooManyRequestsException") }),
  dynamodb: {
    maxAttempts: 10,
    base: 0.05,
    policies: {
      write_conflict: on(409, "ReplicatedWriteConflictException"),
      still_processing: on(400, "TransactionInProgressException"),
      crc32: { _tag: "Crc32", header: "x-amz-crc32" }
    }
  },
  ec2: override({
    request_limit_exceeded: on(503, "RequestLimitExceeded"),
    ec2_throttled_exception: on(503, "EC2ThrottledException")
  }),
  cloudsearch: override({ request_limit_exceeded: on(509, "BandwidthLimitExceeded") }),
  kinesis: override({ request_limit_exceeded: on(400, "LimitExceededException") }),
  sqs: override({ request_limit_exceeded: on(403, "RequestThrottled") }),
  s3: override({ timeouts: on(400, "RequestTimeout"), contentmd5: on(400, "BadDigest") }),
  glacier: override({ timeouts: on(408, "RequestTimeoutException") }),
  route53: override({
    request_limit_exceeded: on(400, "Throttling"),
    still_processing: on(400, "PriorRequestNotComplete")
  }),
  sts: override({ idp_unreachable_error: on(400, "IDPCommunicationError") })
}

/** The delay after so many attempts. With `"rand"` it is the bound below which chance leaves it. */
export interface DelayVector {
  readonly base: number | "rand"
  readonly growth: number
  readonly attempts: number
  readonly delay: number | "refused"
}

const delay = (base: number | "rand", attempts: number, delay: number | "refused"): DelayVector => ({
  base,
  growth: 2,
  attempts,
  delay
})

export const delays: ReadonlyArray<DelayVector> = [
  delay(3, 3, 12),
  delay("rand", 3, 4),
  delay(-1, 3, "refused"),
  delay(1, 1, 1),
  delay(1, 2, 2),
  delay(1, 3, 4),
  delay(1, 4, 8),
  delay(0.05, 1, 0.05),
  delay(0.05, 2, 0.1),
  delay(0.05, 3, 0.2),
  delay(0.05, 4, 0.4),
  delay(0.05, 5, 0.8),
  delay(0.05, 6, 1.6),
  delay(0.05, 7, 3.2),
  delay(0.05, 8, 6.4),
  delay(0.05, 9, 12.8)
]

/** What becomes of an attempt: sent again, after a delay where one is published, or failed with its own error. */
export interface LimitVector {
  readonly max: number
  readonly attempt: number
  readonly failure: "response" | "success" | "ECONNREFUSED" | "ETIMEDOUT" | "ValueError" | "crc32"
  readonly outcome: "retry" | "stop"
  readonly delay?: number
}

// Of the four exceptions of Python, the codes of Node that mean the same.
export const limits: ReadonlyArray<LimitVector> = [
  { max: 3, attempt: 1, failure: "response", outcome: "retry" },
  { max: 3, attempt: 2, failure: "response", outcome: "retry" },
  { max: 3, attempt: 3, failure: "response", outcome: "stop" },
  { max: 3, attempt: 2, failure: "success", outcome: "stop" },
  { max: 5, attempt: 10, failure: "ECONNREFUSED", outcome: "stop" },
  { max: 5, attempt: 1, failure: "ECONNREFUSED", outcome: "retry", delay: 1 },
  { max: 5, attempt: 1, failure: "ETIMEDOUT", outcome: "retry", delay: 1 },
  { max: 5, attempt: 1, failure: "ValueError", outcome: "stop" },
  { max: 5, attempt: 1, failure: "crc32", outcome: "retry", delay: 1 },
  { max: 5, attempt: 10, failure: "crc32", outcome: "stop" }
]

/** How often a service retries a failure that never passes; `maxRetries` is the client's `max_attempts`. */
export interface RetriesVector {
  readonly service: string
  readonly maxRetries?: number
  readonly retries: number
}

export const retries: ReadonlyArray<RetriesVector> = [
  { service: "dynamodb", retries: 9 },
  { service: "codecommit", retries: 4 },
  { service: "dynamodb", maxRetries: 1, retries: 1 },
  { service: "dynamodb", maxRetries: 0, retries: 0 }
]

/** The body `foo` of a response with the status 200, whose CRC-32 is 2356372769. */
export interface ChecksumVector {
  readonly service: string
  readonly header: string | undefined
  readonly retry: boolean
}

export const checksums: ReadonlyArray<ChecksumVector> = [
  { service: "dynamodb", header: undefined, retry: false },
  { service: "dynamodb", header: "2356372769", retry: false },
  { service: "dynamodb", header: "2356372768", retry: true },
  { service: "s3", header: "2356372768", retry: false }
]

/**
 * The legacy retry mode of botocore, and any other described by its `_retry.json` documents.
 *
 * A document names policies: a status, a status and an error code, a failed connection, a corrupted body. It has
 * defaults for all services and overrides for some. {@link forService} turns it into a classifier that knows what the
 * document retries, and a policy that knows how often and after what delay. The mode has no quota and no cap.
 *
 * The package's index does not export this module: import `effect-retry/aws/legacy/BotocoreLegacy`.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Backoff from "../../Backoff.ts"
import { maxDelayMillis } from "../../engine/delay.ts"
import { checksOf } from "../../internal/checks.ts"
import * as codes from "../../internal/classification/errorCodes.ts"
import { headerIn, statusOf } from "../../internal/classification/wire.ts"
import { count, inCode, optional, validOptions } from "../../internal/options.ts"
import { get, short } from "../../internal/tryGet.ts"
import * as RetryClassifier from "../../RetryClassifier.ts"
import * as RetryInfo from "../../RetryInfo.ts"
import * as RetryPolicy from "../../RetryPolicy.ts"
import * as Documents from "../internal/botocoreDocument.ts"
import { BotocoreLegacyError, type Condition, type Document } from "../internal/botocoreDocument.ts"
import { timedOut, transport } from "../internal/classifiers.ts"

export { BotocoreLegacyError, type Document } from "../internal/botocoreDocument.ts"

const unreadable = { path: [], value: "an object", problem: "Expected plain data" }

/** An object that throws while it is read is more than data. */
const decoding = (decode: () => Document): Effect.Effect<Document, BotocoreLegacyError> =>
  Effect.try({
    try: decode,
    catch: (error) => error instanceof BotocoreLegacyError ? error : new BotocoreLegacyError(unreadable)
  })

/**
 * Decodes a document, as returned by `JSON.parse`.
 *
 * **Details**
 *
 * | key | value |
 * | --- | --- |
 * | `definitions` | policies to refer to, by name; optional |
 * | `retry.__default__` | `max_attempts`, `delay` and `policies` of every service |
 * | `retry.<service>.__default__` | the same, all optional: overrides the default, key by key |
 * | `retry.<service>.<Operation>` | additional `policies` of the operation |
 * | `max_attempts` | attempts, the first included: a whole number of at least 1 |
 * | `delay` | `type` `"exponential"`; `base` `"rand"` or seconds above 0; `growth_factor` of at least 1 |
 * | `policies` | by name, `{ "$ref": definition }` or `{ "applies_when": condition }` |
 * | condition | `response` with `http_status_code` (100 to 599) and optionally `service_error_code`, or with
 * `crc32body`, the name of a header; or `socket_errors: ["GENERAL_CONNECTION_ERROR"]` |
 *
 * Fails with a `BotocoreLegacyError` that names the path and the value if anything is missing, unknown, out of range,
 * named like a property of every object (`__proto__`, `constructor`), deeper than 16 levels, longer than 256
 * characters, or if there are more than 10,000 values in all. Never throws.
 *
 * **Gotchas**
 *
 * botocore accepts a `growth_factor` below 1, whose delays shrink. This does not.
 *
 * @category constructors
 * @since 0.1.0
 */
export const decode = (document: unknown): Effect.Effect<Document, BotocoreLegacyError> =>
  decoding(() => Documents.decodeUnsafe(document))

/**
 * Decodes a document from the text of a `_retry.json` file: at most 1,000,000 characters. Fails like {@link decode},
 * and if the text is not valid JSON, or not a string.
 *
 * @category constructors
 * @since 0.1.0
 */
export const decodeJson = (json: string): Effect.Effect<Document, BotocoreLegacyError> =>
  decoding(() => Documents.decodeUnsafe(Documents.parseUnsafe(json)))

const onStatus = (http_status_code: number) => ({ applies_when: { response: { http_status_code } } })

const onCode = (service_error_code: string, http_status_code: number) => ({
  applies_when: { response: { service_error_code, http_status_code } }
})

const override = (policies: Readonly<Record<string, object>>, rest: object = {}) => ({
  __default__: { ...rest, policies }
})

/**
 * The built-in {@link document} before decoding: to spread into your own document.
 *
 * **Details**
 *
 * Five attempts, `random * 2^(n - 1)` seconds before retry `n`; DynamoDB ten attempts and `0.05 * 2^(n - 1)` seconds.
 * Source: botocore 1.43, `botocore/data/_retry.json`, restated.
 *
 * **Gotchas**
 *
 * As in botocore, the `too_many_requests` of `organizations` replaces the default one, so a 429 is retried there only
 * with `TooManyRequestsException` and status 400.
 *
 * @category documents
 * @since 0.1.0
 */
export const documentJson: Readonly<Record<"definitions" | "retry", Readonly<Record<string, object>>>> = {
  definitions: {
    connection_failed: { applies_when: { socket_errors: ["GENERAL_CONNECTION_ERROR"] } },
    throttling: onCode("Throttling", 400)
  },
  retry: {
    __default__: {
      max_attempts: 5,
      delay: { type: "exponential", base: "rand", growth_factor: 2 },
      policies: {
        general_socket_errors: { $ref: "connection_failed" },
        general_server_error: onStatus(500),
        bad_gateway: onStatus(502),
        service_unavailable: onStatus(503),
        gateway_timeout: onStatus(504),
        limit_exceeded: onStatus(509),
        too_many_requests: onStatus(429),
        throttling: { $ref: "throttling" },
        throttling_exception: onCode("ThrottlingException", 400),
        throttled_exception: onCode("ThrottledException", 400),
        request_throttled_exception: onCode("RequestThrottledException", 400),
        throughput_exceeded: onCode("ProvisionedThroughputExceededException", 400)
      }
    },
    cloudsearch: override({ request_limit_exceeded: onCode("BandwidthLimitExceeded", 509) }),
    dynamodb: override({
      write_conflict: onCode("ReplicatedWriteConflictException", 409),
      still_processing: onCode("TransactionInProgressException", 400),
      crc32: { applies_when: { response: { crc32body: "x-amz-crc32" } } }
    }, { max_attempts: 10, delay: { base: 0.05 } }),
    ec2: override({
      request_limit_exceeded: onCode("RequestLimitExceeded", 503),
      ec2_throttled_exception: onCode("EC2ThrottledException", 503)
    }),
    glacier: override({ timeouts: onCode("RequestTimeoutException", 408) }),
    kinesis: override({ request_limit_exceeded: onCode("LimitExceededException", 400) }),
    organizations: override({ too_many_requests: onCode("TooManyRequestsException", 400) }),
    route53: override({
      request_limit_exceeded: { $ref: "throttling" },
      still_processing: onCode("PriorRequestNotComplete", 400)
    }),
    s3: override({ timeouts: onCode("RequestTimeout", 400), contentmd5: onCode("BadDigest", 400) }),
    sqs: override({ request_limit_exceeded: onCode("RequestThrottled", 403) }),
    sts: override({ idp_unreachable_error: onCode("IDPCommunicationError", 400) })
  }
}

/**
 * The legacy mode of botocore: {@link documentJson}, decoded.
 *
 * @category documents
 * @since 0.1.0
 */
export const document: Document = Documents.decodeUnsafe(documentJson)

/**
 * A body whose CRC-32 differs from the one in a header of its response. Its own facts call it transient; a service of a
 * document retries it if one of its policies names the header.
 *
 * @category errors
 * @since 0.1.0
 */
export class ChecksumError extends RetryInfo.TaggedError("ChecksumError", { fault: "server" })<{
  /** The header, in lowercase. */
  readonly header: string
  /** The CRC-32 in the header. */
  readonly expected: number
  /** The CRC-32 of the body. */
  readonly actual: number
}> {
  override get message(): string {
    return `the CRC-32 of the body is ${this.actual}, its ${this.header} header says ${this.expected}`
  }
}

/**
 * A response whose body a {@link ServiceRetry} can check.
 *
 * @category models
 * @since 0.1.0
 */
export interface CheckedResponse {
  /** A record by name, in any case; or an object with a lookup function, such as the `Headers` of fetch. */
  readonly headers:
    | { readonly [name: string]: string | undefined }
    | { readonly get: (name: string) => string | null | undefined }
  /** The bytes as sent: before decompression. */
  readonly body: Uint8Array
}

/**
 * The result of {@link forService}.
 *
 * @category models
 * @since 0.1.0
 */
export interface ServiceRetry {
  /** How often and when errors known to the context's classifier are retried: provide `layer`. */
  readonly policy: RetryPolicy.RetryPolicy
  /**
   * Decides what is retried. Vetoes all other responses; does not know errors that are neither responses nor connection
   * errors.
   */
  readonly classifier: RetryClassifier.RetryClassifier
  /** Sets the classifier. */
  readonly layer: Layer.Layer<never>
  /**
   * Fails with a `ChecksumError` if a policy of the service names a header that differs from the CRC-32 of the body.
   * Other services check nothing; a header that is missing, or not a whole number, is not compared.
   */
  readonly checkBody: (response: CheckedResponse) => Effect.Effect<void, ChecksumError>
}

/**
 * Options of a client.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /**
   * Attempts, the first included, instead of those of the document: a whole number of at least 1. This is botocore's
   * `total_max_attempts`, and overrides `maxRetries`.
   */
  readonly maxAttempts?: number | undefined
  /** Retries, not counting the first attempt: a whole number of at least 0. This is botocore's `max_attempts`. */
  readonly maxRetries?: number | undefined
  /** The operation, for documents that have policies for it. Default: none. */
  readonly operation?: string | undefined
}

const optionRecord = { maxAttempts: optional(count(1)), maxRetries: optional(count(0)), operation: inCode }

const facts = {
  throttled: Option.some(RetryInfo.throttled()),
  client: Option.some(RetryInfo.make({ fault: "client" })),
  server: Option.some(RetryInfo.transient),
  veto: Option.some(RetryInfo.notRetryable)
}

type Conditions = ReadonlyArray<Condition>

const response = (conditions: Conditions, status: number, error: unknown): Option.Option<RetryInfo.RetryInfo> => {
  const found = codes.codesOf(error)
  const isRetried = conditions.some(({ response: { http_status_code: on, service_error_code: code } = {} }) =>
    on === status && (code === undefined || found.includes(code))
  )
  if (!isRetried) return facts.veto
  if (status === 429 || found.some((code) => codes.awsThrottlingCodes.has(code as string))) return facts.throttled
  return status >= 500 ? facts.server : facts.client
}

/** What botocore calls a general connection error: no connection, a broken one, or no response in time. */
const connection = RetryClassifier.chain([timedOut, transport, RetryClassifier.network])

const classifierOf = (conditions: Conditions, checked: ReadonlyArray<string>): RetryClassifier.RetryClassifier => {
  const connects = conditions.some(({ socket_errors: errors = [] }) => errors.length > 0)
  return RetryClassifier.followingCause((error) => {
    if (get(error, "_tag") === "ChecksumError") {
      return checked.includes(get(error, "header") as string) ? facts.server : facts.veto
    }
    const status = statusOf(error)
    if (status !== undefined) return response(conditions, status, error)
    return connects ? connection(error) : Option.none()
  })
}

/** The headers that are compared with the body. */
const headersOf = (conditions: Conditions): ReadonlyArray<string> =>
  conditions.flatMap(({ response }) => response?.crc32body?.toLowerCase() ?? [])

const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  return crc
})

/** The CRC-32 of ISO 3309, as in zlib. */
const crc32 = (bytes: Uint8Array): number => {
  let crc = 0xffffffff
  for (const byte of bytes) crc = (crc >>> 8) ^ crcTable[(crc ^ byte) & 0xff]!
  return (crc ^ 0xffffffff) >>> 0
}

const checkerOf = (checked: ReadonlyArray<string>): ServiceRetry["checkBody"] => ({ body, headers }) =>
  Effect.suspend(() => {
    const read = headerIn(headers)
    for (const header of checked) {
      const text = String(read(header)).trim()
      if (!/^\d+$/.test(short(text))) continue
      const actual = crc32(body)
      if (actual !== Number(text)) return Effect.fail(new ChecksumError({ header, expected: Number(text), actual }))
    }
    return Effect.void
  })

const policyOf = (
  { base, growth_factor: factor }: Documents.Settings["delay"],
  maxAttempts: number
): RetryPolicy.RetryPolicy =>
  Backoff.exponential(base === "rand" ? 1000 : Math.min(base * 1000, maxDelayMillis), factor, {
    jitter: base === "rand" ? "full" : "none"
  }).pipe(
    RetryPolicy.maxAttempts(maxAttempts),
    RetryPolicy.whileRetryable
  )

/**
 * Makes the policy and the classifier of a service.
 *
 * **Details**
 *
 * The delay before retry `n` is `base * growth_factor^(n - 1)` seconds, with a new `base` in `[0, 1)` each time if the
 * document says `"rand"`, and no cap: it saturates at 2^53 milliseconds. There is no quota, and no server's hint is
 * followed. A response is retried if its status, and its error code if the policy names one, match a policy; all others
 * are vetoed. Connection errors are retried whatever the method of the request. A service not in the document has the
 * default's policies.
 *
 * **Gotchas**
 *
 * Throws `InvalidOption` for an invalid `maxAttempts` or `maxRetries`. The classifier uses neither the facts that an
 * error carries nor the default chain: put `RetryClassifier.carried` before it, with `RetryClassifier.orElse`, for
 * those.
 *
 * **Example** (DynamoDB as botocore retries it)
 *
 * ```ts
 * const dynamodb = BotocoreLegacy.forService(BotocoreLegacy.document, "dynamodb")
 * const program = callDynamo.pipe(withRetry(dynamodb.policy), Effect.provide(dynamodb.layer))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const forService = (
  document: Document,
  /** The endpoint prefix, such as `"dynamodb"`. */
  service: string,
  options: Options = {}
): ServiceRetry => {
  const settings = document.services.get(service) ?? document.fallback
  const check = checksOf("BotocoreLegacy.forService", options)
  const valid = validOptions(check, optionRecord, options)
  const { maxRetries = settings.max_attempts - 1, maxAttempts = maxRetries + 1 } = valid
  const policies = { ...document.fallback.policies, ...settings.policies }
  const additional = settings.operations.get(options.operation!) ?? {}
  const conditions = [policies, additional].flatMap((all) => Object.values(all).map(({ applies_when: when }) => when))
  const headers = headersOf(conditions)
  const classifier = classifierOf(conditions, headers)
  return {
    policy: policyOf(settings.delay, maxAttempts),
    classifier,
    layer: RetryClassifier.layer(classifier),
    checkBody: checkerOf(headers)
  }
}

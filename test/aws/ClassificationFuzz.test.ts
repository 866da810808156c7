import { assert, describe, it } from "@effect/vitest"
import { isThrottlingError, isTransientError } from "@smithy/core/retry"
import { RetryClassifier } from "effect-retry"
import * as Option from "effect/Option"
import * as fs from "node:fs"
import { classifier } from "../../src/aws/internal/sdk/errorInfo.ts"
import * as codes from "../../src/internal/classification/errorCodes.ts"
import { get } from "../../src/internal/tryGet.ts"
import { seeded } from "../utils/smithy.ts"

type Class = "throttling" | "transient" | "no"

const sdkClass = (error: any): Class =>
  isThrottlingError(error) ? "throttling" : isTransientError(error) ? "transient" : "no"

const classOf = (classify: RetryClassifier.RetryClassifier, error: unknown): Class =>
  Option.match(classify(error), {
    onNone: () => "no",
    onSome: ({ safety, throttling }) => safety !== "Yes" ? "no" : throttling ? "throttling" : "transient"
  })

const names = [
  ...codes.awsThrottlingCodes,
  ...codes.awsTransientCodes,
  ...codes.awsClockSkewCodes,
  "AbortError",
  "TimeoutError",
  "Error",
  "TypeError",
  "ValidationException",
  "AccessDeniedException",
  "IDPCommunicationError",
  "IDPCommunicationErrorException",
  "InternalServerError",
  "ServiceUnavailable"
]
const systemCodes = [
  ...codes.timeoutCodes,
  ...codes.neverSentCodes,
  ...codes.brokenCodes,
  "ERR_HTTP2_STREAM_ERROR",
  "ENOENT",
  "HPE_INVALID_CONSTANT"
]
const messages = [
  "Failed to fetch",
  "Failed to fetch (dynamodb.us-east-1.amazonaws.com)",
  "NetworkError when attempting to fetch resource",
  "NetworkError when attempting to fetch resource.",
  "The Internet connection appears to be offline",
  "Load failed",
  "Network request failed",
  "Network connection lost.",
  "Signature expired: 20260101T000000Z is now earlier than 20260101T001500Z",
  "Stream closed with error code NGHTTP2_REFUSED_STREAM",
  "timeout of 1000ms exceeded",
  "Rate exceeded"
]
const statuses = [200, 400, 401, 403, 404, 408, 409, 413, 425, 429, 500, 501, 502, 503, 504, 505, 509, 529]

/** Errors as middleware of the SDK may see them, and stranger ones. */
const errorOf = (next: () => number, depth: number): Error => {
  const one = <A>(list: ReadonlyArray<A>): A => list[Math.floor(next() * list.length)]!
  const maybe = (share: number, key: string, value: () => unknown) => next() < share ? { [key]: value() } : {}
  const message = next() < 0.4 ? one(messages) : "what happened"
  const error = next() < 0.2 ? new TypeError(message) : new Error(message)
  const { name = error.name, ...more }: Record<string, unknown> = {
    ...maybe(0.4, "name", () => one(names)),
    ...maybe(0.3, "code", () => one(next() < 0.8 ? systemCodes : names)),
    ...maybe(0.1, "Code", () => one(names)),
    ...maybe(0.1, "__type", () => `com.amazonaws#${one(names)}${next() < 0.5 ? ":http://internal.amazon.com/" : ""}`),
    ...maybe(
      0.2,
      "$retryable",
      () => one([{}, { throttling: true }, { throttling: false }, undefined, null, false, true])
    ),
    ...maybe(0.6, "$metadata", () => ({
      ...maybe(0.8, "httpStatusCode", () => one(statuses)),
      ...maybe(0.1, "clockSkewCorrected", () => true)
    })),
    ...maybe(0.05, "status", () => one(statuses)),
    ...(depth > 0 ? maybe(0.3, "cause", () => errorOf(next, depth - 1)) : {})
  }
  Object.defineProperty(error, "name", { value: name, configurable: true })
  return Object.assign(error, more)
}

/** The error and what caused it, one after the other. */
const chainOf = (error: unknown): ReadonlyArray<any> =>
  error === undefined ? [] : [error, ...chainOf(get(error, "cause"))]

const isAnswer = (error: any): boolean => (error.$metadata?.httpStatusCode ?? error.status) >= 400

/** The part of the chain that counts: it ends at the first response. */
const askedOf = (error: unknown): ReadonlyArray<any> => {
  const chain = chainOf(error)
  const answer = chain.findIndex(isAnswer)
  return answer === -1 ? chain : chain.slice(0, answer + 1)
}

const wireCodes = (error: any): ReadonlyArray<unknown> => [error.Code, error.code, codes.shapeOf(error.__type)]
const isThrottle = (error: any): boolean =>
  isThrottlingError(error) || wireCodes(error).some((code) => codes.awsThrottlingCodes.has(code as string))

const isOddTrait = ({ $retryable }: any): boolean =>
  $retryable !== undefined && (typeof $retryable !== "object" || $retryable === null)

/** Why the two differ: a row of the table "Where the two differ" in docs/aws-sdk.md. */
const reasons: ReadonlyArray<readonly [row: string, holds: (error: any, sdk: Class, ours: Class) => boolean]> = [
  [
    "`AbortError`, whatever its status, code or trait",
    (error, _, ours) => ours === "no" && askedOf(error).some(({ name }) => name === "AbortError")
  ],
  [
    "a throttling code as `Code`, `code` or `__type`",
    (error, sdk, ours) => ours === "throttling" && sdk !== "throttling" && isThrottle(error)
  ],
  [
    "a throttle as the cause",
    (error, sdk, ours) => ours === "throttling" && sdk !== "throttling" && askedOf(error).slice(1).some(isThrottle)
  ],
  [
    "`RequestTimeout` and the like as `Code`, `code` or `__type`",
    (error, sdk, ours) =>
      ours === "transient" && sdk === "no" &&
      askedOf(error).some((each) =>
        wireCodes(each).some((code) => code === "TimeoutError" || codes.awsTransientCodes.has(code as string))
      )
  ],
  [
    "network failures that the SDK does not list",
    (error, sdk, ours) =>
      ours === "transient" && sdk === "no" &&
      askedOf(error).some((each) => Option.isSome(RetryClassifier.network(each)))
  ],
  [
    "`IDPCommunicationError` of STS without `$retryable`",
    (error, sdk, ours) =>
      ours === "transient" && sdk === "no" &&
      askedOf(error).some((each) =>
        [each.name, each.Code].some((name) => `${name}`.startsWith("IDPCommunicationError"))
      )
  ],
  [
    "the cause of an answer with a status from 400 to 599",
    (error, sdk, ours) => ours === "no" && sdk === "transient" && chainOf(error).length > askedOf(error).length
  ],
  [
    "`$retryable` that is not an object, such as `null` or `false`",
    (error, sdk, ours) => sdk === "transient" && ours === "no" && askedOf(error).some(isOddTrait)
  ],
  [
    "a status outside `$metadata`: `status`, `statusCode` or that of `response`",
    (error, sdk, ours) =>
      ours !== "no" && sdk !== ours && askedOf(error).some((each) => Option.isSome(RetryClassifier.httpStatus(each)))
  ]
]

const reasonOf = (error: unknown, sdk: Class, ours: Class): string | undefined =>
  reasons.find(([, holds]) => holds(error, sdk, ours))?.[0]

const page = fs.readFileSync(new URL("../../docs/aws-sdk.md", import.meta.url), "utf8")

describe("classification, against the real @smithy/core", () => {
  it("is tested with the version that docs/aws-sdk.md names", () => {
    const { version } = JSON.parse(
      fs.readFileSync(new URL("../../node_modules/@smithy/core/package.json", import.meta.url), "utf8")
    )
    assert.include(page, `is tested with \`@smithy/core\` ${version.split(".").slice(0, 2).join(".")}.`)
  })

  it("60,000 errors: docs/aws-sdk.md lists every difference seen, and every difference listed is seen", () => {
    const next = seeded(12)
    const seen = new Map<string, number>()
    const unlisted: Array<unknown> = []
    for (let i = 0; i < 60_000; i++) {
      const error = errorOf(next, 3)
      const sdk = sdkClass(error)
      const ours = classOf(classifier, error)
      if (sdk === ours) continue
      const reason = reasonOf(error, sdk, ours)
      if (reason === undefined) {
        unlisted.push({
          sdk,
          ours,
          chain: chainOf(error).map((each) => ({ ...each, name: each.name, message: each.message, cause: undefined }))
        })
      } else seen.set(reason, (seen.get(reason) ?? 0) + 1)
    }
    assert.deepStrictEqual(unlisted.slice(0, 3), [], `${unlisted.length} unlisted`)
    assert.deepStrictEqual([...seen.keys()].sort(), reasons.map(([row]) => row).sort())
    for (const [row] of reasons) assert.include(page, `| ${row} |`)
  })
})

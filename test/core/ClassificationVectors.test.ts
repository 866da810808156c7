import { assert, describe, it } from "@effect/vitest"
import { isClockSkewError } from "@smithy/core/retry"
import { RetryClassifier } from "effect-retry"
import * as Option from "effect/Option"
import * as vectors from "../vectors/classification.ts"

const classes = {
  THROTTLING: "throttled",
  TRANSIENT: "transient",
  SERVER_ERROR: "no",
  CLIENT_ERROR: "no"
} as const

/** Asserts what the default classifier makes of the error. */
const isClassified = (error: unknown, expected: vectors.BotocoreVector["is"], timeout: boolean): void => {
  const info = RetryClassifier.defaultClassifier(error)
  if (expected === "no") return assert.isTrue(Option.isNone(info))
  assert.isTrue(Option.isSome(info))
  const facts = Option.getOrThrow(info)
  assert.deepStrictEqual(
    { safety: facts.safety, throttling: facts.throttling, timeout: facts.timeout, retryAfter: facts.retryAfter },
    { safety: "Yes", throttling: expected === "throttled", timeout, retryAfter: undefined }
  )
}

/** Where the AWS protocols put an error code. */
const carriers: Record<string, (code: string | undefined) => object> = {
  name: (code) => ({ name: code ?? "UnknownError" }),
  Code: (code) => ({ name: "Error", Code: code }),
  __type: (code) => ({ name: "Error", __type: code === undefined ? code : `com.amazonaws.example#${code}` }),
  "__type, with a URL": (code) => ({
    name: "Error",
    __type: `${code ?? ""}:http://internal.amazon.com/coral/com.amazon.coral.service/#${code ?? ""}`
  })
}

const title = ({ code, status }: vectors.BotocoreVector) => `${status} ${code ?? "without a code"}`

describe("RetryClassifier.defaultClassifier", () => {
  describe("errors of smithy-typescript", () => {
    it.each(vectors.js)(
      "vector: $name is $errorType",
      ({ error, errorType, timeout }) => isClassified(error, classes[errorType], timeout === true)
    )
  })

  for (const [carrier, carry] of Object.entries(carriers)) {
    describe(`responses of botocore, code in ${carrier}`, () => {
      for (const vector of vectors.botocore) {
        it(`vector: ${title(vector)} is ${vector.is}`, () =>
          isClassified({ ...carry(vector.code), $metadata: { httpStatusCode: vector.status } }, vector.is, false))
      }
    })
  }

  it.each(vectors.botocoreExceptions)(
    "vector: botocore $name is transient",
    ({ error }) => isClassified(error, "transient", false)
  )

  for (const vector of vectors.botocoreModeled) {
    it(`vector: modeled ${title(vector)} is ${vector.is}`, () =>
      isClassified(
        { name: vector.code, $retryable: vector.trait, $metadata: { httpStatusCode: vector.status } },
        vector.is,
        false
      ))
  }

  it.each(vectors.clockSkewCodes)("vector: clock skew %s is one of those of @smithy/core", (name) => {
    assert.isTrue(isClockSkewError({ name, message: "" }))
  })

  it.each(vectors.clockSkewCodes)("vector: clock skew %s is transient once corrected", (name) => {
    isClassified({ name, $metadata: { httpStatusCode: 403 } }, "no", false)
    isClassified({ name, $metadata: { httpStatusCode: 403, clockSkewCorrected: true } }, "transient", false)
  })
})

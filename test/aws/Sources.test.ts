/** What five sources say and the library does otherwise: docs/evidence/conformance.md, "Where ours differs from its sources". */
import { assert, describe, it } from "@effect/vitest"
import { AwsModes, awsStandard, RetryClassifier, RetryPolicy, RetryQuota } from "effect-retry"
import * as AwsRetryConfig from "effect-retry/aws/AwsRetryConfig"
import * as JavaScriptV2 from "effect-retry/aws/legacy/JavaScriptV2"
import * as Kotlin from "effect-retry/aws/legacy/Kotlin"
import * as ReferenceClassifier from "effect-retry/aws/ReferenceClassifier"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as fs from "node:fs"
import { filesOf } from "../utils/files.ts"
import { publicModules } from "../utils/modules.ts"
import { type Policy, type SdkError, sdkError, steppedDelays, withRandom } from "../utils/vectors.ts"

const page = fs.readFileSync(new URL("../../docs/evidence/conformance.md", import.meta.url), "utf8")
const [, section = ""] = page.split("## Where ours differs from its sources")
const rows = section.split("\n## ")[0]!.split("\n").filter((line) => /^\| \d/.test(line))
  .map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim()))

const kindOf = (classifier: RetryClassifier.RetryClassifier, error: unknown) => {
  const info = Option.getOrUndefined(classifier(error))
  return info === undefined ? "no" : info.throttling ? "throttled" : info.timeout ? "timeout" : "transient"
}

const aws = (error: unknown) => kindOf(RetryClassifier.defaultClassifier, error)
const reference = (error: unknown) => kindOf(ReferenceClassifier.classifier, error)

/** What a retry takes of a full quota. */
const costOf = (error: SdkError, classifier: RetryClassifier.RetryClassifier) => {
  const { layer, policy } = Kotlin.standardRetryStrategy()
  return Effect.gen(function*() {
    yield* steppedDelays(policy, 1, error)
    return 500 - (yield* RetryQuota.balance)
  }).pipe(Effect.provide([RetryClassifier.layer(classifier), layer]), withRandom(0))
}

/** With a random number that leaves the ceiling as it is: Kotlin takes a share away. */
const ceilingsOf = (policy: Policy, count: number, error: SdkError, random = 1) =>
  steppedDelays(policy, count, error).pipe(withRandom(random), Effect.provide(RetryQuota.layerUnlimited))

describe("the table", () => {
  it("has each row once, with a module and a test that exist, or none where nothing is represented", () => {
    assert.deepStrictEqual(rows.map(([number]) => Number(number)), rows.map((_, index) => index + 1))
    const modules = publicModules.map(({ name }) => name.replace(/^effect-retry\//, ""))
    for (const [number, , , , module = "", test = ""] of rows) {
      for (const name of module.match(/`[\w/]+`/g) ?? []) {
        assert.isTrue(modules.some((known) => known.endsWith(name.slice(1, -1))), `${number}: ${name}`)
      }
      for (const file of test.match(/`[\w/.]+`/g) ?? []) {
        assert.isTrue(fs.existsSync(new URL(`../../test/${file.slice(1, -1)}`, import.meta.url)), `${number}: ${file}`)
      }
      assert.strictEqual(module === "-", test === "-", number)
    }
  })
})

describe("the SDK reference", () => {
  it.effect("the mode is standard, with three attempts, where the reference says legacy", () =>
    Effect.gen(function*() {
      const { maxAttempts, mode } = yield* AwsRetryConfig.make()
      assert.deepStrictEqual([mode.value, maxAttempts.value], ["standard", 3])
    }).pipe(Effect.provide([
      filesOf({}).layer,
      ConfigProvider.layer(ConfigProvider.fromUnknown({}))
    ])))

  it.effect("the first delay is at most 1 s, not 2", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* ceilingsOf(awsStandard, 2, sdkError({ status: 500 })), [1000, 2000])
    }))

  it("400 and 403 alone are neither transient nor throttling", () => {
    assert.deepStrictEqual([400, 403].map((status) => reference(sdkError({ status }))), ["no", "no"])
  })

  it("502 and 503 are transient, unless the code says throttling", () => {
    assert.deepStrictEqual([502, 503].map((status) => reference(sdkError({ status }))), ["transient", "transient"])
    assert.strictEqual(reference(sdkError({ status: 503, code: "SlowDown" })), "throttled")
  })

  it("408 and 509 of an AWS error are retried by the reference's classifier alone", () => {
    assert.deepStrictEqual([408, 509].map((status) => aws(sdkError({ status }))), ["no", "no"])
    assert.deepStrictEqual([408, 509].map((status) => reference(sdkError({ status }))), ["transient", "throttled"])
  })

  it("a 504 is transient and no timeout: it costs 5", () => {
    assert.deepStrictEqual([aws(sdkError({ status: 504 })), reference(sdkError({ status: 504 }))], [
      "transient",
      "transient"
    ])
    assert.strictEqual(RetryPolicy.limits(AwsModes.standard()).quota?.cost, 5)
  })
})

describe("Kotlin's guide", () => {
  it.effect("a transient failure costs 10 with Kotlin's own classifier, and 5 with the default one", () =>
    Effect.gen(function*() {
      const unavailable = sdkError({ status: 503 })
      assert.strictEqual(yield* costOf(unavailable, Kotlin.awsRetryPolicy), 10)
      assert.strictEqual(yield* costOf(unavailable, RetryClassifier.defaultClassifier), 5)
    }))

  it.effect("the first delay after a throttle has a ceiling of 1 s, after any other failure of 10 ms", () =>
    Effect.gen(function*() {
      const { policy } = Kotlin.standardRetryStrategy()
      assert.deepStrictEqual(yield* ceilingsOf(policy, 1, sdkError({ status: 500 }), 0), [10])
      assert.deepStrictEqual(yield* ceilingsOf(policy, 1, sdkError({ status: 400, code: "Throttling" }), 0), [1000])
    }))

  it.effect("a bucket that is not refilled stops, whatever useCircuitBreakerMode says", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* RetryQuota.RetryQuota).onExceeded, "stop")
    }).pipe(Effect.provide(
      Kotlin.standardRetryStrategy({ tokenBucket: { refillUnitsPerSecond: 0, useCircuitBreakerMode: false } }).layer
    )))

  it("of conflicts only those that the SDKs list are retried", () => {
    const kinds = [
      "TransactionInProgressException",
      "PriorRequestNotComplete",
      "TransactionConflictException",
      "OptimisticLockException",
      "ConflictException"
    ].map((code) => aws(sdkError({ status: 400, code })))
    assert.deepStrictEqual(kinds, ["throttled", "throttled", "no", "no", "no"])
  })
})

describe("the article on botocore, Java and JavaScript", () => {
  it("the helper of JavaScript without retries is an option, no preset", () => {
    assert.strictEqual(RetryPolicy.limits(JavaScriptV2.policy({ maxRetries: 0 })).maxAttempts, 1)
    assert.strictEqual(Duration.toSeconds(RetryPolicy.limits(JavaScriptV2.defaultPolicy).deadline), Infinity)
  })
})

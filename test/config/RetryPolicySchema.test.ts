import { assert, describe, it } from "@effect/vitest"
import { awsAdaptive, awsStandard, awsStandard2026, Backoff, RetryPolicy } from "effect-retry"
import * as JavaScriptV2 from "effect-retry/aws/legacy/JavaScriptV2"
import * as RetryPolicySchema from "effect-retry/RetryPolicySchema"
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { combinators, policyOf, sources } from "./policies.ts"

const Seed = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 ** 32 - 1 }))

const strictly = { onExcessProperty: "error" } as const
const decode = Schema.decodeUnknownEffect(RetryPolicySchema.RetryPolicyFromJson, strictly)
const encode = Schema.encodeUnknownEffect(RetryPolicySchema.RetryPolicyFromJson, strictly)
const decodeForm = Schema.decodeUnknownEffect(RetryPolicySchema.Json, strictly)

describe("RetryPolicySchema", () => {
  for (const [name, policy] of Object.entries({ awsStandard, awsStandard2026, awsAdaptive })) {
    it.effect(`encodes ${name}, and decodes it again`, () =>
      Effect.gen(function*() {
        const json = yield* encode(policy)
        assert.deepStrictEqual(json as unknown, policy.toJSON())
        assert.isTrue(Equal.equals(yield* decode(json), policy))
      }))
  }

  it.effect.prop(
    "law: any policy of our combinators matches the schema, and survives a round trip",
    [Seed],
    ([seed]) =>
      Effect.gen(function*() {
        const policy = policyOf(seed)
        const json: unknown = JSON.parse(JSON.stringify(yield* encode(policy)))
        assert.deepStrictEqual((yield* decodeForm(json)) as unknown, json)
        assert.isTrue(Equal.equals(yield* decode(json), policy), String(policy))
      }),
    { arbitrary: { runs: 300 } }
  )

  it.effect("is the JSON codec of a policy inside of other schemas", () =>
    Effect.gen(function*() {
      const Settings = Schema.Struct({ url: Schema.String, retry: RetryPolicySchema.RetryPolicy })
      const codec = Schema.toCodecJson(Settings)
      const json = yield* Schema.encodeEffect(codec)({ url: "a", retry: awsStandard2026 })
      const text = JSON.stringify(json)
      const { retry } = yield* Schema.decodeUnknownEffect(codec)(JSON.parse(text))
      assert.isTrue(Equal.equals(retry, awsStandard2026))
      const same = Schema.toEquivalence(Settings)
      assert.isTrue(same({ url: "a", retry }, { url: "a", retry: awsStandard2026 }))
      assert.isFalse(same({ url: "a", retry }, { url: "a", retry: awsStandard }))
    }))

  it.effect("reads a policy of the configuration", () =>
    Effect.gen(function*() {
      const json = JSON.stringify({ steps: [{ fixed: { delay: "1 second" } }, { maxAttempts: 4 }, "whileRetryable"] })
      const policy = yield* Config.schema(
        Schema.fromJsonString(RetryPolicySchema.RetryPolicyFromJson),
        "RETRY"
      ).pipe(Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown({ RETRY: json })))
      assert.strictEqual(
        String(policy),
        `Backoff.fixed("1 second").pipe(RetryPolicy.maxAttempts(4), RetryPolicy.whileRetryable)`
      )
    }))

  const steps = (...others: ReadonlyArray<unknown>) => ({ steps: [{ fixed: { delay: 1 } }, ...others] })
  const refused: ReadonlyArray<readonly [unknown, RegExp]> = [
    [steps({ capped: "soon" }), /\["steps"\]\[1\]\["capped"\]/],
    [steps({ cappd: 1 }), /\["steps"\]\[1\]\["cappd"\]/],
    [steps({ capped: 0 }), /a finite duration above 0[^]*\["steps"\]\[1\]\["capped"\]/],
    [{ steps: [{ exponential: { base: 2, cap: 1 } }] }, /not below base[^]*\["steps"\]\[0\]\["exponential"\]\["cap"\]/],
    [{ steps: [] }, /\["steps"\]/],
    [
      steps({ whenThrottled: steps({ maxAttempts: 0 }) }),
      /\["steps"\]\[1\]\["whenThrottled"\]\["steps"\]\[1\]\["maxAttempts"\]/
    ]
  ]
  for (const [json, message] of refused) {
    it.effect(`refuses ${JSON.stringify(json)} with its path`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(decode(json))
        assert.match(error.message, message)
      }))
  }

  it.effect("does not encode a policy with a function or a schedule: it could not be decoded", () =>
    Effect.gen(function*() {
      const custom = () => 1
      for (
        const policy of [
          RetryPolicy.fromDelay(custom),
          Backoff.fixed(1).pipe(RetryPolicy.mapDelay(custom)),
          RetryPolicy.fromSchedule(Schedule.recurs(1)),
          JavaScriptV2.policy({ customBackoff: custom }),
          Backoff.fixed(1).pipe(RetryPolicy.whenThrottled(RetryPolicy.fromDelay(custom)))
        ]
      ) {
        yield* Effect.flip(encode(policy))
      }
    }))

  it.effect("takes durations in the units that people write, as the reader does", () =>
    Effect.gen(function*() {
      const found = yield* decode({ steps: [{ fixed: { delay: "100ms" } }, { deadline: "1m" }] })
      assert.isTrue(Equal.equals(found, Backoff.fixed(100).pipe(RetryPolicy.deadline("1 minute"))))
      yield* Effect.flip(decodeForm({ steps: [{ fixed: { delay: "100msec" } }] }))
    }))

  it("describes every source and every combinator to editors", () => {
    const { definitions } = Schema.toJsonSchemaDocument(RetryPolicySchema.Json, { onExcessProperty: "error" })
    const text = JSON.stringify(definitions)
    for (const name of [...Object.keys(sources), ...Object.keys(combinators)]) assert.include(text, `"${name}"`)
  })
})

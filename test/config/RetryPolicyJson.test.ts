import { assert, describe, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  awsAdaptive,
  awsDynamoDB2026,
  awsStandard,
  awsStandard2026,
  Backoff,
  InvalidOption,
  RetryPolicy,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as BotocoreLegacy from "effect-retry/aws/legacy/BotocoreLegacy"
import * as GeneralReference from "effect-retry/aws/legacy/GeneralReference"
import * as JavaScriptV2 from "effect-retry/aws/legacy/JavaScriptV2"
import * as JavaV1 from "effect-retry/aws/legacy/JavaV1"
import * as Kotlin from "effect-retry/aws/legacy/Kotlin"
import * as RetryPolicyJson from "effect-retry/RetryPolicyJson"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Fiber from "effect/Fiber"
import * as Hash from "effect/Hash"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { expectTypeOf } from "vitest"
import { Transient } from "../utils/call.ts"
import { type AnyPolicy, combinators, evaluated, policyOf, sources } from "./policies.ts"

const named: Readonly<Record<string, AnyPolicy>> = {
  awsStandard,
  awsStandard2026,
  awsDynamoDB2026,
  awsAdaptive,
  "JavaV1.defaultPolicy": JavaV1.defaultPolicy,
  "JavaV1.dynamoDBPolicy": JavaV1.dynamoDBPolicy,
  "JavaScriptV2.defaultPolicy": JavaScriptV2.defaultPolicy,
  "GeneralReference.policy": GeneralReference.policy(),
  "Kotlin.standardRetryStrategy": Kotlin.standardRetryStrategy().policy,
  "Kotlin.adaptiveRetryStrategy": Kotlin.adaptiveRetryStrategy({ useNewRetries: true }).policy,
  "BotocoreLegacy dynamodb": BotocoreLegacy.forService(BotocoreLegacy.document, "dynamodb").policy
}

const Seed = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 ** 32 - 1 }))

const read = (policy: AnyPolicy) => RetryPolicyJson.fromJson(JSON.parse(JSON.stringify(policy)))

describe("fromJson", () => {
  it("knows every source and every combinator", () => {
    const tag = (policy: AnyPolicy) => JSON.parse(JSON.stringify(policy)).steps.at(-1)
    const nameOf = (step: unknown) => typeof step === "string" ? step : Object.keys(step as object)[0]
    for (const [name, make] of Object.entries(sources)) assert.strictEqual(nameOf(tag(make(() => 0))), name)
    for (const [name, make] of Object.entries(combinators)) {
      assert.strictEqual(nameOf(tag(make(() => 0, awsStandard))), name)
    }
  })

  for (const [name, policy] of Object.entries(named)) {
    it.effect(`makes ${name} again from its JSON`, () =>
      Effect.gen(function*() {
        const again = yield* read(policy)
        assert.strictEqual(String(again), String(policy))
        assert.isTrue(Equal.equals(again, policy))
        assert.strictEqual(Hash.hash(again), Hash.hash(policy))
        assert.isTrue(Equal.equals(evaluated(String(policy)), policy))
      }))
  }

  it.effect.prop("law: any policy of our combinators is the same after JSON, and after what it prints is evaluated", [
    Seed
  ], ([seed]) =>
    Effect.gen(function*() {
      const policy = policyOf(seed)
      const again = yield* read(policy)
      assert.strictEqual(JSON.stringify(again), JSON.stringify(policy))
      assert.isTrue(Equal.equals(again, policy), String(policy))
      assert.isTrue(Equal.equals(evaluated(String(policy)), policy), String(policy))
    }), { arbitrary: { runs: 500 } })

  it.effect("reads what people write: durations in any form, names alone where nothing is given", () =>
    Effect.gen(function*() {
      const policy = yield* RetryPolicyJson.fromJson({
        steps: [
          { exponential: { base: 100, cap: "1 minute" } },
          "honorRetryAfter",
          { maxAttempts: "Infinity" },
          { deadline: { seconds: 90 } },
          { whenThrottled: { steps: [{ fixed: { delay: "1 second" } }] } }
        ]
      })
      assert.isTrue(Equal.equals(
        policy,
        Backoff.exponential("100 millis", 2, { cap: "60 seconds" }).pipe(
          RetryPolicy.honorRetryAfter(),
          RetryPolicy.maxAttempts(Infinity),
          RetryPolicy.deadline("90 seconds"),
          RetryPolicy.whenThrottled(Backoff.fixed(1000))
        )
      ))
    }))

  it.effect("reads durations in the units that people write", () =>
    Effect.gen(function*() {
      const policy = yield* RetryPolicyJson.fromJson({
        steps: [{ exponential: { base: "100ms", cap: "1.5 s", jitter: "full" } }, { deadline: "1m" }, { capped: "1h" }]
      })
      assert.isTrue(Equal.equals(
        policy,
        Backoff.exponential(100, 2, { cap: 1500, jitter: "full" }).pipe(
          RetryPolicy.deadline("1 minute"),
          RetryPolicy.capped("1 hour")
        )
      ))
    }))

  const written: ReadonlyArray<readonly [text: unknown, millis: number | undefined]> = [
    ["1500ns", 0.0015],
    ["250us", 0.25],
    ["250µs", 0.25],
    ["500ms", 500],
    ["500 ms", 500],
    ["2s", 2000],
    ["1.5s", 1500],
    ["1m", 60_000],
    ["1min", 60_000],
    ["2h", 7_200_000],
    ["1d", 86_400_000],
    ["1w", 604_800_000],
    ["2 seconds", 2000],
    [300, 300],
    ["300", undefined],
    ["soon", undefined],
    ["-1s", undefined],
    ["-1 seconds", undefined],
    [-1, undefined],
    [NaN, undefined],
    ["1 constructor", undefined],
    ["1m30s", undefined],
    [null, undefined]
  ]
  for (const [text, millis] of written) {
    it(`reads ${JSON.stringify(text)} as ${millis === undefined ? "no duration" : `${millis} ms`}`, () => {
      assert.strictEqual(
        Option.getOrUndefined(Option.map(RetryPolicyJson.duration(text), Duration.toMillis)),
        millis
      )
    })
  }

  it.effect("makes a policy that runs", () =>
    Effect.gen(function*() {
      const policy = yield* RetryPolicyJson.fromJson({
        steps: [{ fixed: { delay: "1 second" } }, { maxAttempts: 3 }, "whileRetryable", { quotaGated: { cost: 5 } }]
      })
      let sends = 0
      const call = Effect.suspend(() => (sends++, Effect.fail(new Transient())))
      const fiber = yield* Effect.forkChild(Effect.exit(withRetry(call, policy)))
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(fiber)
      assert.strictEqual(sends, 3)
      assert.strictEqual(yield* RetryQuota.balance, 490)
      assert.strictEqual(yield* Clock.currentTimeMillis, 10_000)
    }).pipe(Effect.provide(Layer.merge(RetryQuota.layer(), AdaptiveRateLimiter.layerUnlimited))))

  it("gives a policy that may need what any of ours may", () => {
    expectTypeOf(RetryPolicyJson.fromJson).returns.toEqualTypeOf<
      Effect.Effect<
        RetryPolicy.RetryPolicy<
          unknown,
          AdaptiveRateLimiter.RateLimitExceeded,
          RetryQuota.RetryQuota | AdaptiveRateLimiter.AdaptiveRateLimiter
        >,
        InvalidOption
      >
    >()
  })

  const fixed = { fixed: { delay: 1 } }
  const steps = (...others: ReadonlyArray<unknown>) => ({ steps: [fixed, ...others] })
  const nested = (depth: number): unknown => depth === 0 ? steps() : steps({ whenThrottled: nested(depth - 1) })
  const refused: ReadonlyArray<readonly [json: unknown, path: string, expected: RegExp]> = [
    [null, "", /an object with steps/],
    ["awsStandard", "", /an object with steps/],
    [[fixed], "", /an object with steps/],
    [{}, "steps", /an array that begins with a source/],
    [{ steps: {} }, "steps", /an array that begins with a source/],
    [{ steps: [] }, "steps", /an array that begins with a source/],
    [{ steps: [fixed], step: 1 }, "step", /no such key/],
    [{ steps: ["whileRetryable"] }, "steps[0]", /a source: exponential, linear/],
    [{ steps: [{ exponentail: {} }] }, "steps[0]", /a source: exponential, linear/],
    [{ steps: [{ constructor: {} }] }, "steps[0]", /a source/],
    [steps(fixed), "steps[1]", /a combinator: capped, /],
    [steps("cappd"), "steps[1]", /a combinator: capped, /],
    [steps(JSON.parse(`{"__proto__":1}`)), "steps[1]", /a combinator/],
    [steps(7), "steps[1]", /a combinator/],
    [steps(null), "steps[1]", /a combinator/],
    [steps({}), "steps[1]", /a combinator/],
    [steps({ capped: 1, maxAttempts: 2 }), "steps[1]", /one combinator/],
    [steps("whileRetryable", { capped: "soon" }), "steps[2].capped", /a finite duration above 0/],
    [steps({ capped: null }), "steps[1].capped", /a finite duration above 0/],
    [steps("capped"), "steps[1].capped", /a finite duration above 0/],
    [steps({ maxAttempts: 0 }), "steps[1].maxAttempts", /a whole number of at least 1/],
    [steps({ maxAttempts: "3" }), "steps[1].maxAttempts", /a whole number of at least 1/],
    [steps({ deadline: -1 }), "steps[1].deadline", /a finite duration above 0/],
    [steps({ jittered: "half" }), "steps[1].jittered", /"none" or "full" or "equal"/],
    [steps({ jittered: { proportional: 2 } }), "steps[1].jittered.proportional", /from 0 to 1/],
    [steps({ jittered: { proportional: 1, of: 2 } }), "steps[1].jittered.of", /no such key/],
    [steps({ honorRetryAfter: { atMost: "x" } }), "steps[1].honorRetryAfter.atMost", /a finite duration/],
    [steps({ honorRetryAfter: { atLeast: 1 } }), "steps[1].honorRetryAfter.atLeast", /no such key/],
    [steps({ honorRetryAfter: 5 }), "steps[1].honorRetryAfter", /an object/],
    [steps({ quotaGated: { cost: -1 } }), "steps[1].quotaGated.cost", /a finite number of at least 0/],
    [
      steps({ requires: "ConcurrencyLimiter" }),
      "steps[1].requires",
      /"AdaptiveRateLimiter": other gates are left to code/
    ],
    [{ steps: [{ max: [] }] }, "steps[0].max", /an array of at least one policy/],
    [{ steps: [{ min: [{ steps: ["never"] }, { steps: ["none"] }] }] }, "steps[0].min[1].steps[0]", /a source/],
    [steps({ concat: { steps: ["capped"] } }), "steps[1].concat.steps[0]", /a source/],
    [steps({ while: "patience" }), "steps[1].while", /the name of one of the functions/],
    [steps({ quotaGated: { cost: 1, longPolling: "yes" } }), "steps[1].quotaGated.longPolling", /true or false/],
    [steps({ whileRetryable: true }), "steps[1].whileRetryable", /written alone/],
    [steps({ whenThrottled: steps({ capped: 0 }) }), "steps[1].whenThrottled.steps[1].capped", /above 0/],
    [steps({ whenThrottled: [] }), "steps[1].whenThrottled", /an object with steps/],
    [steps({ "RetryGrpc.honorPushback": { beyond: "cut" } }), `steps[1]["RetryGrpc.honorPushback"].beyond`, /"stop"/],
    [
      { steps: [{ exponential: { base: 10, factor: 0.5 } }] },
      "steps[0].exponential.factor",
      /a finite number of at least 1/
    ],
    [{ steps: [{ exponential: { base: 10, cap: 5 } }] }, "steps[0].exponential.cap", /not below base/],
    [{ steps: [{ exponential: { base: 10, jitter: "x" } }] }, "steps[0].exponential.jitter", /"none"/],
    [
      { steps: [{ exponential: { base: 10, jitter: { proportional: -1 } } }] },
      "steps[0].exponential.jitter.proportional",
      /from 0 to 1/
    ],
    [
      { steps: [{ exponential: { base: 10, jitter: { share: 1 } } }] },
      "steps[0].exponential.jitter.share",
      /no such key/
    ],
    [{ steps: [{ exponential: { factor: 2 } }] }, "steps[0].exponential.base", /a finite duration/],
    [{ steps: ["exponential"] }, "steps[0].exponential.base", /a finite duration/],
    [{ steps: [{ fixed: { delay: 1, cap: 2 } }] }, "steps[0].fixed.cap", /no such key/],
    [
      { steps: [{ "JavaV1.fullJitterBackoff": { baseDelay: 0 } }] },
      `steps[0]["JavaV1.fullJitterBackoff"].baseDelay`,
      /above 0/
    ],
    [{ steps: [{ fromDelay: "myDelay" }] }, "steps[0].fromDelay", /the name of one of the functions/],
    [{ steps: [{ fromDelay: "toString" }] }, "steps[0].fromDelay", /the name of one of the functions/],
    [{ steps: [{ fromSchedule: "<schedule>" }] }, "steps[0].fromSchedule", /a schedule has no JSON/],
    [
      { steps: [{ "JavaScriptV2.backoff": { customBackoff: "mine" } }] },
      `steps[0]["JavaScriptV2.backoff"].customBackoff`,
      /the name of one of the functions/
    ],
    [steps(...Array.from({ length: 1000 }, () => "whileRetryable")), "steps", /at most 1000/],
    [nested(17), `${"steps[1].whenThrottled.".repeat(17).slice(0, -1)}`, /at most 16 levels/]
  ]
  for (const [json, path, expected] of refused) {
    const shown = JSON.stringify(json)!.slice(0, 80)
    it.effect(`refuses ${shown} at ${path === "" ? "its root" : path.slice(0, 60)}`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(RetryPolicyJson.fromJson(json))
        assert.instanceOf(error, InvalidOption)
        assert.strictEqual(error.constructorName, "RetryPolicyJson.fromJson")
        assert.strictEqual(error.field, path)
        assert.match(error.expected, expected)
        const value = path.split(/[.[\]]+/).filter((key) => key !== "").reduce<any>(
          (value, key) => typeof value === "object" && value !== null ? value[key] : undefined,
          json
        )
        if (error.expected.endsWith("there is no such key")) {
          // It may be a secret at the wrong place.
          assert.include(error.message, `${path} must be left out: there is no such key, got a value`)
        } else if (value !== undefined && !path.includes(`"`)) {
          assert.deepStrictEqual(error.value, value)
        }
      }))
  }

  it.effect("reads a policy that is nested as deep as it may be", () =>
    Effect.asVoid(RetryPolicyJson.fromJson(nested(16))))

  it.effect("names the place in its message", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(RetryPolicyJson.fromJson(steps({ capped: "soon" })))
      assert.strictEqual(
        error.message,
        `RetryPolicyJson.fromJson: steps[1].capped must be a finite duration above 0, such as "100 millis" or "2 seconds", got "soon"`
      )
    }))

  it.effect("never throws, whatever it gets", () =>
    Effect.gen(function*() {
      const hostile = new Proxy({}, {
        get: () => {
          throw new Error("get")
        },
        ownKeys: () => {
          throw new Error("keys")
        }
      })
      const circle: { steps: Array<unknown> } = { steps: [fixed] }
      circle.steps.push({ whenThrottled: circle })
      for (const json of [undefined, Symbol("x"), () => 1, hostile, { steps: hostile }, steps(hostile), circle, 1n]) {
        assert.instanceOf(yield* Effect.flip(RetryPolicyJson.fromJson(json)), InvalidOption)
      }
    }))

  it.effect("restores functions by their names", () =>
    Effect.gen(function*() {
      const patience = ({ attempt }: RetryPolicy.Failure) => attempt * 100
      const custom = () => 5
      const functions = { patience, custom }
      for (
        const policy of [
          RetryPolicy.fromDelay(patience).pipe(RetryPolicy.maxAttempts(2)),
          Backoff.fixed(1).pipe(RetryPolicy.mapDelay(custom)),
          JavaScriptV2.policy({ customBackoff: custom }),
          Backoff.fixed(1).pipe(RetryPolicy.whenThrottled(RetryPolicy.fromDelay(patience)))
        ]
      ) {
        const json: unknown = JSON.parse(JSON.stringify(policy))
        assert.isTrue(Equal.equals(yield* RetryPolicyJson.fromJson(json, { functions }), policy))
        assert.instanceOf(yield* Effect.flip(RetryPolicyJson.fromJson(json)), InvalidOption)
      }
      const lifted = RetryPolicy.fromSchedule(Schedule.recurs(1))
      assert.instanceOf(yield* Effect.flip(RetryPolicyJson.fromJson(lifted.toJSON(), { functions })), InvalidOption)
    }))
})

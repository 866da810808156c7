import { assert, describe, it } from "@effect/vitest"
import {
  awsAdaptive,
  awsDynamoDB2026,
  AwsModes,
  awsStandard,
  awsStandard2026,
  Backoff,
  InvalidOption,
  RetryPolicy
} from "effect-retry"
import * as GeneralReference from "effect-retry/aws/legacy/GeneralReference"
import * as JavaScriptV2 from "effect-retry/aws/legacy/JavaScriptV2"
import * as JavaV1 from "effect-retry/aws/legacy/JavaV1"
import * as Kotlin from "effect-retry/aws/legacy/Kotlin"
import * as RetryGrpc from "effect-retry/RetryGrpc"
import * as Duration from "effect/Duration"
import * as Equal from "effect/Equal"
import * as Hash from "effect/Hash"
import * as HashSet from "effect/HashSet"
import * as Schedule from "effect/Schedule"
import { inspect } from "node:util"

type AnyPolicy = RetryPolicy.RetryPolicy<never, unknown, unknown>

const myDelay = () => 100
const standard = `Backoff.exponential("1 second").pipe(RetryPolicy.jittered("full"), ` +
  `RetryPolicy.capped("20 seconds"), RetryPolicy.honorRetryAfter({ atMost: "20 seconds" }), ` +
  `RetryPolicy.maxAttempts(3), RetryPolicy.whileRetryable, RetryPolicy.quotaGated({ cost: 5, timeoutCost: 10 }))`

const texts: ReadonlyArray<readonly [AnyPolicy, string]> = [
  [awsStandard, standard],
  [AwsModes.standard({ maxAttempts: 5 }), standard.replace("maxAttempts(3)", "maxAttempts(5)")],
  [awsAdaptive, standard.slice(0, -1) + ", RetryPolicy.requires(AdaptiveRateLimiter.AdaptiveRateLimiter))"],
  [
    awsStandard2026,
    `Backoff.exponential("50 millis", 2, { cap: "20 seconds", jitter: "full" }).pipe(RetryPolicy.whenThrottled(` +
    `Backoff.exponential("1 second").pipe(RetryPolicy.capped("20 seconds"), RetryPolicy.jittered("full"))), ` +
    `RetryPolicy.honorRetryAfter({ overshoot: "5 seconds" }), RetryPolicy.maxAttempts(3), RetryPolicy.whileRetryable, ` +
    `RetryPolicy.quotaGated({ cost: 14, throttlingCost: 5 }))`
  ],
  [
    Backoff.linear(1500, { increment: "1 minute" }),
    `Backoff.linear("1500 millis", { increment: "60 seconds" })`
  ],
  [
    Backoff.fibonacci("2 days", { jitter: { proportional: 0.5 } }),
    `Backoff.fibonacci("172800 seconds", { jitter: { proportional: 0.5 } })`
  ],
  [Backoff.exponential("1 second", 1.5), `Backoff.exponential("1 second", 1.5)`],
  [
    Backoff.exponential("1 second", 3, { cap: "1 minute" }),
    `Backoff.exponential("1 second", 3, { cap: "60 seconds" })`
  ],
  [Backoff.fixed(0), `Backoff.fixed("0 seconds")`],
  [Backoff.fixed(Duration.hours(36)), `Backoff.fixed("129600 seconds")`],
  [Backoff.fixed(0.5), `Backoff.fixed(0.5)`],
  [
    Backoff.decorrelated(100, { cap: "10 seconds" }),
    `Backoff.decorrelated("100 millis", { cap: "10 seconds" })`
  ],
  [
    Backoff.decorrelated(100, { cap: "10 seconds", additive: true }),
    `Backoff.decorrelated("100 millis", { cap: "10 seconds", additive: true })`
  ],
  [
    Backoff.fixed(1).pipe(
      RetryPolicy.whileMaybeRetryable,
      RetryPolicy.deadline("1 minute"),
      RetryPolicy.outermostOnly,
      RetryPolicy.maxAttempts(Infinity),
      RetryPolicy.honorRetryAfter(),
      RetryPolicy.honorRetryAfter({ beyond: "stop" })
    ),
    `Backoff.fixed("1 millis").pipe(RetryPolicy.whileMaybeRetryable, RetryPolicy.deadline("60 seconds"), ` +
    `RetryPolicy.outermostOnly, RetryPolicy.maxAttempts(Infinity), RetryPolicy.honorRetryAfter(), ` +
    `RetryPolicy.honorRetryAfter({ beyond: "stop" }))`
  ],
  [RetryPolicy.fromDelay(myDelay), `RetryPolicy.fromDelay(myDelay)`],
  [RetryPolicy.fromDelay(() => 1), `RetryPolicy.fromDelay(<function>)`],
  [
    Backoff.fixed(1).pipe(RetryPolicy.withoutDeadline, RetryPolicy.mapDelay(() => 1)),
    `Backoff.fixed("1 millis").pipe(RetryPolicy.withoutDeadline, RetryPolicy.mapDelay(<function>))`
  ],
  [
    RetryPolicy.fromSchedule(Schedule.recurs(3)).pipe(RetryPolicy.maxAttempts(2)),
    `RetryPolicy.fromSchedule(<schedule>).pipe(RetryPolicy.maxAttempts(2))`
  ],
  [
    Backoff.fixed(1).pipe(
      RetryGrpc.honorPushback(),
      RetryGrpc.honorPushback({ atMost: "30 seconds", beyond: "clamp" })
    ),
    `Backoff.fixed("1 millis").pipe(RetryGrpc.honorPushback(), ` +
    `RetryGrpc.honorPushback({ atMost: "30 seconds", beyond: "clamp" }))`
  ],
  [
    JavaV1.defaultPolicy,
    `JavaV1.fullJitterBackoff({ baseDelay: "100 millis", maxBackoff: "20 seconds" }).pipe(RetryPolicy.whenThrottled(` +
    `JavaV1.equalJitterBackoff({ baseDelay: "500 millis", maxBackoff: "20 seconds" })), RetryPolicy.maxAttempts(4), ` +
    `RetryPolicy.whileRetryable)`
  ],
  [
    JavaV1.exponentialBackoff({ baseDelay: 1, maxBackoff: 2 }),
    `JavaV1.exponentialBackoff({ baseDelay: "1 millis", maxBackoff: "2 millis" })`
  ],
  [
    JavaScriptV2.dynamoDBPolicy,
    `JavaScriptV2.backoff({ base: "50 millis" }).pipe(RetryPolicy.maxAttempts(11), RetryPolicy.whileRetryable)`
  ],
  [
    JavaScriptV2.policy({ customBackoff: myDelay, addRetryAfter: true }),
    `JavaScriptV2.backoff({ customBackoff: myDelay, addRetryAfter: true }).pipe(RetryPolicy.maxAttempts(4), ` +
    `RetryPolicy.whileRetryable)`
  ],
  [
    GeneralReference.policy(),
    `Backoff.exponential("100 millis").pipe(RetryPolicy.capped("20 seconds"), RetryPolicy.maxAttempts(4), ` +
    `RetryPolicy.whileRetryable)`
  ],
  [
    Kotlin.exponentialBackoffWithJitter({ maxBackoff: Duration.infinity, useNewRetries: true }),
    `Kotlin.exponentialBackoffWithJitter({ maxBackoff: Infinity, useNewRetries: true })`
  ],
  [
    Kotlin.standardRetryStrategy({ delayProvider: { initialDelay: 20 } }).policy,
    `Kotlin.exponentialBackoffWithJitter({ initialDelay: "20 millis" }).pipe(RetryPolicy.maxAttempts(3), ` +
    `RetryPolicy.whileRetryable, RetryPolicy.quotaGated({ cost: 5, timeoutCost: 10, throttlingCost: 10 }))`
  ]
]

describe("a policy is data", () => {
  for (const [policy, text] of texts) {
    it(`prints ${text}`, () => {
      assert.strictEqual(String(policy), text)
      assert.strictEqual(inspect(policy), text)
    })
  }

  it("is the same however its options are spelled, and whether combinators come first or last", () => {
    const last = Backoff.exponential("50 millis", 2, { cap: 20_000 }).pipe(
      RetryPolicy.capped(Duration.seconds(10)),
      RetryPolicy.jittered("equal"),
      RetryPolicy.honorRetryAfter({ atMost: "1 minute", beyond: undefined }),
      RetryPolicy.maxAttempts(4),
      RetryPolicy.deadline("90 seconds"),
      RetryPolicy.quotaGated({ cost: 5, longPolling: false })
    )
    const capped = RetryPolicy.capped(Backoff.exponential(50, 2, { cap: "20 seconds" }), "10 seconds")
    const hinted = RetryPolicy.honorRetryAfter(RetryPolicy.jittered(capped, "equal"), { atMost: 60_000 })
    const limited = RetryPolicy.deadline(RetryPolicy.maxAttempts(hinted, 4), "90 seconds")
    const first = RetryPolicy.quotaGated(limited, { cost: 5 })
    assert.strictEqual(String(first), String(last))
    assert.isTrue(Equal.equals(first, last))
    assert.strictEqual(Hash.hash(first), Hash.hash(last))
    const plain = Backoff.fixed(1)
    assert.isTrue(Equal.equals(RetryPolicy.honorRetryAfter(plain), plain.pipe(RetryPolicy.honorRetryAfter())))
    assert.isTrue(Equal.equals(RetryPolicy.honorRetryAfter(plain), plain.pipe(RetryPolicy.honorRetryAfter)))
    assert.isTrue(Equal.equals(RetryGrpc.honorPushback(plain), plain.pipe(RetryGrpc.honorPushback())))
  })

  it("differs in every word, in its order, and in the functions it was given", () => {
    const policies = texts.map(([policy]) => policy)
    for (const [index, policy] of policies.entries()) {
      for (const [other, that] of policies.entries()) {
        assert.strictEqual(Equal.equals(policy, that), index === other)
      }
    }
    assert.strictEqual(HashSet.size(HashSet.fromIterable([...policies, ...policies])), policies.length)
    const plain = Backoff.fixed(100)
    const [capped, jittered] = [RetryPolicy.capped(50), RetryPolicy.jittered("full")]
    assert.isFalse(Equal.equals(plain.pipe(capped, jittered), plain.pipe(jittered, capped)))
    assert.isTrue(Equal.equals(RetryPolicy.fromDelay(myDelay), RetryPolicy.fromDelay(myDelay)))
    assert.strictEqual(Hash.hash(RetryPolicy.fromDelay(myDelay)), Hash.hash(RetryPolicy.fromDelay(myDelay)))
    assert.notStrictEqual(Hash.hash(Backoff.fixed(1)), Hash.hash(Backoff.fixed(2)))
    assert.isFalse(Equal.equals(RetryPolicy.fromDelay(() => 1), RetryPolicy.fromDelay(() => 1)))
    const schedule = Schedule.recurs(3)
    assert.isTrue(Equal.equals(RetryPolicy.fromSchedule(schedule), RetryPolicy.fromSchedule(schedule)))
    assert.isFalse(Equal.equals(plain, String(plain)))
    assert.isFalse(Equal.equals(plain, { ...plain }))
  })

  it("keeps what it was given, whatever becomes of the object it was given in", () => {
    const jitter = { proportional: 0.5 }
    const policies = [
      Backoff.fixed(1, { jitter }),
      Backoff.fixed(1).pipe(RetryPolicy.jittered(jitter))
    ]
    const before = policies.map(String)
    jitter.proportional = 1
    assert.deepStrictEqual(policies.map(String), before)
  })

  it("turns into JSON: its steps, in the words of the API", () => {
    assert.deepStrictEqual(JSON.parse(JSON.stringify(awsStandard)), {
      steps: [
        { exponential: { base: "1 second" } },
        { jittered: "full" },
        { capped: "20 seconds" },
        { honorRetryAfter: { atMost: "20 seconds" } },
        { maxAttempts: 3 },
        "whileRetryable",
        { quotaGated: { cost: 5, timeoutCost: 10 } }
      ]
    })
    assert.deepStrictEqual(JSON.parse(JSON.stringify(awsDynamoDB2026)).steps.slice(0, 2), [
      { exponential: { base: "25 millis", cap: "20 seconds", jitter: "full" } },
      {
        whenThrottled: {
          steps: [{ exponential: { base: "1 second" } }, { capped: "20 seconds" }, { jittered: "full" }]
        }
      }
    ])
    const rest = JavaScriptV2.policy({ customBackoff: myDelay, maxRetries: Infinity }).pipe(RetryGrpc.honorPushback())
    assert.deepStrictEqual(JSON.parse(JSON.stringify(rest)), {
      steps: [
        { "JavaScriptV2.backoff": { customBackoff: "myDelay" } },
        { maxAttempts: "Infinity" },
        "whileRetryable",
        { "RetryGrpc.honorPushback": {} }
      ]
    })
    assert.strictEqual(
      JSON.stringify([RetryPolicy.fromDelay(() => 1), RetryPolicy.fromSchedule(Schedule.recurs(1))]),
      `[{"steps":[{"fromDelay":"<function>"}]},{"steps":[{"fromSchedule":"<schedule>"}]}]`
    )
  })

  it("checks what a combinator is given before any policy comes", () => {
    assert.throws(() => RetryPolicy.capped(0), InvalidOption)
    assert.throws(() => RetryPolicy.capped(Backoff.fixed(1), 0), InvalidOption)
    assert.throws(() => RetryPolicy.honorRetryAfter({ atMost: -1 }), /RetryPolicy.honorRetryAfter: atMost/)
  })
})

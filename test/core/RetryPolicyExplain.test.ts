import { assert, describe, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  awsStandard,
  awsStandard2026,
  Backoff,
  InvalidOption,
  RetryClassifier,
  type RetryDecision,
  RetryInfo,
  RetryObserver,
  RetryPolicy,
  RetryQuota,
  SendGate,
  withRetry
} from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import { policyOf } from "../config/policies.ts"
import { budget } from "../utils/budget.ts"
import { constantRandom, scripted, Terminal, Throttled, TimedOut, Transient, Unsure } from "../utils/call.ts"

type AnyPolicy = RetryPolicy.RetryPolicy<
  unknown,
  unknown,
  RetryQuota.RetryQuota | AdaptiveRateLimiter.AdaptiveRateLimiter
>

class Refusal extends Data.TaggedError("Refusal")<{}> {
  readonly [SendGate.Refused] = true
}

class Wrapped extends Data.TaggedError("Wrapped")<{ readonly cause: unknown }> {}

const attempts = 5

/** What a run decides about each of five failures; the last decision stands for those that are not reached. */
const decisionsOf = (policy: AnyPolicy, error: unknown, draw: number) => {
  const decisions: Array<RetryDecision.RetryDecision> = []
  const record = (decision: RetryDecision.RetryDecision) => void decisions.push(decision)
  return withRetry(scripted(Array.from({ length: attempts }, () => error)).effect, policy).pipe(
    Effect.provideService(Random.Random, constantRandom(draw)),
    Effect.provide(Layer.mergeAll(
      RetryQuota.layer({ capacity: 1e9 }),
      AdaptiveRateLimiter.layerUnlimited,
      RetryObserver.layerOnly({ onRetry: record, onStop: record })
    )),
    (run) => Kit.runToEnd(Effect.exit(run)),
    Effect.map(() => decisions)
  )
}

const same = (
  explanation: RetryPolicy.Explanation,
  [low, high]: readonly [RetryDecision.RetryDecision, RetryDecision.RetryDecision]
) => {
  if (low._tag === "Stop" && high._tag === "Stop") {
    return assert.deepInclude(explanation, { _tag: "WouldStop", reason: low.reason })
  }
  const retries = [low, high].filter((decision) => decision._tag === "Retry")
  const stop = [low, high].find((decision) => decision._tag === "Stop")
  const tokens = Math.max(...retries.map(({ cost }) => cost))
  assert.deepInclude(explanation, { _tag: "WouldRetry", tokens, otherwise: stop?.reason })
  if (explanation._tag !== "WouldRetry") return
  const [least, most] = [explanation.least, explanation.most].map(Duration.toMillis)
  const delays = retries.map(({ delayMillis }) => delayMillis)
  if (stop === undefined) return assert.deepStrictEqual([least, most], delays.sort((a, b) => a - b))
  // The end of the range lies between the two draws: a run with one inside it retries.
  assert.include([least, most], delays[0])
}

/** The decisions about the attempt that are the last, or stand for it. */
const about = (decisions: ReadonlyArray<RetryDecision.RetryDecision>, attempt: number) =>
  decisions[Math.min(attempt, decisions.length) - 1]!

const agrees = (policy: AnyPolicy, error: unknown) =>
  Effect.gen(function*() {
    const [low, high] = [yield* decisionsOf(policy, error, 0), yield* decisionsOf(policy, error, 1)]
    for (let attempt = 1; attempt <= attempts; attempt++) {
      same(RetryPolicy.explain(policy, error, { attempt }), [about(low, attempt), about(high, attempt)])
    }
  })

const lost = Object.assign(new Error("secret"), { code: "ECONNRESET" })

const lines: ReadonlyArray<
  readonly [string, RetryPolicy.RetryPolicy<any, unknown, unknown>, unknown, RetryPolicy.ExplainOptions, string]
> = [
  ["full jitter", awsStandard, lost, {}, "would retry after 0 to 1 s at 5 tokens"],
  ["the second attempt", awsStandard, lost, { attempt: 2 }, "would retry after 0 to 2 s at 5 tokens"],
  ["a timeout", awsStandard, new TimedOut(), {}, "would retry after 0 to 1 s at 10 tokens"],
  ["a throttle", awsStandard2026, new Throttled({}), {}, "would retry after 0 to 1 s at 5 tokens"],
  ["a hint", awsStandard2026, new Throttled({ retryAfter: 3000 }), {}, "would retry after 3 s at 5 tokens"],
  ["milliseconds", Backoff.fixed(100, { jitter: "equal" }), lost, {}, "would retry after 50 to 100 ms"],
  ["seconds", Backoff.fixed(1500, { jitter: { proportional: 0.1 } }), lost, {}, "would retry after 1.35 to 1.65 s"],
  ["one token", RetryPolicy.quotaGated(Backoff.fixed(5), { cost: 1 }), lost, {}, "would retry after 5 ms at 1 token"],
  ["no delay", RetryPolicy.immediate, lost, {}, "would retry immediately"],
  [
    "a deadline that only long delays miss",
    Backoff.fixed(4000, { jitter: "full" }).pipe(RetryPolicy.deadline("1 second")),
    lost,
    {},
    "would retry after 0 to 999 ms, or stop: deadline"
  ],
  [
    "a hint that only long delays reach",
    Backoff.fixed(4000, { jitter: "full" }).pipe(
      RetryPolicy.honorRetryAfter({ overshoot: "1 second", beyond: "stop" })
    ),
    new Throttled({ retryAfter: 3000 }),
    {},
    "would retry after 3 to 4 s, or stop: retry-after-too-long"
  ],
  [
    "an unknown error",
    awsStandard,
    new TypeError("secret"),
    {},
    "would stop: unknown-error, TypeError: the classifier does not know it"
  ],
  [
    "what may have been carried out",
    awsStandard,
    new Unsure(),
    {},
    "would stop: not-safe, Unsure: it may have been processed, and a second send could do it twice"
  ],
  ["a final error", awsStandard, new Terminal(), {}, "would stop: final, Terminal: the same call would fail again"],
  [
    "a response that no classifier knows",
    awsStandard,
    { status: 404 },
    {},
    "would stop: final, HTTP 404: the same call would fail again"
  ],
  ["the refusal of a gate", awsStandard, new Refusal(), {}, "would stop: vetoed, Refusal: a rule forbids it"],
  [
    "facts that veto",
    awsStandard,
    { [RetryInfo.TypeId]: RetryInfo.vetoed, name: "Banned" },
    {},
    "would stop: vetoed, Banned: a rule forbids it"
  ],
  [
    "a condition",
    RetryPolicy.while(awsStandard, ({ attempt }) => attempt > 1),
    lost,
    {},
    "would stop: condition, ECONNRESET: the condition does not hold"
  ],
  [
    "a wrapped answer that is final",
    awsStandard,
    new Wrapped({ cause: Object.assign(new Error("?"), { status: 404 }) }),
    {},
    "would stop: final, HTTP 404 Wrapped: the same call would fail again"
  ],
  [
    "a wrapped error without an answer",
    awsStandard,
    new Wrapped({ cause: Object.assign(new Error("?"), { status: 200 }) }),
    {},
    "would stop: unknown-error, Wrapped: the classifier does not know it"
  ],
  [
    "attempts",
    awsStandard,
    lost,
    { attempt: 3 },
    "would stop: max-attempts, ECONNRESET: the attempts are used up"
  ],
  [
    "an attempt that is never made",
    awsStandard,
    lost,
    { attempt: 10_000 },
    "would stop: max-attempts, ECONNRESET: the attempts are used up"
  ],
  [
    "a deadline",
    RetryPolicy.deadline(Backoff.fixed("2 seconds"), "2 seconds"),
    lost,
    {},
    "would stop: deadline, ECONNRESET: the retry would begin too late"
  ],
  [
    "a hint that is too long",
    awsStandard.pipe(RetryPolicy.honorRetryAfter({ atMost: "1 second", beyond: "stop" })),
    new Throttled({ retryAfter: 60_000 }),
    {},
    "would stop: retry-after-too-long, Throttled: the server asks for a longer wait than the policy allows"
  ],
  [
    "a function without a delay",
    RetryPolicy.fromDelay(() => undefined),
    lost,
    {},
    "would stop: schedule, ECONNRESET: there is no further delay"
  ],
  [
    "another classifier",
    awsStandard,
    "busy",
    { classifier: (error) => error === "busy" ? Option.some(RetryInfo.throttled("2 seconds")) : Option.none() },
    "would retry after 2 s at 5 tokens"
  ],
  [
    "a classifier that adds to that of the library",
    awsStandard,
    lost,
    { classifier: RetryClassifier.orElse(RetryClassifier.defaultClassifier, () => Option.none()) },
    "would retry after 0 to 1 s at 5 tokens"
  ],
  [
    "a schedule in the policy",
    RetryPolicy.maxAttempts(Schedule.spaced("1 second"), 3),
    lost,
    {},
    "is certain only when it runs: the policy asks a schedule, a service or a setting"
  ]
]

describe("RetryPolicy.explain", () => {
  it.each(lines)("%s", (...[, policy, error, options, line]) => {
    assert.strictEqual(String(RetryPolicy.explain(policy, error, options)), line)
  })

  it("is a value whose fields can be asserted", () => {
    const explanation = RetryPolicy.explain(awsStandard, lost)
    assert.deepInclude(explanation, {
      _tag: "WouldRetry",
      least: Duration.zero,
      most: Duration.seconds(1),
      tokens: 5,
      otherwise: undefined
    })
    assert.deepInclude(RetryPolicy.explain(awsStandard, "?"), { _tag: "WouldStop", reason: "unknown-error" })
  })

  it("is a value that can be compared as a whole", () => {
    const retries = {
      _tag: "WouldRetry",
      least: Duration.zero,
      most: Duration.seconds(1),
      tokens: 5,
      otherwise: undefined
    } as const
    const stops = { _tag: "WouldStop", reason: "max-attempts" } as const
    assert.deepStrictEqual(RetryPolicy.explain(awsStandard, lost), retries)
    assert.deepStrictEqual(RetryPolicy.explain(awsStandard, lost, { attempt: 3 }), stops)
    assert.deepStrictEqual(RetryPolicy.explain(Schedule.spaced(1), lost), { _tag: "Uncertain" })
  })

  it("stops before it has looked at a schedule", () => {
    const policy = RetryPolicy.whileRetryable(Schedule.spaced("1 second"))
    assert.deepInclude(RetryPolicy.explain(policy, "?"), { reason: "unknown-error" })
    assert.strictEqual(RetryPolicy.explain(policy, lost)._tag, "Uncertain")
  })

  it.each<[string, (explain: any) => unknown, RegExp]>([
    ["no policy", (explain) => explain({}, lost), /RetryPolicy.explain: policy must be a schedule/],
    ["half an attempt", (explain) => explain(awsStandard, lost, { attempt: 1.5 }), /attempt must be a whole number/],
    ["no attempt", (explain) => explain(awsStandard, lost, { attempt: 0 }), /from 1 to 10,000, got 0/],
    ["too many", (explain) => explain(awsStandard, lost, { attempt: 10_001 }), /from 1 to 10,000, got 10001/],
    ["no classifier", (explain) => explain(awsStandard, lost, { classifier: 5 }), /classifier must be a function/],
    ["a misspelled option", (explain) => explain(awsStandard, lost, { attempts: 1 }), /option must be one of/]
  ])("throws InvalidOption for %s", (_, wrong, message) => {
    assert.throws(() => wrong(RetryPolicy.explain), InvalidOption)
    assert.throws(() => wrong(RetryPolicy.explain), message)
  })

  const errors: ReadonlyArray<readonly [string, unknown]> = [
    ["a lost connection", lost],
    ["a throttle", new Throttled({})],
    ["a throttle with a hint", new Throttled({ retryAfter: 700 })],
    ["a timeout", new TimedOut()],
    ["a transient error", new Transient()],
    ["an unsafe error", new Unsure()],
    ["a final error", new Terminal()],
    ["an unknown error", "?"]
  ]

  const named: ReadonlyArray<readonly [string, AnyPolicy]> = Object.entries({
    awsStandard,
    awsStandard2026,
    decorrelated: Backoff.decorrelated(100, { cap: 5000 }),
    additive: Backoff.decorrelated(100, { cap: 5000, additive: true }),
    deadline: awsStandard.pipe(RetryPolicy.withMaxAttempts(9), RetryPolicy.deadline("3 seconds")),
    joined: RetryPolicy.min([awsStandard, Backoff.fixed(400).pipe(RetryPolicy.maxAttempts(5))]),
    concat: awsStandard.pipe(RetryPolicy.concat(Backoff.linear(100)), RetryPolicy.deadline("10 seconds")),
    chosen: RetryPolicy.choose(({ info }) => info?.throttling ? Backoff.fixed(70) : awsStandard)
  })

  for (const [name, policy] of named) {
    it.effect.each(errors)(`${name} decides about %s as a call does`, ([, error]) => agrees(policy, error))
  }

  it.effect("decides as a call does for any policy that is data", () =>
    Effect.gen(function*() {
      for (let seed = 1; seed <= budget(300); seed++) {
        for (const [, error] of errors) yield* agrees(policyOf(seed) as AnyPolicy, error)
      }
    }))
})

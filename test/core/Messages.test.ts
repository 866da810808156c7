/** What a wrong option or a forgotten argument reports: one line, which says what would be valid. */
import { assert, describe, it } from "@effect/vitest"
import {
  awsStandard,
  Backoff,
  InvalidOption,
  RetryInfo,
  RetryPolicy,
  RetryPromise,
  withRetry,
  withRetryOrElse
} from "effect-retry"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"

const call = Effect.fail("down")
const untyped: any = { ...Backoff, withRetry, withRetryOrElse }
const such = ", such as \"100 millis\" or \"2 seconds\""
const scheduled = "must be a schedule, such as awsStandard"

const messages: ReadonlyArray<readonly [string, () => unknown, string]> = [
  [
    "a duration of another library",
    () => Backoff.exponential("100ms" as any),
    `Backoff.exponential: base must be a finite duration of at least 0${such}, got "100ms"`
  ],
  [
    "a duration above 0 of another library",
    () => RetryPolicy.capped("2s" as any),
    `RetryPolicy.capped: cap must be a finite duration above 0${such}, got "2s"`
  ],
  [
    "a duration that is a number",
    () => Backoff.exponential(-1),
    "Backoff.exponential: base must be a finite duration of at least 0, got -1"
  ],
  [
    "a factor, which has no largest value",
    () => Backoff.exponential(1, 0.5),
    "Backoff.exponential: factor must be a finite number of at least 1, got 0.5"
  ],
  ...["exponential", "linear", "fibonacci", "decorrelated"].map((name) =>
    [
      `the first delay of Backoff.${name} among its options`,
      () => untyped[name]({ base: "100 millis", cap: "5 seconds" }),
      `Backoff.${name}: base must be the first argument, got an object`
    ] as const
  ),
  [
    "the delay of Backoff.fixed among its options",
    () => untyped.fixed({ delay: "100 millis" }),
    "Backoff.fixed: delay must be the first argument, got an object"
  ],
  [
    "no delay at all",
    () => untyped.exponential(),
    `Backoff.exponential: base must be a finite duration of at least 0${such}, got undefined`
  ],
  [
    "policies that are no array",
    () => RetryPolicy.max(5 as any),
    "RetryPolicy.max: policies must be an array of at least one schedule, such as [awsStandard], got 5"
  ],
  [
    "promises that take something else than a policy",
    () => (RetryPromise.make as any)({ retries: 3 }),
    "RetryPromise.make: policy must be a RetryPolicy, such as awsStandard, got an object"
  ],
  ["withRetry()", () => call.pipe(untyped.withRetry()), `withRetry: policy ${scheduled}, got undefined`],
  ["withRetry(call)", () => untyped.withRetry(call), `withRetry: policy ${scheduled}, got ${String(call)}`],
  [
    "an effect of many lines, on one",
    () => untyped.withRetry(Effect.suspend(() => call)),
    `withRetry: policy ${scheduled}, got { "_id": "Effect", "op": "Suspend", "args": Function({ "length": 0, "name": "" }) }`
  ],
  [
    "withRetry with options of Effect.retry",
    () => untyped.withRetry(call, { schedule: awsStandard, times: 2 }),
    `withRetry: policy ${scheduled}, got an object`
  ],
  ["withRetryOrElse()", () => untyped.withRetryOrElse(), `withRetryOrElse: policy ${scheduled}, got undefined`],
  [
    "withRetryOrElse without a fallback",
    () => untyped.withRetryOrElse(call, awsStandard),
    `withRetryOrElse: policy ${scheduled}, got ${String(call)}`
  ]
]

describe("messages", () => {
  for (const [name, run, message] of messages) {
    it(name, () => {
      try {
        run()
      } catch (error) {
        assert.instanceOf(error, InvalidOption)
        return assert.strictEqual(error.message, message)
      }
      assert.fail("did not throw")
    })
  }

  it.effect.each(
    [
      ["withRetry", (busy: Effect.Effect<never, unknown>) => withRetry(busy, awsStandard)],
      ["Effect.retry", (busy: Effect.Effect<never, unknown>) => Effect.retry(busy, awsStandard)]
    ] as const
  )("a quota that is missing, which only JavaScript compiles: %s", ([, retried]) =>
    Effect.gen(function*() {
      const busy: Effect.Effect<never> = (retried as any)(Effect.fail({ [RetryInfo.TypeId]: RetryInfo.transient }))
      const cause = yield* Effect.flip(Effect.sandbox(busy))
      assert.include(Cause.pretty(cause), "reading 'reserve'")
    }))
})

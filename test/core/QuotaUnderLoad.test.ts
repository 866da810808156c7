import { assert, describe, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  awsAdaptive,
  awsDynamoDB2026,
  AwsModes,
  awsStandard,
  awsStandard2026,
  ResourceLimiters,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as Operations from "effect-retry/aws/Operations"
import * as Kit from "effect-retry/testing"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"

const half = Kit.fixedRandom(0.5)
const numbers = (length: number) => Array.from({ length }, (_, n) => n)

describe("a quota that many calls share", () => {
  it.effect("of 10,000 fibers at a quota of 500 with cost 5, 100 win; no token is lost or made", () =>
    Effect.gen(function*() {
      const taken = yield* Effect.forEach(
        numbers(10_000),
        () => Effect.andThen(Effect.yieldNow, RetryQuota.reserve(5)),
        { concurrency: "unbounded" }
      )
      const won = taken.filter(Option.isSome).map(({ value }) => value)
      assert.strictEqual(won.length, 100)
      assert.deepStrictEqual(yield* Kit.TestQuota.state, { balance: 0, capacity: 500, held: 500, waiting: 0 })
      yield* Effect.forEach(won, ({ giveBack }, n) => Effect.when(giveBack, Effect.succeed(n % 2 === 0)))
      yield* Effect.forEach(won, ({ spend }) => spend)
      assert.deepStrictEqual(yield* Kit.TestQuota.state, { balance: 250, capacity: 500, held: 0, waiting: 0 })
    }).pipe(Effect.provide(Kit.TestQuota.layer())))

  it.effect("one key has one quota and one limiter, and another key has others", () =>
    Effect.gen(function*() {
      const services = (key: string) =>
        Effect.provide(
          Effect.all([RetryQuota.RetryQuota, AdaptiveRateLimiter.AdaptiveRateLimiter]),
          ResourceLimiters.get(key)
        )
      const [a, again, b] = yield* Effect.all([services("a"), services("a"), services("b")])
      assert.strictEqual(a[0].store, again[0].store)
      assert.strictEqual(a[1].gate, again[1].gate)
      assert.notStrictEqual(a[0].store, b[0].store)
      assert.notStrictEqual(a[1].gate, b[1].gate)
      yield* a[0].reserve(500)
      assert.strictEqual(yield* b[0].balance, 500)
    }).pipe(Effect.provide(ResourceLimiters.layer())))

  const modes = {
    awsStandard,
    awsStandard2026,
    awsDynamoDB2026,
    awsAdaptive,
    "Operations, a long poll": Operations.forOperation({ service: "SQS", operation: "ReceiveMessage" }),
    "standard with 10 attempts": AwsModes.standard({ maxAttempts: 10 })
  }
  for (const [name, policy] of Object.entries(modes)) {
    it.effect(`after an outage has drained the quota, calls that succeed bring the retries back: ${name}`, () =>
      Effect.gen(function*() {
        const down = Kit.outcomes([Kit.transient], { afterwards: "repeat" })
        const up = Kit.outcomes([Kit.ok()], { afterwards: "repeat" })
        const timed = <A, E, R>(call: Effect.Effect<A, E, R>) => Effect.exit(Kit.runToEnd(call))
        for (let n = 0; n < 120; n++) yield* timed(withRetry(down.send, policy))
        assert.isBelow(yield* RetryQuota.balance, 14)
        const before = down.sends
        yield* timed(withRetry(down.send, policy))
        assert.strictEqual(down.sends, before + 1)
        for (let n = 0; n < 14; n++) yield* timed(withRetry(up.send, policy))
        const flaky = Kit.outcomes([Kit.transient, Kit.ok()])
        yield* timed(withRetry(flaky.send, policy))
        assert.strictEqual(flaky.sends, 2)
      }).pipe(Effect.provide([Kit.TestQuota.layer(), AdaptiveRateLimiter.layer(), half])))
  }

  it.effect("a retry that ends in an error that is not retried has been sent, so its cost is spent", () =>
    Effect.gen(function*() {
      for (const isLazy of [true, false]) {
        yield* Kit.TestQuota.setBalance(500)
        const call = Kit.outcomes([Kit.transient, Kit.notRetryable])
        const retried = isLazy ? withRetry(call.send, awsStandard) : Effect.retry(call.send, awsStandard)
        assert.strictEqual((yield* Effect.flip(Kit.runToEnd(retried)))._tag, "NotRetryable")
        assert.deepStrictEqual(yield* Kit.TestQuota.state, { balance: 495, capacity: 500, held: 0, waiting: 0 })
      }
    }).pipe(Effect.provide([Kit.TestQuota.layer(), half])))

  it.effect("a caller in a loop is held back for the delay though the quota refuses, if it polls", () =>
    Effect.gen(function*() {
      const polling = AwsModes.standard2026({ longPolling: true })
      const call = Kit.outcomes([Kit.transient], { afterwards: "repeat" })
      const looping = Effect.forkChild(Effect.forever(Effect.exit(withRetry(call.send, polling))))
      yield* looping
      yield* TestClock.adjust("1 second")
      // 25 ms between sends, as the first backoff is.
      assert.isAtMost(call.sends, 41)
      assert.isAtLeast(call.sends, 30)
    }).pipe(Effect.provide([Kit.TestQuota.layer({ initial: 0 }), half])))

  it.effect("a call that the quota stops says so, and after how many attempts", () =>
    Effect.gen(function*() {
      const policy = AwsModes.standard({ maxAttempts: 1000 })
      for (const isLazy of [true, false]) {
        yield* Kit.TestQuota.setBalance(12)
        const events = Kit.timeline()
        const stops: Array<readonly [string, number]> = []
        const call = Kit.outcomes([Kit.transient], { afterwards: "repeat" })
        const retried = Effect.retryOrElse(call.send, policy, (error, stopped) => {
          if (stopped._tag === "Stop") stops.push([stopped.reason, stopped.attempts])
          return Effect.fail(error)
        })
        const run = isLazy ? withRetry(call.send, policy) : retried
        yield* Effect.exit(Kit.runToEnd(Effect.provide(run, events.layer)))
        assert.strictEqual(call.sends, 3)
        assert.strictEqual(events.at("quota-exhausted").length, 1)
        if (!isLazy) assert.deepStrictEqual(stops, [["quota-exhausted", 3]])
      }
    }).pipe(Effect.provide([Kit.TestQuota.layer(), half])))
})

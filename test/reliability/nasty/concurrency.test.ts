import { assert, describe, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  attempt,
  awsAdaptive,
  awsDynamoDB2026,
  AwsModes,
  awsStandard,
  awsStandard2026,
  Backoff,
  ResourceLimiters,
  RetryPolicy,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as Operations from "effect-retry/aws/Operations"
import * as Kit from "effect-retry/testing"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import { countedClock } from "../utils/clocks.ts"

const half = Kit.fixedRandom(0.5)
const numbers = (length: number) => Array.from({ length }, (_, n) => n)

/** Forks an effect for each number, so that they come in this order, and notes who was served when. */
const inLine = <E, R>(count: number, wait: Effect.Effect<unknown, E, R>) =>
  Effect.gen(function*() {
    const served: Array<readonly [who: number, atMillis: number]> = []
    const fibers: Array<Fiber.Fiber<unknown, E>> = []
    for (const who of numbers(count)) {
      const noted = Effect.flatMap(wait, () => Effect.map(Clock.currentTimeMillis, (now) => served.push([who, now])))
      fibers.push(yield* Effect.forkChild(noted, { startImmediately: true }))
    }
    return { served, fibers }
  })

describe("concurrency", () => {
  it.effect("nasty 31: of 10,000 fibers at a quota of 500 with cost 5, 100 win; no token is lost or made", () =>
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

  it.effect("nasty 32: who comes late is served late, and a big cost is not starved by small ones", () =>
    Effect.gen(function*() {
      const served: Array<string> = []
      const reserve = (who: string, cost: number) =>
        Effect.forkChild(
          Effect.andThen(RetryQuota.reserve(cost), Effect.sync(() => served.push(who))),
          { startImmediately: true }
        )
      yield* reserve("big", 10)
      for (const n of numbers(20)) {
        yield* TestClock.adjust(400)
        yield* reserve(`small ${n}`, 1)
      }
      assert.deepStrictEqual(served, [])
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(served, ["big", ...numbers(20).map((n) => `small ${n}`)])
    }).pipe(
      Effect.provide(Kit.TestQuota.layer({ capacity: 10, initial: 0, refillPerSecond: 1, whenExhausted: "wait" }))
    ))

  it.effect("nasty 32: a send that comes while others wait is served after them, though a token is there", () =>
    Effect.gen(function*() {
      const { served } = yield* inLine(20, AdaptiveRateLimiter.acquire)
      yield* TestClock.adjust(140)
      const late = yield* inLine(1, AdaptiveRateLimiter.acquire)
      yield* TestClock.adjust("20 seconds")
      assert.deepStrictEqual(served.map(([who]) => who), numbers(20))
      assert.isAbove(late.served[0]![1], served[19]![1])
    }).pipe(Effect.provide(Kit.TestLimiter.layer({ fillRate: 2 }))))

  for (const waiters of [10, 1000, 3000]) {
    it.effect(`nasty 33: ${waiters} waiters have one timer between them, and at most two sleeps per grant`, () =>
      Effect.gen(function*() {
        const counted = yield* countedClock
        yield* counted.provide(
          Effect.gen(function*() {
            const { served } = yield* inLine(waiters, AdaptiveRateLimiter.acquire)
            assert.strictEqual(counted.asleep, 1)
            yield* TestClock.adjust("1 hour")
            assert.strictEqual(served.length, waiters)
            assert.strictEqual(counted.most, 1)
            assert.isAtMost(counted.sleeps, 2 * waiters)
          }).pipe(Effect.provide(Kit.TestLimiter.layer({ fillRate: 200 })))
        )
      }))
  }

  it.effect("nasty 34: a rate that falls while 1,000 wait cuts the tokens, moves the head, and keeps the order", () =>
    Effect.gen(function*() {
      const limiter = yield* AdaptiveRateLimiter.AdaptiveRateLimiter
      const { served } = yield* inLine(1000, limiter.acquire)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(served.length, 10)
      for (let n = 0; n < 6; n++) yield* limiter.update(true)
      const { capacity, fillRate, maxCapacity, waiting } = yield* limiter.snapshot
      assert.isBelow(fillRate, 2)
      assert.isAtMost(capacity, maxCapacity)
      assert.strictEqual(waiting, 990)
      yield* TestClock.adjust("10 seconds")
      const after = served.length - 10
      assert.closeTo(after, 10 * fillRate, 2)
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(served.map(([who]) => who), numbers(1000))
    }).pipe(Effect.provide(Kit.TestLimiter.layer({ fillRate: 10 }))))

  it.effect("nasty 35: a rate that rises wakes the head before the time it had been given", () =>
    Effect.gen(function*() {
      const limiter = yield* AdaptiveRateLimiter.AdaptiveRateLimiter
      const { served } = yield* inLine(1, limiter.acquire)
      // At half a token a second, the head sleeps for two seconds.
      yield* TestClock.adjust(1000)
      for (let n = 0; n < 50; n++) yield* limiter.update(false)
      yield* TestClock.adjust(100)
      for (let n = 0; n < 50; n++) yield* limiter.update(false)
      assert.isAbove((yield* limiter.snapshot).fillRate, 0.7)
      yield* TestClock.adjust(700)
      assert.strictEqual(served.length, 1)
      assert.isBelow(served[0]![1], 2000)
    }).pipe(Effect.provide(Kit.TestLimiter.layer({ fillRate: 0.5 }))))

  it.effect("nasty 36: one key has one quota and one limiter, and another key has others", () =>
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
    it.effect(`nasty 37: after an outage has drained the quota, calls that succeed bring the retries back: ${name}`, () =>
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

  it.effect("nasty 38: a retry that ends in an error that is not retried has been sent, so its cost is spent", () =>
    Effect.gen(function*() {
      for (const isLazy of [true, false]) {
        yield* Kit.TestQuota.setBalance(500)
        const call = Kit.outcomes([Kit.transient, Kit.notRetryable])
        const retried = isLazy ? withRetry(call.send, awsStandard) : Effect.retry(attempt(call.send), awsStandard)
        assert.strictEqual((yield* Effect.flip(Kit.runToEnd(retried)))._tag, "NotRetryable")
        assert.deepStrictEqual(yield* Kit.TestQuota.state, { balance: 495, capacity: 500, held: 0, waiting: 0 })
      }
    }).pipe(Effect.provide([Kit.TestQuota.layer(), half])))

  it.effect("nasty 39: the limiter sees throttles though no call is ever retried", () =>
    Effect.gen(function*() {
      const policy = AwsModes.standard({ maxAttempts: 1 })
      const ok = Kit.outcomes([Kit.ok()], { afterwards: "repeat" })
      for (let n = 0; n < 20; n++) {
        yield* withRetry(ok.send, policy)
        yield* TestClock.adjust(100)
      }
      const before = yield* AdaptiveRateLimiter.snapshot
      assert.isFalse(before.enabled)
      assert.isAbove(before.measuredTxRate, 0)
      yield* Effect.exit(withRetry(Kit.outcomes([Kit.throttled]).send, policy))
      const { enabled, fillRate } = yield* AdaptiveRateLimiter.snapshot
      assert.isTrue(enabled)
      assert.isBelow(fillRate, before.measuredTxRate)
    }).pipe(Effect.provide([Kit.TestQuota.layer(), AdaptiveRateLimiter.layer()])))

  it.effect("nasty 40: a retry takes a send token like a first attempt", () =>
    Effect.gen(function*() {
      const call = Kit.outcomes([Kit.transient, Kit.transient, Kit.ok()])
      const policy = RetryPolicy.requiresRateLimiter(Backoff.fixed({ delay: 1 }))
      const fiber = yield* Effect.forkChild(withRetry(call.send, policy), { startImmediately: true })
      yield* TestClock.adjust("30 seconds")
      assert.isDefined(fiber.pollUnsafe())
      const [first, second, third] = call.timeline.at("attempt")
      assert.strictEqual(first, 2000)
      // The backoffs are 1 ms; the rate goes up with each answer.
      assert.isAbove(second! - first!, 500)
      assert.isAbove(third! - second!, 200)
    }).pipe(Effect.provide(Kit.TestLimiter.layer({ fillRate: 0.5 }))))

  it.effect("nasty 41: a caller in a loop is held back for the delay though the quota refuses, if it polls", () =>
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

  it.effect("nasty 42: a call that the quota stops says so, and after how many attempts", () =>
    Effect.gen(function*() {
      const policy = AwsModes.standard({ maxAttempts: 1000 })
      for (const isLazy of [true, false]) {
        yield* Kit.TestQuota.setBalance(12)
        const events = Kit.timeline()
        const stops: Array<readonly [string, number]> = []
        const call = Kit.outcomes([Kit.transient], { afterwards: "repeat" })
        const retried = Effect.retryOrElse(attempt(call.send), policy, (error, stopped) => {
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

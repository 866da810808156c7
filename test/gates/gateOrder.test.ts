import { assert, describe, it } from "@effect/vitest"
import { AdaptiveRateLimiter, AwsModes, Backoff, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { countedClock } from "../reliability/utils/clocks.ts"

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

describe("the order in which waiters are served", () => {
  it.effect("who comes late is served late, and a big cost is not starved by small ones", () =>
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
      Effect.provide(Kit.TestQuota.layer({ capacity: 10, initial: 0, refillPerSecond: 1, onExceeded: "wait" }))
    ))

  it.effect("a send that comes while others wait is served after them, though a token is there", () =>
    Effect.gen(function*() {
      const { served } = yield* inLine(20, AdaptiveRateLimiter.acquire)
      yield* TestClock.adjust(140)
      const late = yield* inLine(1, AdaptiveRateLimiter.acquire)
      yield* TestClock.adjust("20 seconds")
      assert.deepStrictEqual(served.map(([who]) => who), numbers(20))
      assert.isAbove(late.served[0]![1], served[19]![1])
    }).pipe(Effect.provide(Kit.TestLimiter.layer({ fillRate: 2 }))))

  for (const waiters of [10, 1000, 3000]) {
    it.effect(`${waiters} waiters have one timer between them, and at most two sleeps per grant`, () =>
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

  it.effect("a rate that falls while 1,000 wait cuts the tokens, moves the head, and keeps the order", () =>
    Effect.gen(function*() {
      const limiter = yield* AdaptiveRateLimiter.AdaptiveRateLimiter
      const { served } = yield* inLine(1000, limiter.acquire)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(served.length, 10)
      for (let n = 0; n < 6; n++) yield* limiter.update(true)
      const { capacity, fillRate, maxCapacity, waiting } = yield* limiter.state
      assert.isBelow(fillRate, 2)
      assert.isAtMost(capacity, maxCapacity)
      assert.strictEqual(waiting, 990)
      yield* TestClock.adjust("10 seconds")
      const after = served.length - 10
      assert.closeTo(after, 10 * fillRate, 2)
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(served.map(([who]) => who), numbers(1000))
    }).pipe(Effect.provide(Kit.TestLimiter.layer({ fillRate: 10 }))))

  it.effect("a rate that rises wakes the head before the time it had been given", () =>
    Effect.gen(function*() {
      const limiter = yield* AdaptiveRateLimiter.AdaptiveRateLimiter
      const { served } = yield* inLine(1, limiter.acquire)
      // At half a token a second, the head sleeps for two seconds.
      yield* TestClock.adjust(1000)
      for (let n = 0; n < 50; n++) yield* limiter.update(false)
      yield* TestClock.adjust(100)
      for (let n = 0; n < 50; n++) yield* limiter.update(false)
      assert.isAbove((yield* limiter.state).fillRate, 0.7)
      yield* TestClock.adjust(700)
      assert.strictEqual(served.length, 1)
      assert.isBelow(served[0]![1], 2000)
    }).pipe(Effect.provide(Kit.TestLimiter.layer({ fillRate: 0.5 }))))

  it.effect("the limiter sees throttles though no call is ever retried", () =>
    Effect.gen(function*() {
      const policy = AwsModes.standard({ maxAttempts: 1 })
      const ok = Kit.outcomes([Kit.ok()], { afterwards: "repeat" })
      for (let n = 0; n < 20; n++) {
        yield* withRetry(ok.send, policy)
        yield* TestClock.adjust(100)
      }
      const before = yield* AdaptiveRateLimiter.state
      assert.isFalse(before.enabled)
      assert.isAbove(before.measuredTxRate, 0)
      yield* Effect.exit(withRetry(Kit.outcomes([Kit.throttled]).send, policy))
      const { enabled, fillRate } = yield* AdaptiveRateLimiter.state
      assert.isTrue(enabled)
      assert.isBelow(fillRate, before.measuredTxRate)
    }).pipe(Effect.provide([Kit.TestQuota.layer(), AdaptiveRateLimiter.layer()])))

  it.effect("a retry takes a send token like a first attempt", () =>
    Effect.gen(function*() {
      const call = Kit.outcomes([Kit.transient, Kit.transient, Kit.ok()])
      const policy = RetryPolicy.requires(Backoff.fixed(1), AdaptiveRateLimiter.AdaptiveRateLimiter)
      const fiber = yield* Effect.forkChild(withRetry(call.send, policy), { startImmediately: true })
      yield* TestClock.adjust("30 seconds")
      assert.isDefined(fiber.pollUnsafe())
      const [first, second, third] = call.timeline.at("attempt")
      assert.strictEqual(first, 2000)
      // The backoffs are 1 ms; the rate goes up with each answer.
      assert.isAbove(second! - first!, 500)
      assert.isAbove(third! - second!, 200)
    }).pipe(Effect.provide(Kit.TestLimiter.layer({ fillRate: 0.5 }))))
})

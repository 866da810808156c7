import { assert, describe, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  awsAdaptive,
  awsStandard,
  Backoff,
  InvalidOption,
  RetryInfo,
  RetryPolicy,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import { countedClock, steppedClock } from "../reliability/utils/clocks.ts"

const day = 86_400_000
const half = Kit.fixedRandom(0.5)

/** Sends per second of a worker over 20 seconds, with a step of a clock in the middle. */
const served = (step: (clocks: { wallMillis: number; monotonicMillis: number }) => void) =>
  Effect.gen(function*() {
    const clocks = yield* steppedClock
    yield* TestClock.adjust("40 days")
    return yield* clocks.provide(
      Effect.gen(function*() {
        let sends = 0
        const sending = Effect.forever(Effect.andThen(AdaptiveRateLimiter.acquire, Effect.sync(() => sends++)))
        const fiber = yield* Effect.forkChild(sending)
        const perSecond: Array<number> = []
        for (let second = 0; second < 20; second++) {
          if (second === 10) step(clocks)
          const before = sends
          yield* TestClock.adjust("1 second")
          perSecond.push(sends - before)
        }
        yield* Fiber.interrupt(fiber)
        return perSecond
      }).pipe(Effect.provide(Kit.TestLimiter.layer({ fillRate: 5 })))
    )
  })

describe("time", () => {
  for (
    const [name, millis] of [
      ["1 s back", -1000],
      ["25 s back", -25_000],
      ["1 hour back", -3_600_000],
      ["30 days back", -30 * day],
      ["1 hour forward", 3_600_000]
    ] as const
  ) {
    it.effect(`a wall clock that steps ${name} leaves the send rate, the quota and backoffs as they are`, () =>
      Effect.gen(function*() {
        const perSecond = yield* served((clocks) => {
          clocks.wallMillis = millis
        })
        assert.deepStrictEqual(new Set(perSecond), new Set([5]))
        const clocks = yield* steppedClock
        yield* clocks.provide(Effect.gen(function*() {
          const quota = yield* RetryQuota.make({ capacity: 100, initial: 0, refillPerSecond: 1 })
          const call = Kit.outcomes([Kit.transient, Kit.ok()])
          const fiber = yield* Effect.forkChild(
            withRetry(call.send, Backoff.fixed("3 seconds"))
          )
          yield* TestClock.adjust("1 second")
          clocks.wallMillis = millis
          yield* TestClock.adjust(1999)
          assert.isUndefined(fiber.pollUnsafe())
          yield* TestClock.adjust(1)
          assert.isDefined(fiber.pollUnsafe())
          assert.closeTo(yield* quota.balance, 3, 1e-9)
        }))
      }))
  }

  it.effect("a monotonic clock that goes back takes nothing away, and what comes after it counts", () =>
    Effect.gen(function*() {
      const perSecond = yield* served((clocks) => {
        clocks.monotonicMillis = -3_600_000
      })
      // The second in which the clock goes back may lose what was refilled since the last reading.
      assert.isAtLeast(Math.min(...perSecond), 4)
      assert.isAtMost(Math.max(...perSecond), 5)
      const clocks = yield* steppedClock
      yield* clocks.provide(Effect.gen(function*() {
        yield* TestClock.adjust("2 hours")
        const quota = yield* RetryQuota.make({ capacity: 10, initial: 4, refillPerSecond: 1, onExceeded: "wait" })
        clocks.monotonicMillis = -3_600_000
        assert.closeTo(yield* quota.balance, 4, 1e-9)
        yield* TestClock.adjust("2 seconds")
        assert.closeTo(yield* quota.balance, 6, 1e-9)
        const waiting = yield* Effect.forkChild(quota.reserve(8))
        yield* TestClock.adjust("1 second")
        clocks.monotonicMillis = -7_000_000
        // What was refilled since the last reading, a second ago, is no longer known.
        yield* TestClock.adjust("3 seconds")
        assert.isDefined(waiting.pollUnsafe())
        yield* TestClock.adjust("1 hour")
        assert.strictEqual(yield* quota.balance, 10)
      }))
    }))

  it.effect("after ten minutes asleep there is one bucket of tokens, and CUBIC knows no more than twice the rate", () =>
    Effect.gen(function*() {
      const quota = yield* RetryQuota.make({ capacity: 10, initial: 0, refillPerSecond: 1 })
      const limiter = yield* AdaptiveRateLimiter.AdaptiveRateLimiter
      const clocks = yield* steppedClock
      clocks.monotonicMillis = 600_000
      yield* clocks.provide(Effect.gen(function*() {
        assert.strictEqual(yield* quota.balance, 10)
        let granted = 0
        const fibers = yield* Effect.forEach(
          Array.from({ length: 100 }),
          () => Effect.forkChild(Effect.andThen(limiter.acquire, Effect.sync(() => granted++)))
        )
        yield* Effect.yieldNow
        assert.strictEqual(granted, 20)
        yield* Fiber.interruptAll(fibers)
        yield* limiter.update(false)
        const { fillRate, maxCapacity, measuredTxRate } = yield* limiter.state
        assert.isAtMost(fillRate, Math.max(0.5, 2 * measuredTxRate) + 1e-9)
        assert.isAtMost(maxCapacity, Math.max(1, 2 * measuredTxRate) + 1e-9)
      }))
    }).pipe(Effect.provide(Kit.TestLimiter.layer({ fillRate: 20 }))))

  it.effect("a backoff of 30 days lasts 30 days", () =>
    Effect.gen(function*() {
      const call = Kit.outcomes([Kit.transient, Kit.ok()])
      yield* Effect.forkChild(withRetry(call.send, Backoff.fixed("30 days")))
      yield* TestClock.adjust(30 * day - 1)
      assert.strictEqual(call.sends, 1)
      yield* TestClock.adjust(1)
      call.timeline.expect("attempts at 0 ms, 720 h")
    }))

  it.live("in real time a backoff beyond 2^31 ms is no backoff of 1 ms", () =>
    Effect.gen(function*() {
      const call = Kit.outcomes([Kit.transient, Kit.ok()])
      const fiber = yield* Effect.forkChild(withRetry(call.send, Backoff.fixed("30 days")))
      // A timer of 1 ms is over long before one of 30.
      yield* Effect.sleep(30)
      assert.strictEqual(call.sends, 1)
      yield* Fiber.interrupt(fiber)
    }))

  const bad = [NaN, Infinity, -Infinity, -1, { seconds: NaN }, { milliseconds: -5 }, "soon" as `${number} seconds`]
  for (const duration of bad) {
    it(`a delay of ${JSON.stringify(duration)} (${String(duration)}) is refused when the policy is made`, () => {
      for (
        const make of [
          () => Backoff.fixed(duration),
          () => Backoff.exponential(duration),
          () => Backoff.exponential(1, 2, { cap: duration }),
          () => Backoff.linear(1, { increment: duration }),
          () => Backoff.fibonacci(duration),
          () => Backoff.decorrelated(duration, { cap: "1 minute" }),
          () => RetryPolicy.capped(duration),
          () => RetryPolicy.deadline(duration),
          () => RetryPolicy.honorRetryAfter({ atMost: duration })
        ]
      ) assert.throws(make, InvalidOption)
    })
  }

  for (const retryAfter of [NaN, -1, Infinity, -Infinity, -0, "soon" as `${number} seconds`]) {
    it.effect(`a hint of ${String(retryAfter)} leaves the computed backoff, or its bound`, () =>
      Effect.gen(function*() {
        const call = Kit.outcomes([Kit.throttledFor(retryAfter), Kit.ok()])
        yield* Kit.runToEnd(withRetry(call.send, awsStandard))
        call.timeline.expect(`attempts at 0 ms, ${retryAfter === Infinity ? "20 s" : "500 ms"}`)
        const hint = RetryInfo.throttled(retryAfter).retryAfter
        if (hint !== undefined) assert.isAtLeast(Duration.toMillis(hint), 0)
      }).pipe(Effect.provide([Kit.TestQuota.layer(), half])))
  }

  for (const delay of [NaN, -1, -0, -Infinity]) {
    it.effect(`a delay function that gives ${delay} means no delay, and the attempts still bind`, () =>
      Effect.gen(function*() {
        const call = Kit.outcomes([Kit.transient], { afterwards: "repeat" })
        const policy = RetryPolicy.fromDelay(() => delay).pipe(RetryPolicy.maxAttempts(4))
        yield* Effect.exit(Kit.runToEnd(withRetry(call.send, policy)))
        call.timeline.expect("attempts at 0 ms, 0 ms, 0 ms, 0 ms")
      }))
  }

  it.live("retries without a delay let others run", () =>
    Effect.gen(function*() {
      let sends = 0
      const call = Effect.suspend(() => Effect.fail(++sends))
      const fiber = yield* Effect.forkChild(withRetry(call, Backoff.fixed(0)))
      // A loop that never yields would not let these timers fire.
      while (sends < 3) yield* Effect.sleep(1)
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("a shortfall below a clock tick is granted, not slept on for ever", () =>
    Effect.gen(function*() {
      const counted = yield* countedClock
      yield* counted.provide(Effect.gen(function*() {
        const quota = yield* RetryQuota.make({
          capacity: 1,
          initial: 1 - 1e-10,
          refillPerSecond: 1,
          onExceeded: "wait"
        })
        assert.isTrue(Option.isSome(yield* quota.reserve(1)))
        assert.strictEqual(counted.sleeps, 0)
        // Three thirds of a token are a token, though their sum may be slightly less.
        const thirds = yield* RetryQuota.make({
          capacity: 1,
          initial: 0,
          refillPerSecond: 1 / 3,
          onExceeded: "wait"
        })
        const fiber = yield* Effect.forkChild(thirds.reserve(1))
        yield* TestClock.adjust("3 seconds")
        assert.isDefined(fiber.pollUnsafe())
        assert.isAtMost(counted.sleeps, 2)
      }))
    }))

  it.effect("a jump of a hundred years in one step ends, in as many wake-ups as there are events", () =>
    Effect.gen(function*() {
      const counted = yield* countedClock
      yield* counted.provide(
        Effect.gen(function*() {
          let granted = 0
          const limiter = yield* AdaptiveRateLimiter.AdaptiveRateLimiter
          yield* Effect.forEach(
            Array.from({ length: 50 }),
            () => Effect.forkChild(Effect.andThen(limiter.acquire, Effect.sync(() => granted++)))
          )
          const call = Kit.outcomes([Kit.transient, Kit.throttled, Kit.ok()])
          const fiber = yield* Effect.forkChild(withRetry(call.send, awsAdaptive))
          yield* TestClock.adjust(100 * 365 * day)
          assert.isDefined(fiber.pollUnsafe())
          assert.strictEqual(granted, 50)
          assert.isAtMost(counted.sleeps, 2 * (50 + 3) + 2)
          assert.strictEqual(counted.asleep, 0)
          assert.strictEqual((yield* limiter.state).waiting, 0)
        }).pipe(Effect.provide([Kit.TestLimiter.layer({ fillRate: 2 }), Kit.TestQuota.layer(), half]))
      )
    }))
})

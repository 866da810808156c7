import { assert, describe, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  attempt,
  awsStandard,
  InvalidOption,
  RetryQuota,
  type RetryQuotaStore,
  withRetry
} from "effect-retry"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as Kit from "effect-retry/testing"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as TestClock from "effect/testing/TestClock"
import { refuses } from "../utils/refuses.ts"

describe("TestQuota", () => {
  it.effect("says what is held in the backoff and in flight, and what came back", () =>
    Effect.gen(function*() {
      const held = Effect.map(Kit.TestQuota.state, ({ balance, held }) => [balance, held])
      const call = Kit.outcomes([Kit.transient, Kit.after("1 second", Kit.ok())])
      const fiber = yield* Effect.forkChild(call.send.pipe(withRetry(awsStandard)))
      yield* TestClock.adjust(499)
      assert.deepStrictEqual(yield* held, [495, 5])
      yield* TestClock.adjust(1)
      call.timeline.expect("attempts at 0 ms, 500 ms")
      assert.deepStrictEqual(yield* held, [495, 5])
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(yield* held, [500, 0])
    }).pipe(Effect.provide([Kit.TestQuota.layer(), Kit.fixedRandom(0.5)])))

  for (
    const [when, at, balance] of [["in its backoff is given back", 499, 500], [
      "in flight is spent",
      500,
      495
    ]] as const
  ) {
    it.effect(`no longer holds anything for a retry that was interrupted: one ${when}`, () =>
      Effect.gen(function*() {
        const call = Kit.outcomes([Kit.transient, Kit.never])
        const fiber = yield* Effect.forkChild(call.send.pipe(withRetry(awsStandard)))
        yield* TestClock.adjust(at)
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(yield* Kit.TestQuota.state, { balance, capacity: 500, held: 0, waiting: 0 })
      }).pipe(Effect.provide([Kit.TestQuota.layer(), Kit.fixedRandom(0.5)])))
  }

  it.effect("holds the tokens of a strategy's token until it is redeemed, whichever fibers it passes through", () =>
    Effect.gen(function*() {
      const held = Effect.map(Kit.TestQuota.state, ({ balance, held }) => [balance, held])
      const strategy = yield* RetryStrategy.make(awsStandard)
      const first = yield* strategy.acquireInitialToken()
      const refreshed = yield* Effect.forkChild(strategy.refreshRetryToken(first, new Kit.Transient()))
      const token = yield* Fiber.join(refreshed)
      assert.deepStrictEqual(yield* held, [495, 5])
      yield* Fiber.join(yield* Effect.forkChild(token.markSent))
      assert.deepStrictEqual(yield* held, [495, 5])
      yield* strategy.recordSuccess(token)
      assert.deepStrictEqual(yield* held, [500, 0])
    }).pipe(Effect.provide([Kit.TestQuota.layer(), Kit.fixedRandom(0.5)])))

  it.effect("holds the tokens of a retry while a combinator delays it, and while it is sent", () =>
    Effect.gen(function*() {
      const call = Kit.outcomes([Kit.transient, Kit.after("1 second", Kit.ok())])
      const late = Schedule.addDelay(awsStandard, () => Effect.succeed("5 seconds"))
      const fiber = yield* Effect.forkChild(Effect.retry(call.send, late))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Kit.TestQuota.state, { balance: 495, capacity: 500, held: 5, waiting: 0 })
      yield* TestClock.adjust("4 seconds")
      assert.deepStrictEqual(yield* Kit.TestQuota.state, { balance: 495, capacity: 500, held: 5, waiting: 0 })
      yield* TestClock.adjust(500)
      call.timeline.expect("attempts at 0 ms, 5.5 s")
      assert.deepStrictEqual(yield* Kit.TestQuota.state, { balance: 495, capacity: 500, held: 5, waiting: 0 })
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(yield* Kit.TestQuota.state, { balance: 500, capacity: 500, held: 0, waiting: 0 })
    }).pipe(Effect.provide([Kit.TestQuota.layer(), Kit.fixedRandom(0.5)])))

  it.effect("keeps the account of a custom store", () =>
    Effect.gen(function*() {
      const held = Option.getOrThrow(yield* RetryQuota.reserve(2))
      assert.deepStrictEqual(yield* Kit.TestQuota.state, { balance: 1, capacity: 3, held: 2, waiting: 0 })
      assert.isTrue(yield* held.giveBack)
      yield* Kit.TestQuota.setBalance(1)
      assert.deepStrictEqual(yield* Kit.TestQuota.state, { balance: 1, capacity: 3, held: 0, waiting: 0 })
      yield* Kit.TestQuota.setBalance(2)
      assert.deepStrictEqual(yield* Kit.TestQuota.state, { balance: 2, capacity: 3, held: 0, waiting: 0 })
    }).pipe(
      Effect.provide(Kit.TestQuota.layerStore(Effect.map(RetryQuota.make({ capacity: 3 }), ({ store }) => store)))
    ))

  it.effect("begins with the balance it is given, and is exhausted there", () =>
    Effect.gen(function*() {
      const events = Kit.timeline()
      const call = Kit.outcomes([Kit.transient])
      yield* call.send.pipe(withRetry(awsStandard), Effect.provide(events.layer), Effect.exit, Kit.runToEnd)
      events.expect("quota-exhausted at 0 ms; no retries")
      assert.strictEqual((yield* Kit.TestQuota.state).balance, 4)
    }).pipe(Effect.provide(Kit.TestQuota.layer({ initial: 4 }))))

  it.effect("holds a reservation until it is settled", () =>
    Effect.gen(function*() {
      const held = Effect.map(Kit.TestQuota.state, ({ held }) => held)
      const [a, b] = yield* Effect.all([RetryQuota.reserve(3), RetryQuota.reserve(4)])
      assert.strictEqual(yield* held, 7)
      yield* Option.getOrThrow(a).giveBack
      assert.strictEqual(yield* held, 4)
      yield* Option.getOrThrow(b).spend
      assert.deepStrictEqual(yield* Kit.TestQuota.state, { balance: 6, capacity: 10, held: 0, waiting: 0 })
    }).pipe(Effect.provide(Kit.TestQuota.layer({ capacity: 10 }))))

  it.effect("counts the callers that wait for tokens", () =>
    Effect.gen(function*() {
      yield* Effect.forkChild(Effect.all([RetryQuota.reserve(3), RetryQuota.reserve(4)], { concurrency: 2 }))
      yield* Effect.yieldNow
      assert.strictEqual((yield* Kit.TestQuota.state).waiting, 2)
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual((yield* Kit.TestQuota.state).waiting, 1)
      yield* TestClock.adjust("4 seconds")
      assert.deepStrictEqual(yield* Kit.TestQuota.state, { balance: 0, capacity: 10, held: 7, waiting: 0 })
    }).pipe(
      Effect.provide(Kit.TestQuota.layer({ capacity: 10, initial: 0, refillPerSecond: 1, onExceeded: "wait" }))
    ))

  it.effect("reads and sets other quotas too, whose holdings it does not know", () =>
    Effect.gen(function*() {
      yield* RetryQuota.reserve(5)
      assert.deepStrictEqual(yield* Kit.TestQuota.state, { balance: 495, capacity: 500, held: 0, waiting: 0 })
      yield* Kit.TestQuota.setBalance(12)
      assert.strictEqual(yield* RetryQuota.balance, 12)
      yield* Kit.TestQuota.setBalance(500)
      assert.strictEqual(yield* RetryQuota.balance, 500)
      const { constructorName, field, value } = yield* Effect.flip(Kit.TestQuota.setBalance(501))
      assert.deepStrictEqual([constructorName, field, value], ["TestQuota.setBalance", "tokens", 501])
    }).pipe(Effect.provide(RetryQuota.layer())))

  it("refuses impossible options under its own name", () => {
    refuses(() => Kit.TestQuota.layer({ capacity: -1 }), { constructorName: "TestQuota.layer" })
  })
})

describe("TestLimiter", () => {
  it.effect("limits nothing at first", () =>
    Effect.gen(function*() {
      const { enabled, waiting } = yield* Kit.TestLimiter.state
      assert.deepStrictEqual([enabled, waiting], [false, 0])
    }).pipe(Effect.provide(Kit.TestLimiter.layer())))

  it.effect("begins throttled at a fill rate, and sends wait", () =>
    Effect.gen(function*() {
      const call = Kit.outcomes([Kit.ok()], { afterwards: "repeat", latency: "1 hour" })
      const sends = Effect.forEach([call.send, call.send, call.send], attempt, { concurrency: "unbounded" })
      yield* Effect.forkChild(sends)
      yield* Effect.yieldNow
      const { enabled, fillRate, lastMaxRate, waiting } = yield* Kit.TestLimiter.state
      assert.deepStrictEqual([enabled, fillRate, waiting], [true, 2, 3])
      assert.closeTo(lastMaxRate, 2 / 0.7, 1e-12)
      yield* TestClock.adjust("10 seconds")
      call.timeline.expect("attempts at 500 ms, 1 s, 1.5 s")
    }).pipe(Effect.provide(Kit.TestLimiter.layer({ fillRate: 2 }))))

  it.effect("begins where a throttle at that rate leaves the limiter, and continues from there", () =>
    Effect.gen(function*() {
      const throttled = yield* AdaptiveRateLimiter.make()
      yield* TestClock.adjust(1100)
      while ((yield* throttled.state).measuredTxRate === 0) yield* throttled.update(false)
      const rate = 0.7 * (yield* throttled.state).measuredTxRate
      yield* throttled.update(true)
      const reference = yield* throttled.state
      assert.closeTo(reference.fillRate, rate, 1e-9)
      const started = Effect.gen(function*() {
        const limiter = yield* AdaptiveRateLimiter.AdaptiveRateLimiter
        const { capacity, fillRate, lastMaxRate, maxCapacity, measuredTxRate, timeWindow } = yield* Kit.TestLimiter
          .state
        for (
          const [actual, expected] of [
            [fillRate, reference.fillRate],
            [lastMaxRate, reference.lastMaxRate],
            [timeWindow, reference.timeWindow],
            [maxCapacity, reference.maxCapacity],
            [capacity, reference.capacity],
            [measuredTxRate, reference.measuredTxRate]
          ] as const
        ) assert.closeTo(actual, expected, 1e-9)
        for (let n = 0; n < 5; n++) {
          yield* TestClock.adjust(400)
          yield* Effect.all([throttled.update(false), limiter.update(false)])
          assert.closeTo((yield* Kit.TestLimiter.state).fillRate, (yield* throttled.state).fillRate, 1e-6)
        }
      })
      yield* Effect.provide(
        started,
        Kit.TestLimiter.layer({ fillRate: reference.fillRate, tokens: reference.capacity })
      )
    }))

  for (
    const options of [{ fillRate: 0.4 }, { fillRate: NaN }, { fillRate: 2, tokens: 3 }, { tokens: 1 }, { beta: 2 }]
  ) {
    it(`refuses ${JSON.stringify(options)}`, () => {
      assert.throws(() => Kit.TestLimiter.layer(options), InvalidOption)
    })
  }

  it.effect("sets the balance of any store, up and down, as its clock has it", () =>
    Effect.gen(function*() {
      const { store } = yield* RetryQuota.make({ capacity: 100, refillPerSecond: 1 })
      let open = 0
      // A store of one's own: it only has the contract.
      const own: RetryQuotaStore.RetryQuotaStore = {
        capacity: 100,
        successIncrement: 1,
        firstAttemptCost: 0,
        onExceeded: "stop",
        reserve: (cost, clock) => {
          const taken = store.reserve(cost, clock) as RetryQuotaStore.Reservation
          open++
          return { cost, giveBack: () => taken.giveBack(), spend: () => open-- > 0 && taken.spend() }
        },
        deposit: (tokens, clock) => store.deposit(tokens, clock),
        balance: (clock) => store.balance(clock)
      }
      for (const quota of [Kit.TestQuota.layerStore(Effect.succeed(own)), RetryQuota.layerStore(Effect.succeed(own))]) {
        for (const tokens of [40, 70, 70, 0, 100, 10]) {
          yield* Effect.provide(
            Effect.gen(function*() {
              yield* Kit.TestQuota.setBalance(tokens)
              assert.strictEqual((yield* Kit.TestQuota.state).balance, tokens)
              assert.strictEqual(open, 0)
            }),
            quota
          )
        }
        yield* TestClock.adjust("5 seconds")
        assert.strictEqual(own.balance(yield* Clock.Clock), 15)
      }
    }))
})

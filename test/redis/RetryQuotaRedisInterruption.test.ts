import { assert, describe, it } from "@effect/vitest"
import { awsStandard, RetryQuota, type RetryQuotaStore, withRetry } from "effect-retry"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redis from "effect/persistence/Redis"
import * as Random from "effect/Random"
import * as TestClock from "effect/testing/TestClock"
import { firstOf } from "../utils/budget.ts"
import { constantRandom, Transient } from "../utils/call.ts"
import { FakeRedis } from "../utils/fakeRedis.ts"
import {
  asking,
  badMoods,
  drivers,
  inTime,
  isOnFallback,
  key,
  shared,
  stopOrWait,
  taking,
  within
} from "../utils/sharedQuota.ts"
import { sweep } from "../utils/sweep.ts"

describe("an interruption of a shared quota", () => {
  const reserving = [
    ["answers are immediate", 0, { capacity: 10 }],
    ["answers take 20 ms", 20, { capacity: 10 }],
    ["tokens are waited for", 5, { capacity: 10, refillPerSecond: 100, onExceeded: "wait" }]
  ] as const
  for (const [when, latency, options] of reserving) {
    it.effect(`at any step of a reservation leaves no lease: ${when}`, () =>
      Effect.gen(function*() {
        const { quota, redis } = yield* shared(options)
        redis.latencyMillis = latency
        yield* inTime(quota.balance)
        let took = 0
        const reserving = taking(quota, 2, "giveBack", () => took++)
        const spending = taking(quota, 10, "spend")
        const steps = yield* sweep(
          quota.onExceeded === "wait" ? Effect.andThen(spending, reserving) : reserving,
          () =>
            Effect.gen(function*() {
              yield* TestClock.adjust(200)
              assert.strictEqual(yield* within(50, quota.balance), 10)
              assert.strictEqual(redis.leases(key), 0)
            }),
          { step: 10 }
        )
        assert.isAbove(steps, 5)
        assert.isAbove(took, 0)
      }))
  }

  for (const options of stopOrWait(100)) {
    const { onExceeded } = options
    it.effect(`at any step of an ask has taken what it holds, and nothing else (${onExceeded})`, () =>
      Effect.gen(function*() {
        const { quota, redis } = yield* shared({ capacity: 10, ...options })
        redis.latencyMillis = 5
        let held: ReadonlyArray<RetryQuotaStore.Reservation> = []
        let interrupted = 0
        const ask = Effect.gen(function*() {
          if (onExceeded === "wait") yield* (yield* asking(quota, 10)).asked
          const asks = yield* asking(quota, 4)
          held = asks.held
          yield* asks.asked
        })
        const steps = yield* sweep(ask, (step) =>
          Effect.gen(function*() {
            yield* TestClock.adjust(200)
            assert.isAtMost(held.length, 1)
            if (step > 0 && held.length === 1) interrupted++
            // Those that had been held before it asked are leases of its own.
            const before = redis.leases(key) - held.length
            assert.include(onExceeded === "wait" ? [0, 1] : [0], before)
            for (const reservation of held) assert.isTrue(reservation.giveBack())
            for (const reservation of held) assert.isFalse(reservation.giveBack() || reservation.spend())
            held = []
            yield* TestClock.adjust(200)
            assert.strictEqual(redis.leases(key), before)
            redis.states.get(key)?.leases.clear()
            yield* Effect.orDie(quota.deposit(10))
            yield* TestClock.adjust(200)
          }), { step: 1 })
        assert.isAbove(steps, 5)
        assert.isAbove(interrupted, 0)
      }))
  }

  for (const [driver, run] of Object.entries(drivers)) {
    for (const options of firstOf(stopOrWait(1e-6), 1)) {
      it.effect(`at any step of ${driver} leaves no lease (${options.onExceeded})`, () =>
        Effect.gen(function*() {
          const { quota, redis } = yield* shared(options)
          redis.latencyMillis = 5
          let sends = 0
          const call = Effect.suspend(() => {
            sends++
            return Effect.fail(new Transient())
          })
          const program = run(call).pipe(
            Effect.provideService(RetryQuota.RetryQuota, quota),
            Effect.provideService(Random.Random, constantRandom(0.5))
          )
          const steps = yield* sweep(program, () =>
            Effect.gen(function*() {
              yield* TestClock.adjust(400)
              assert.strictEqual(redis.leases(key), 0)
              const spent = 500 - (redis.states.get(key)?.tokens ?? 500)
              const retried = Math.max(0, sends - 1)
              // A retry takes its first step one scheduler step after it is handed over: until then it counts as sent.
              assert.include([retried, retried + 1], Math.round(spent / 5))
              assert.closeTo(spent, Math.round(spent / 5) * 5, 0.01)
              yield* Effect.orDie(quota.deposit(500))
              yield* TestClock.adjust(400)
              sends = 0
            }), { step: 50 })
          assert.isAbove(steps, 20)
        }))
    }
  }

  for (const mood of badMoods) {
    it.effect(`at any step of a reservation leaves no lease, here or there, when Redis fails (${mood})`, () =>
      Effect.gen(function*() {
        const { quota, redis } = yield* shared({ capacity: 10, timeout: "20 millis" })
        redis.latencyMillis = 5
        let took = 0
        const reserving = taking(quota, 2, "giveBack", () => took++)
        const failing = Effect.andThen(Effect.sync(() => redis.mood = mood), reserving)
        const steps = yield* sweep(failing, () =>
          Effect.gen(function*() {
            yield* TestClock.adjust(30)
            const isLocal = yield* isOnFallback("test")
            if (isLocal) assert.strictEqual(yield* quota.balance, 10)
            redis.mood = "fine"
            for (const arrives of redis.late.splice(0)) arrives()
            yield* TestClock.adjust("32 seconds")
            assert.strictEqual(yield* within(5, quota.balance), 10)
            assert.isFalse(yield* isOnFallback("test"))
            assert.strictEqual(redis.leases(key), 0)
          }), { step: 10 })
        assert.isAbove(steps, 5)
        assert.isAbove(took, 0)
      }))
  }

  for (const onExceeded of ["stop", "wait"] as const) {
    it.effect(`by a caller whose answer came with the same exchange leaves no lease (${onExceeded})`, () =>
      Effect.gen(function*() {
        const { quota, redis } = yield* shared({
          capacity: 10,
          initial: onExceeded === "wait" ? 0 : 10,
          refillPerSecond: 10,
          onExceeded
        })
        redis.latencyMillis = 5
        const raced = yield* Effect.forkChild(
          Effect.raceAllFirst([quota.reserve(3), quota.reserve(3), quota.reserve(3)])
        )
        yield* TestClock.adjust("2 seconds")
        const winner = Option.getOrThrow(yield* Fiber.join(raced))
        assert.strictEqual(redis.leases(key), 1)
        yield* winner.giveBack
        yield* TestClock.adjust("2 seconds")
        assert.strictEqual(redis.leases(key), 0)
        redis.latencyMillis = 0
        assert.strictEqual(yield* quota.balance, 10)
      }))
  }

  it.effect("at any step of its making leaves no connection open", () =>
    Effect.gen(function*() {
      let open = 0
      let opened = 0
      const connection = Effect.acquireRelease(
        Effect.sync(() => {
          open++
          opened++
          return new FakeRedis().service
        }),
        () => Effect.sync(() => open--)
      )
      const quotaLayer = RetryQuotaRedis.layerConnecting({ name: "test" }, Layer.effect(Redis.Redis, connection))
      const steps = yield* sweep(
        Effect.scoped(Effect.andThen(Layer.build(Layer.fresh(quotaLayer)), Effect.sleep(10))),
        () => Effect.andThen(TestClock.adjust("1 minute"), Effect.sync(() => assert.strictEqual(open, 0))),
        { step: 10 }
      )
      assert.isAbove(steps, 10)
      assert.isAbove(opened, 10)
    }))

  it.effect("at any step of a paid first attempt leaves no lease, and spends what was sent", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared({ capacity: 100, firstAttemptCost: 3, successIncrement: 0 })
      redis.latencyMillis = 5
      let sends = 0
      const program = withRetry(Effect.sync(() => sends++), awsStandard).pipe(
        Effect.provideService(RetryQuota.RetryQuota, quota)
      )
      const steps = yield* sweep(program, () =>
        Effect.gen(function*() {
          yield* TestClock.adjust(400)
          assert.strictEqual(redis.leases(key), 0)
          const spent = 100 - (redis.states.get(key)?.tokens ?? 100)
          assert.include([sends * 3, sends * 3 + 3], spent)
          yield* Effect.orDie(quota.deposit(100))
          yield* TestClock.adjust(400)
          sends = 0
        }), { step: 10 })
      assert.isAbove(steps, 10)
    }))
})

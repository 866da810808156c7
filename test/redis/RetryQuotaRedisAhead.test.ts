import { assert, describe, it } from "@effect/vitest"
import { Backoff, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { Transient } from "../utils/call.ts"
import { FakeRedis } from "../utils/fakeRedis.ts"
import { key, make, shared } from "../utils/sharedQuota.ts"
import { sweep } from "../utils/sweep.ts"

const settings = { capacity: 100, leaseAhead: 8, timeout: "1 second" } as const

const policy = Backoff.fixed({ delay: "10 millis" }).pipe(
  RetryPolicy.maxAttempts(3),
  RetryPolicy.whileRetryable,
  RetryPolicy.quotaGated({ cost: 5 })
)

/** How long reservations take, one after the other, in milliseconds. */
const waits = (quota: RetryQuota.Service, count: number, cost = 5) =>
  Effect.gen(function*() {
    const millis: Array<number> = []
    const asking = Effect.gen(function*() {
      for (let index = 0; index < count; index++) {
        const began = yield* Clock.currentTimeMillis
        const taken = yield* quota.reserve(cost)
        millis.push((yield* Clock.currentTimeMillis) - began)
        if (Option.isSome(taken)) yield* taken.value.spend
      }
    })
    const fiber = yield* Effect.forkChild(asking)
    for (let step = 0; fiber.pollUnsafe() === undefined; step++) {
      if (step === 1000) return yield* Effect.die("it does not end")
      yield* TestClock.adjust(5)
    }
    return millis
  })

describe("leases taken ahead", () => {
  it.effect("the first retry waits for a round trip, the next for none, until there are no tokens", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared(settings)
      redis.latencyMillis = 20
      const millis = yield* waits(quota, 20)
      assert.isAtMost(millis.filter((each) => each > 0).length, 4)
      assert.deepStrictEqual(millis.slice(1, 9), [0, 0, 0, 0, 0, 0, 0, 0])
      assert.isAtMost(redis.exchanges, 10)
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual([redis.total(key), redis.leases(key)], [0, 0])
      const fiber = yield* Effect.forkChild(quota.reserve(5))
      yield* TestClock.adjust("100 millis")
      assert.isTrue(Option.isNone(yield* Fiber.join(fiber)))
    }).pipe(Effect.scoped))

  it.effect("without it, each waits", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared({ ...settings, leaseAhead: 0 })
      redis.latencyMillis = 20
      assert.deepStrictEqual(yield* waits(quota, 5), [20, 20, 20, 20, 20])
    }).pipe(Effect.scoped))

  it.effect("unused ones go back after a second", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared(settings)
      yield* waits(quota, 1)
      yield* TestClock.adjust("200 millis")
      assert.strictEqual(redis.leases(key), 8)
      yield* TestClock.adjust("700 millis")
      assert.strictEqual(redis.leases(key), 8)
      yield* TestClock.adjust("300 millis")
      assert.deepStrictEqual([redis.total(key), redis.leases(key)], [95, 0])
    }).pipe(Effect.scoped))

  it.effect("retries of two costs have their own: after the first of each, none waits, however they mix", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared({ ...settings, capacity: 1000 })
      redis.latencyMillis = 20
      const mixed = []
      for (const cost of [5, 10, 5, 10, 10, 5, 5, 10, 5, 10]) mixed.push(...(yield* waits(quota, 1, cost)))
      assert.deepStrictEqual(mixed, [20, 20, 0, 0, 0, 0, 0, 0, 0, 0])
      assert.isAtMost(redis.exchanges, 8)
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual([redis.total(key), redis.leases(key)], [1000 - 75, 0])
    }).pipe(Effect.scoped))

  it.effect("however many costs there are, few are kept ready, and no more leases than one cost would have", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared({ ...settings, capacity: 10_000 })
      for (const cost of [1, 2, 3, 4, 5, 6, 7]) yield* waits(quota, 1, cost)
      yield* TestClock.adjust("200 millis")
      assert.isAtMost(redis.leases(key), 16)
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual([redis.total(key), redis.leases(key)], [10_000 - 28, 0])
    }).pipe(Effect.scoped))

  it.effect("one process that retries leaves the other what it does not keep ready", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared({ ...settings, capacity: 50 })
      const other = yield* make(redis, { ...settings, capacity: 50 })
      yield* waits(quota, 1)
      // 50 less 5 that are spent and 40 that are ready.
      assert.strictEqual(yield* other.balance, 5)
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* other.balance, 45)
    }).pipe(Effect.scoped))

  it.effect("when the layer closes, and when Redis stops answering, they go back", () =>
    Effect.gen(function*() {
      const redis = new FakeRedis()
      const scope = yield* Scope.make()
      const quota = yield* make(redis, settings).pipe(Effect.provideService(Scope.Scope, scope))
      yield* waits(quota, 1)
      yield* TestClock.adjust("200 millis")
      assert.strictEqual(redis.leases(key), 8)
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual([redis.total(key), redis.leases(key)], [95, 0])

      const second = yield* make(redis, settings)
      yield* waits(second, 1)
      redis.mood = "refusing"
      const balance = yield* Effect.forkChild(second.balance)
      yield* TestClock.adjust("100 millis")
      yield* Fiber.join(balance)
      redis.mood = "fine"
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual([redis.total(key), redis.leases(key)], [90, 0])
    }).pipe(Effect.scoped))

  it.effect("whatever interrupts calls, no token is lost or made", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared({ ...settings, capacity: 1000 })
      redis.latencyMillis = 3
      const call = () => {
        let sends = 0
        return Effect.exit(
          withRetry(
            Effect.suspend(() =>
              ++sends === 3 ? Effect.void : Effect.andThen(Effect.sleep(2), Effect.fail(new Transient()))
            ),
            policy
          )
        ).pipe(Effect.provideService(RetryQuota.RetryQuota, quota))
      }
      const steps = yield* sweep(Effect.suspend(() => Effect.all([call(), call(), call()], { concurrency: 3 })), () =>
        Effect.gen(function*() {
          const before = redis.total(key)
          yield* TestClock.adjust("3 seconds")
          assert.strictEqual(redis.leases(key), 0)
          assert.isAtMost(redis.total(key), 1000)
          assert.isAtLeast(redis.total(key), before - 30)
        }))
      assert.isAtLeast(steps, 20)
    }).pipe(Effect.scoped))

  for (const leaseAhead of [-1, 0.5, 401, NaN]) {
    it(`refuses ${leaseAhead}`, () => {
      assert.throws(() => RetryQuotaRedis.make({ name: "test", leaseAhead }), /leaseAhead must be/)
    })
  }
})

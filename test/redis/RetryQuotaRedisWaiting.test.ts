import { assert, describe, it } from "@effect/vitest"
import { awsStandard, RetryObserver, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import { scripted, Transient } from "../utils/call.ts"
import { threadSeconds } from "../utils/cpu.ts"
import { asking, drained, drivers, inTime, key, shared } from "../utils/sharedQuota.ts"

describe("a shared quota whose retries wait", () => {
  it.effect("serves more waiters than go with one exchange in the order in which they came", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared({
        capacity: 1000,
        initial: 0,
        refillPerSecond: 1000,
        onExceeded: "wait"
      })
      redis.latencyMillis = 1
      const served: Array<number> = []
      yield* Effect.forEach(
        Array.from({ length: 1200 }, (_, n) => n),
        (n) => Effect.forkChild(Effect.map(quota.reserve(1), () => served.push(n)))
      )
      for (let passed = 0; passed < 1400; passed += 10) yield* TestClock.adjust(10)
      assert.deepStrictEqual(served, Array.from({ length: 1200 }, (_, n) => n))
    }))

  it.effect("waits for local tokens only as long as it is of use", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared({ ...drained, timeout: "10 seconds" })
      redis.mood = "silent"
      const { asked, held } = yield* asking(quota, 5, "10400 millis")
      const tooLate = yield* Effect.forkChild(asked)
      const inTime = yield* asking(quota, 5, "10600 millis")
      const waits = yield* Effect.forkChild(inTime.asked)
      yield* TestClock.adjust("10 seconds")
      assert.isDefined(tooLate.pollUnsafe())
      assert.isUndefined(waits.pollUnsafe())
      yield* TestClock.adjust(500)
      assert.isDefined(waits.pollUnsafe())
      assert.deepStrictEqual([held.length, inTime.held.length], [0, 1])
    }))

  it.effect("asks Redis nothing that is of no use, and refuses what takes longer than that immediately", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared(drained)
      yield* (yield* asking(quota, 5, 0)).asked
      yield* (yield* asking(quota, 11)).asked
      assert.strictEqual(redis.exchanges, 0)
      yield* (yield* asking(quota, 5, 500)).asked
      assert.strictEqual(redis.exchanges, 1)
      const { asked, held } = yield* asking(quota, 5, 501)
      const waits = yield* Effect.forkChild(asked)
      yield* TestClock.adjust(500)
      assert.isDefined(waits.pollUnsafe())
      assert.strictEqual(held.length, 1)
    }))

  it.effect("asks again when there are tokens for the first waiter, not for those behind", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared(drained)
      const first = yield* Effect.forkChild(quota.reserve(9))
      yield* Effect.forkChild(quota.reserve(1))
      yield* TestClock.adjust(899)
      assert.strictEqual(redis.exchanges, 1)
      yield* Effect.forkChild(quota.reserve(1))
      yield* TestClock.adjust(1)
      assert.isDefined(first.pollUnsafe())
      assert.strictEqual(redis.exchanges, 2)
    }))

  it.effect("has a waiter look once a second for what another process puts back, however slow the refill", () =>
    Effect.gen(function*() {
      const options = { capacity: 10, refillPerSecond: 0.001, onExceeded: "wait" } as const
      const { quota, redis } = yield* shared(options)
      const { quota: other } = yield* shared(options, redis)
      const taken = Option.getOrThrow(yield* other.reserve(10))
      const waiter = yield* Effect.forkChild(quota.reserve(5))
      yield* TestClock.adjust("1 minute")
      assert.isUndefined(waiter.pollUnsafe())
      assert.isAtMost(redis.exchanges, 62)
      yield* taken.giveBack
      yield* TestClock.adjust(1100)
      assert.isDefined(waiter.pollUnsafe())
    }))

  it.effect("serves the last waiter when all others are interrupted, as soon as there are tokens", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared(drained)
      const waiters = yield* Effect.forEach(Array.from({ length: 2000 }), () => Effect.forkChild(quota.reserve(5)))
      yield* TestClock.adjust(100)
      const last = waiters.pop()!
      const before = redis.exchanges
      yield* Fiber.interruptAll(waiters)
      yield* TestClock.adjust(399)
      assert.isUndefined(last.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.isTrue(Option.isSome(yield* Fiber.join(last)))
      assert.isAtMost(redis.exchanges - before, 3)
      assert.strictEqual(redis.leases(key), 1)
    }))

  it.effect("holds nobody back for a caller that was interrupted while it asked", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared({ ...drained, initial: 1, refillPerSecond: 0.1 })
      redis.latencyMillis = 20
      const gone = yield* Effect.forkChild(quota.reserve(10))
      yield* TestClock.adjust(10)
      yield* Fiber.interrupt(gone)
      const next = yield* Effect.forkChild(quota.reserve(1))
      yield* TestClock.adjust(30)
      assert.isTrue(Option.isSome(yield* Fiber.join(next)))
    }))

  it.effect("refuses newcomers immediately when the line is full, and serves the others in order", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared({ ...drained, maxWaiters: 3 })
      const served: Array<number> = []
      const refused: Array<number> = []
      const waiting = (n: number) =>
        Effect.forkChild(Effect.map(quota.reserve(1), (taken) => (Option.isSome(taken) ? served : refused).push(n)))
      yield* Effect.forEach([1, 2, 3, 4, 5], waiting)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual([served, refused], [[], [4, 5]])
      const before = redis.exchanges
      yield* waiting(6)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual([refused, redis.exchanges - before], [[4, 5, 6], 0])
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(served, [1])
      yield* waiting(7)
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual([served, refused], [[1, 2, 3, 7], [4, 5, 6]])
    }))

  it.effect("counts only retries that Redis made wait: others are granted while there are tokens", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared({ ...drained, capacity: 5000, initial: 1200, maxWaiters: 600 })
      redis.latencyMillis = 1
      const asked = Effect.forEach(Array.from({ length: 3000 }), () => Effect.forkChild(quota.reserve(1)))
      const fibers = yield* asked
      yield* TestClock.adjust(20)
      const granted = (exits: ReadonlyArray<unknown>) => exits.filter((exit) => exit !== undefined).length
      const exits = fibers.map((fiber) => fiber.pollUnsafe())
      assert.strictEqual(granted(exits.slice(0, 1200)), 1200)
      assert.strictEqual(granted(exits.slice(1200, 1800)), 0)
      assert.strictEqual(granted(exits.slice(1800)), 1200)
      yield* Fiber.interruptAll(fibers)
    }))

  it.effect("with no room to wait, refuses what it has no tokens for, and grants what it has", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared({ ...drained, initial: 3, maxWaiters: 0 })
      const granted = (costs: ReadonlyArray<number>) =>
        Effect.gen(function*() {
          const asked = yield* Effect.forEach(costs, (cost) => Effect.forkChild(quota.reserve(cost)))
          yield* TestClock.adjust(1)
          return asked.map((fiber) => {
            const exit = fiber.pollUnsafe()
            return exit === undefined ? "waits" : Exit.isSuccess(exit) && Option.isSome(exit.value)
          })
        })
      assert.deepStrictEqual(yield* granted([2, 2, 1]), [true, false, true])
      assert.deepStrictEqual(yield* granted([1]), [false])
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(yield* granted([1]), [true])
      redis.mood = "silent"
      yield* Effect.forkChild(quota.reserve(1))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* granted([10, 1]), [true, false])
    }))

  it.effect("has room again when a waiter is interrupted, the first as well as the last", () =>
    Effect.gen(function*() {
      const { quota } = yield* shared({ ...drained, maxWaiters: 2 })
      const wait = Effect.gen(function*() {
        const fiber = yield* Effect.forkChild(quota.reserve(1))
        yield* TestClock.adjust(1)
        return fiber
      })
      const [first, second] = [yield* wait, yield* wait]
      assert.isDefined((yield* wait).pollUnsafe())
      yield* Fiber.interrupt(first)
      const third = yield* wait
      assert.isUndefined(third.pollUnsafe())
      assert.isDefined((yield* wait).pollUnsafe())
      yield* Fiber.interrupt(third)
      const fourth = yield* wait
      assert.deepStrictEqual([second.pollUnsafe(), fourth.pollUnsafe()], [undefined, undefined])
      yield* Fiber.interruptAll([second, fourth])
    }))

  for (const [driver, run] of Object.entries(drivers)) {
    it.effect(`stops the call of ${driver} that may not wait: the quota is exhausted`, () =>
      Effect.gen(function*() {
        const { quota } = yield* shared({ ...drained, refillPerSecond: 0.001, maxWaiters: 1 })
        const stops: Array<string> = []
        const observer = RetryObserver.layer({ onStop: ({ reason }) => void stops.push(reason) })
        const call = scripted([new Transient()])
        yield* Effect.forkChild(quota.reserve(1))
        const exit = yield* run(call.effect).pipe(
          Effect.provideService(RetryQuota.RetryQuota, quota),
          Effect.provide(observer),
          inTime
        )
        assert.isTrue(Exit.isFailure(exit))
        assert.deepStrictEqual([call.sends, stops], [1, ["quota-exhausted"]])
      }))
  }

  it.effect("a call with a deadline for which there is no room stops immediately with quota-exhausted, not deadline", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared({ ...drained, maxWaiters: 1 })
      const stops: Array<string> = []
      const observer = RetryObserver.layer({ onStop: ({ reason }) => void stops.push(reason) })
      const call = withRetry(Effect.fail(new Transient()), RetryPolicy.deadline(awsStandard, "1 hour"))
      const queue = yield* Effect.forkChild(quota.reserve(10))
      yield* TestClock.adjust(1)
      const before = redis.exchanges
      yield* Effect.exit(call).pipe(
        Effect.provideService(RetryQuota.RetryQuota, quota),
        Effect.provide(observer)
      )
      assert.deepStrictEqual([stops, redis.exchanges - before], [["quota-exhausted"], 0])
      yield* Fiber.interrupt(queue)
    }))

  for (const [driver, run] of Object.entries(drivers)) {
    it.effect(`${driver} says whether Redis refused for good, or only within the deadline of the call`, () =>
      Effect.gen(function*() {
        const { quota } = yield* shared({ ...drained, maxWaiters: 1 })
        const stops: Array<string> = []
        const observer = RetryObserver.layerOnly({ onStop: ({ reason }) => void stops.push(reason) })
        const call = (deadline: Duration.Input) =>
          run(Effect.fail(new Transient()), RetryPolicy.deadline(awsStandard, deadline))
        const started = (deadline: Duration.Input) =>
          Effect.forkChild(
            Effect.exit(call(deadline)).pipe(
              Effect.provideService(RetryQuota.RetryQuota, quota),
              Effect.provide(observer)
            )
          )
        // Redis answers both in one exchange: there is room for one.
        const fibers = [yield* started("1 hour"), yield* started("1 hour")]
        yield* TestClock.adjust(10)
        assert.deepStrictEqual(stops, ["quota-exhausted"])
        yield* Fiber.interruptAll(fibers)
        yield* started("400 millis")
        yield* TestClock.adjust(10)
        assert.deepStrictEqual(stops, ["quota-exhausted", "deadline"])
      }))
  }

  /** Interrupts 50,000 fibers that all wait; how many CPU seconds it takes. */
  const count = 50_000

  const interrupted = (waiting: Effect.Effect<unknown, unknown>, isBackwards: boolean) =>
    Effect.gen(function*() {
      const waiters = yield* Effect.forEach(
        Array.from({ length: count }),
        () => Effect.forkChild(waiting, { startImmediately: true })
      )
      yield* TestClock.adjust(1)
      assert.isTrue(waiters.every((fiber) => fiber.pollUnsafe() === undefined))
      if (isBackwards) waiters.reverse()
      const before = threadSeconds()
      yield* Fiber.interruptAll(waiters)
      return threadSeconds() - before
    })

  for (const isBackwards of [false, true]) {
    const order = isBackwards ? "last to first" : "first to last"
    it.effect(`lets ${count} waiters go within ${count / 100_000} seconds of CPU time, interrupted from the ${order}, and leaves no trace`, () =>
      Effect.gen(function*() {
        const { quota, redis } = yield* shared({ ...drained, capacity: 1e6, refillPerSecond: 0.001 })
        const seconds = yield* interrupted(quota.reserve(5), isBackwards)
        // Anything worse than linear would take minutes. A slow machine takes long for fibers that hold nothing, too.
        const floor = yield* interrupted(Effect.never, isBackwards)
        assert.isBelow(seconds, Math.max(count / 100_000, 10 * floor))
        yield* TestClock.adjust("1 minute")
        const before = redis.exchanges
        yield* TestClock.adjust("1 hour")
        assert.deepStrictEqual([redis.exchanges - before, redis.leases(key)], [0, 0])
      }))
  }
})

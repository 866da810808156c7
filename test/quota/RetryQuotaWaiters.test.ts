import { assert, describe, it } from "@effect/vitest"
import { Backoff, InvalidOption, RetryObserver, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import { Transient } from "../utils/call.ts"

const waiting = (maxWaiters?: number) =>
  RetryQuota.layer({ capacity: 10, initial: 0, refillPerSecond: 1, onExceeded: "wait", maxWaiters })

const policy = Backoff.fixed(1).pipe(RetryPolicy.maxAttempts(2), RetryPolicy.quotaGated({ cost: 1 }))

describe("maxWaiters of a quota that waits", () => {
  it.effect("serves a maximum and refuses the next immediately; a place is free when one leaves", () =>
    Effect.gen(function*() {
      const asking = Effect.forkChild(RetryQuota.reserve(1))
      const [first] = [yield* asking, yield* asking, yield* asking]
      yield* Effect.yieldNow
      assert.isTrue(Option.isNone(yield* RetryQuota.reserve(1)))
      yield* Fiber.interrupt(first)
      const later = yield* asking
      yield* Effect.yieldNow
      assert.isTrue(Option.isNone(yield* RetryQuota.reserve(1)))
      yield* TestClock.adjust("3 seconds")
      assert.isTrue(Option.isSome(yield* Fiber.join(later)))
    }).pipe(Effect.provide(waiting(3))))

  for (
    const [form, run] of [
      [
        "withRetry",
        (call: Effect.Effect<never, Transient>, deadline: boolean) =>
          withRetry(call, deadline ? RetryPolicy.deadline(policy, "1 hour") : policy)
      ],
      [
        "Effect.retry",
        (call: Effect.Effect<never, Transient>, deadline: boolean) =>
          Effect.retry(call, deadline ? RetryPolicy.deadline(policy, "1 hour") : policy)
      ]
    ] as const
  ) {
    for (const deadline of [false, true]) {
      it.effect(`${form}: a call for which there is no place stops with quota-exhausted${deadline ? ", not deadline" : ""}`, () =>
        Effect.gen(function*() {
          const stops: Array<string> = []
          const observer = RetryObserver.layerOnly({ onStop: ({ reason }) => void stops.push(reason) })
          const queue = yield* Effect.forEach([1, 2], () => Effect.forkChild(RetryQuota.reserve(1)))
          yield* Effect.yieldNow
          const exit = yield* Effect.exit(Effect.provide(run(Effect.fail(new Transient()), deadline), observer))
          assert.isTrue(Exit.isFailure(exit))
          assert.deepStrictEqual(stops, ["quota-exhausted"])
          yield* Fiber.interruptAll(queue)
        }).pipe(Effect.provide(waiting(2))))
    }
  }

  it.effect("never lets more wait than that, even if all come at the same moment", () =>
    Effect.gen(function*() {
      const stops: Array<string> = []
      const observer = RetryObserver.layerOnly({ onStop: ({ reason }) => void stops.push(reason) })
      const call = RetryPolicy.deadline(policy, "1 minute")
      const calls = Effect.forEach(
        Array.from({ length: 50 }),
        () => Effect.exit(withRetry(Effect.fail(new Transient()), call)),
        { concurrency: "unbounded" }
      )
      yield* Kit.runToEnd(Effect.provide(calls, observer))
      assert.strictEqual(stops.length, 50)
      assert.strictEqual(stops.filter((reason) => reason === "max-attempts").length, 5)
    }).pipe(Effect.provide(waiting(5))))

  it.effect("0 lets no caller wait, and takes available tokens", () =>
    Effect.gen(function*() {
      assert.isTrue(Option.isNone(yield* RetryQuota.reserve(1)))
      yield* TestClock.adjust("1 second")
      assert.isTrue(Option.isSome(yield* RetryQuota.reserve(1)))
    }).pipe(Effect.provide(waiting(0))))

  for (const maxWaiters of [-1, 1.5, NaN]) {
    it(`refuses ${maxWaiters}`, () => {
      try {
        waiting(maxWaiters)
        assert.fail("made it")
      } catch (error) {
        assert.instanceOf(error, InvalidOption)
        assert.deepStrictEqual([error.field, error.value], ["maxWaiters", maxWaiters])
      }
    })
  }
})

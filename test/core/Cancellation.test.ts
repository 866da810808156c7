import { assert, describe, it, onTestFinished, vi } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  attempt,
  awsAdaptive,
  awsStandard,
  Backoff,
  RetryClassifier,
  RetryObserver,
  RetryPolicy,
  retryPromise,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { countedClock } from "../reliability/utils/clocks.ts"

const half = Kit.fixedRandom(0.5)

describe("cancellation", () => {
  it.effect("a send that is interrupted in its wait for a token spends none, and those behind move up", () =>
    Effect.gen(function*() {
      const grantedAt: Array<readonly [string, number]> = []
      const acquire = (who: string) =>
        Effect.forkChild(Effect.andThen(
          AdaptiveRateLimiter.acquire,
          Effect.clockWith((clock) => Effect.sync(() => grantedAt.push([who, clock.currentTimeMillisUnsafe()])))
        ))
      const [a, b] = [yield* acquire("a"), yield* acquire("b")]
      yield* acquire("c")
      yield* TestClock.adjust(100)
      yield* Fiber.interrupt(b)
      assert.strictEqual((yield* Kit.TestLimiter.state).waiting, 2)
      yield* Fiber.interrupt(a)
      assert.strictEqual((yield* Kit.TestLimiter.state).waiting, 1)
      yield* TestClock.adjust(1400)
      assert.deepStrictEqual(grantedAt, [["c", 500]])
      assert.closeTo((yield* Kit.TestLimiter.state).capacity, 2, 1e-9)
    }).pipe(Effect.provide(Kit.TestLimiter.layer({ fillRate: 2 }))))

  for (const early of [true, false]) {
    it.effect(`an interruption in the very tick of the grant loses no token, ${early ? "before" : "after"} it`, () =>
      Effect.gen(function*() {
        let kept = 0
        const waiter = Effect.andThen(AdaptiveRateLimiter.acquire, Effect.sync(() => kept++))
        const fibers: Array<Fiber.Fiber<unknown, unknown>> = []
        const interrupter = Effect.forkChild(
          Effect.andThen(Effect.sleep(500), Effect.sync(() => fibers[0]!.interruptUnsafe()))
        )
        if (early) yield* interrupter
        yield* Effect.yieldNow
        fibers.push(yield* Effect.forkChild(waiter))
        yield* Effect.yieldNow
        fibers.push(yield* Effect.forkChild(waiter))
        yield* Effect.yieldNow
        if (!early) yield* interrupter
        yield* TestClock.adjust(500)
        const { capacity, waiting } = yield* Kit.TestLimiter.state
        // One token has come: it was used, or is there, or was handed to the next.
        assert.closeTo(kept + capacity, 1, 1e-9)
        assert.strictEqual(waiting, 1 - (fibers[1]!.pollUnsafe() === undefined ? 0 : 1))
        yield* TestClock.adjust(500)
        assert.isDefined(fibers[1]!.pollUnsafe())
      }).pipe(Effect.provide(Kit.TestLimiter.layer({ fillRate: 2 }))))
  }

  it.effect("an interruption of a first attempt in flight books nothing, and aborts the request", () =>
    Effect.gen(function*() {
      let aborted = 0
      const call = Effect.onInterrupt(Effect.never, () => Effect.sync(() => aborted++))
      const before = yield* Kit.TestLimiter.state
      const fiber = yield* Effect.forkChild(withRetry(call, awsAdaptive))
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.interrupt(fiber)
      const { fillRate, lastMaxRate, measuredTxRate } = yield* Kit.TestLimiter.state
      assert.deepStrictEqual([fillRate, lastMaxRate, measuredTxRate, aborted, yield* RetryQuota.balance], [
        before.fillRate,
        before.lastMaxRate,
        before.measuredTxRate,
        1,
        500
      ])
    }).pipe(Effect.provide([Kit.TestQuota.layer(), Kit.TestLimiter.layer({ fillRate: 10 })])))

  for (
    const [driver, run] of [
      ["withRetry", <E>(call: Effect.Effect<never, E>) => withRetry(call, awsStandard)],
      ["Effect.retry", <E>(call: Effect.Effect<never, E>) => Effect.retry(call, awsStandard)]
    ] as const
  ) {
    it.effect(`an interruption of a retry in flight leaves its cost spent, with ${driver}`, () =>
      Effect.gen(function*() {
        const call = Kit.outcomes([Kit.transient, Kit.never])
        const fiber = yield* Effect.forkChild(run(call.send))
        yield* TestClock.adjust("1 second")
        assert.strictEqual(call.sends, 2)
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(yield* Kit.TestQuota.state, { balance: 495, capacity: 500, held: 0, waiting: 0 })
      }).pipe(Effect.provide([Kit.TestQuota.layer(), half])))

    it.effect(`sixty calls interrupted in their backoffs leave the quota full, with ${driver}`, () =>
      Effect.gen(function*() {
        const calls = Array.from({ length: 60 }, () => Kit.outcomes([Kit.transient]))
        const fibers = yield* Effect.forEach(calls, (call) => Effect.forkChild(run(call.send)))
        yield* TestClock.adjust(8)
        assert.strictEqual((yield* Kit.TestQuota.state).held, 300)
        yield* Fiber.interruptAll(fibers)
        assert.deepStrictEqual(yield* Kit.TestQuota.state, { balance: 500, capacity: 500, held: 0, waiting: 0 })
      }).pipe(Effect.provide([Kit.TestQuota.layer(), half])))
  }

  it("with a signal that was aborted before, nothing is sent", async () => {
    let sends = 0
    const reason = new Error("gone")
    const signal = AbortSignal.abort(reason)
    const result = retryPromise(() => Promise.resolve(++sends), awsStandard, { signal })
    assert.strictEqual(await result.catch((error: unknown) => error), reason)
    assert.strictEqual(sends, 0)
  })

  it("an abort in a backoff of an hour ends the call immediately, and leaves no timer", async () => {
    const set = vi.spyOn(globalThis, "setTimeout")
    const clear = vi.spyOn(globalThis, "clearTimeout")
    onTestFinished(() => void vi.restoreAllMocks())
    const controller = new AbortController()
    let sends = 0
    const result = retryPromise(
      () => Promise.reject(new Error(`send ${++sends}`)),
      Backoff.fixed("1 hour"),
      { signal: controller.signal }
    )
    const settled = result.catch((error: unknown) => error)
    while (sends === 0) await new Promise((resolve) => setImmediate(resolve))
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
    const timer = set.mock.results[set.mock.calls.findIndex(([, millis]) => millis === 3_600_000)]?.value
    assert.isDefined(timer)
    const reason = new Error("gone")
    controller.abort(reason)
    assert.strictEqual(await settled, reason)
    assert.isTrue(clear.mock.calls.some(([cleared]) => cleared === timer))
    assert.strictEqual(sends, 1)
  })

  it.effect("a scope that closes with 10,000 waiters leaves no waiter and no timer", () =>
    Effect.gen(function*() {
      const counted = yield* countedClock
      yield* counted.provide(
        Effect.gen(function*() {
          const scope = yield* Scope.make()
          const sends = Array.from({ length: 10_000 }, () => attempt(Effect.void))
          yield* Effect.forEach(sends, (send) => Effect.forkIn(send, scope))
          yield* Effect.yieldNow
          assert.strictEqual((yield* Kit.TestLimiter.state).waiting, 10_000)
          assert.strictEqual(counted.asleep, 1)
          yield* Scope.close(scope, Exit.void)
          assert.strictEqual((yield* Kit.TestLimiter.state).waiting, 0)
          assert.strictEqual(counted.asleep, 0)
        }).pipe(Effect.provide([Kit.TestLimiter.layer({ fillRate: 1 }), Kit.TestQuota.layer()]))
      )
    }))

  it.effect("in an uninterruptible region a retry waits for its send token until the deadline, no longer", () =>
    Effect.gen(function*() {
      const call = Kit.outcomes([Kit.transient], { afterwards: "repeat" })
      const policy = RetryPolicy.deadline("3 seconds")(awsAdaptive)
      // 50 others are before the retry: its token would take minutes.
      yield* Effect.forEach(
        Array.from({ length: 50 }),
        () => Effect.forkChild(Effect.delay(AdaptiveRateLimiter.acquire, 100))
      )
      const fiber = yield* Effect.forkChild(Effect.uninterruptible(withRetry(call.send, policy)))
      yield* TestClock.adjust("2 seconds")
      fiber.interruptUnsafe()
      yield* TestClock.adjust(999)
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.isDefined(fiber.pollUnsafe())
      assert.strictEqual(call.sends, 1)
      assert.deepStrictEqual(yield* Kit.TestQuota.state, { balance: 500, capacity: 500, held: 0, waiting: 0 })
      assert.isBelow((yield* Kit.TestLimiter.state).waiting, 51)
    }).pipe(Effect.provide([Kit.TestQuota.layer(), Kit.TestLimiter.layer({ fillRate: 0.5, tokens: 1 }), half])))

  const interrupting = () => {
    Fiber.getCurrent()!.interruptUnsafe()
  }
  for (
    const [where, layer] of [
      ["onRetry", RetryObserver.layer({ onRetry: interrupting })],
      ["onAttempt", RetryObserver.layer({ onAttempt: interrupting })],
      ["onStop", RetryObserver.layer({ onStop: interrupting })],
      [
        "the classifier",
        RetryClassifier.layer((error) => {
          interrupting()
          return RetryClassifier.defaultClassifier(error)
        })
      ]
    ] as ReadonlyArray<readonly [string, Layer.Layer<never>]>
  ) {
    it.effect(`an interruption inside ${where} leaves the balance as it should be`, () =>
      Effect.gen(function*() {
        for (const isLazy of [true, false]) {
          const call = Kit.outcomes([Kit.transient], { afterwards: "repeat" })
          const retried = isLazy ? withRetry(call.send, awsStandard) : Effect.retry(call.send, awsStandard)
          const exit = yield* Effect.exit(Kit.runToEnd(Effect.provide(retried, layer)))
          assert.isTrue(Exit.isFailure(exit))
          const { balance, held } = yield* Kit.TestQuota.state
          assert.strictEqual(held, 0)
          assert.strictEqual(balance, 500 - 5 * (call.sends - 1))
          yield* Kit.TestQuota.setBalance(500)
        }
        assert.isTrue(Option.isSome(yield* RetryQuota.reserve(500)))
      }).pipe(Effect.provide([Kit.TestQuota.layer(), half])))
  }
})

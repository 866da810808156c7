import { assert, describe, it } from "@effect/vitest"
import { InvalidOption } from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { earlier } from "../../src/testing/internal/time.ts"
import { runOn, sweepPaceOf, withTestClock } from "../../src/testing/internal/virtualTime.ts"

const defectOf = (exit: Exit.Exit<unknown, unknown>): Kit.NotEnded => {
  assert.isTrue(Exit.isFailure(exit))
  const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
  assert.instanceOf(defect, Kit.NotEnded)
  return defect as Kit.NotEnded
}

describe("runToEnd", () => {
  for (const millis of [0, 0.25, 1, 1500, 7_200_000]) {
    it.effect(`moves time by exactly the ${millis} ms that the effect sleeps`, () =>
      Effect.gen(function*() {
        yield* TestClock.adjust(10)
        assert.strictEqual(yield* Effect.as(Effect.sleep(millis), "done").pipe(Kit.runToEnd), "done")
        assert.strictEqual(yield* Clock.currentTimeMillis, 10 + millis)
      }))
  }

  it.effect("keeps the order of many sleepers", () =>
    Effect.gen(function*() {
      const order: Array<number> = []
      const sleeper = (millis: number) => Effect.delay(Effect.sync(() => order.push(millis)), millis)
      yield* Effect.forEach([300, 100, 200, 100.5], sleeper, { concurrency: "unbounded" }).pipe(Kit.runToEnd)
      assert.deepStrictEqual(order, [100, 100.5, 200, 300])
      assert.strictEqual(yield* Clock.currentTimeMillis, 300)
    }))

  it.effect("does not wait for a sleeper that was interrupted", () =>
    Effect.gen(function*() {
      yield* Effect.raceFirst(Effect.sleep("1 hour"), Effect.sleep("1 second")).pipe(Kit.runToEnd)
      assert.strictEqual(yield* Clock.currentTimeMillis, 1000)
    }))

  it.effect("ends as the effect does: its own error, its defect, its interruption", () =>
    Effect.gen(function*() {
      const error = { own: true }
      assert.strictEqual(yield* Effect.flip(Kit.runToEnd(Effect.delay(Effect.fail(error), 5))), error)
      assert.deepStrictEqual(yield* Effect.exit(Kit.runToEnd(Effect.die("bug"))), Exit.die("bug"))
      const exit = yield* Effect.exit(Kit.runToEnd(Effect.interrupt))
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause))
    }))

  it.effect("lets the effect finish what is not a matter of the clock", () =>
    Effect.gen(function*() {
      const slow = Effect.promise(() => new Promise<string>((resolve) => setTimeout(() => resolve("later"), 300)))
      assert.strictEqual(yield* Effect.tap(slow, () => Effect.sleep(50)).pipe(Kit.runToEnd), "later")
      assert.strictEqual(yield* Clock.currentTimeMillis, 50)
    }))

  it.effect("dies when nothing that sleeps could end the wait", () =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(Kit.runToEnd(Effect.andThen(Effect.sleep(20), Effect.never)))
      const { after, message, reason } = defectOf(exit)
      assert.deepStrictEqual([reason, Duration.toMillis(after)], ["stuck", 20])
      assert.include(message, "nothing in it sleeps")
    }))

  it.effect("dies when the effect sleeps for longer than it may, and interrupts it", () =>
    Effect.gen(function*() {
      let interrupted = 0
      const endless = Effect.onInterrupt(Effect.forever(Effect.sleep("1 hour")), () => Effect.sync(() => interrupted++))
      assert.strictEqual(defectOf(yield* Effect.exit(Kit.runToEnd(endless))).reason, "too-long")
      assert.strictEqual(yield* Clock.currentTimeMillis, 86_400_000)
      assert.strictEqual(interrupted, 1)
      const atMost = { atMost: "10 seconds" } as const
      assert.isTrue(Exit.isSuccess(yield* Effect.exit(Kit.runToEnd(Effect.sleep("10 seconds"), atMost))))
      assert.strictEqual(defectOf(yield* Effect.exit(Kit.runToEnd(Effect.sleep(10_001), atMost))).reason, "too-long")
    }))

  it.effect("dies when the effect sleeps too often", () =>
    Effect.gen(function*() {
      const pace = sweepPaceOf({})
      assert.strictEqual(pace.mostMoves, 100_000)
      const mostMoves = 1000
      const run = withTestClock((clock) => runOn(clock, Effect.forever(Effect.sleep(1)), { ...pace, mostMoves }))
      const { message, moves, reason } = defectOf(yield* Effect.exit(run))
      assert.deepStrictEqual([reason, moves], ["too-long", mostMoves])
      assert.include(message, `in ${mostMoves} steps`)
    }))

  it.effect("dies when the effect cannot be interrupted either", () =>
    Effect.gen(function*() {
      assert.strictEqual(
        defectOf(yield* Effect.exit(Kit.runToEnd(Effect.uninterruptible(Effect.never)))).reason,
        "stuck"
      )
    }))

  it.effect("moves time for the finalizers of an effect that it has to interrupt", () =>
    Effect.gen(function*() {
      let finalized = false
      const slow = Effect.ensuring(
        Effect.never,
        Effect.andThen(Effect.sleep("1 minute"), Effect.sync(() => finalized = true))
      )
      assert.strictEqual(defectOf(yield* Effect.exit(Kit.runToEnd(slow))).reason, "stuck")
      assert.isTrue(finalized)
      assert.strictEqual(yield* Clock.currentTimeMillis, 60_000)
    }))

  it.effect("waits in steps for a fiber that sleeps elsewhere", () =>
    Effect.gen(function*() {
      const done = yield* Deferred.make<string>()
      yield* Effect.forkChild(Effect.delay(Deferred.succeed(done, "yes"), 250))
      yield* Effect.yieldNow
      assert.strictEqual(yield* Kit.runToEnd(Deferred.await(done), { step: 100 }), "yes")
      assert.strictEqual(yield* Clock.currentTimeMillis, 300)
    }))

  it.effect("interrupts the effect when it is interrupted itself", () =>
    Effect.gen(function*() {
      let interrupted = 0
      const never = Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted++))
      const fiber = yield* Effect.forkChild(Kit.runToEnd(never))
      yield* Effect.yieldNow
      yield* Effect.yieldNow
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(interrupted, 1)
    }))

  it.live("provides a test clock if there is none", () =>
    Effect.gen(function*() {
      assert.strictEqual(
        yield* Kit.runToEnd(Effect.andThen(Effect.sleep("1 hour"), Clock.currentTimeMillis)),
        3_600_000
      )
    }))

  for (const [field, options] of [["atMost", { atMost: 0 }], ["step", { step: -1 }], ["step", { step: 0 }]] as const) {
    it(`refuses an impossible ${field}`, () => {
      assert.throws(() => Kit.runToEnd(Effect.void, options), InvalidOption)
    })
  }
})

it.effect("a clock that has gone back shows an earlier time, however it is asked, and sleeps as long as before", () =>
  Effect.gen(function*() {
    yield* TestClock.adjust("3 hours")
    const clock = yield* Clock.Clock
    const back = earlier(clock, 3_600_000)
    assert.strictEqual(back.currentTimeMillisUnsafe(), 7_200_000)
    assert.strictEqual(back.currentTimeNanosUnsafe(), 7_200_000_000_000n)
    assert.strictEqual(clock.monotonicTimeNanosUnsafe() - back.monotonicTimeNanosUnsafe(), 3_600_000_000_000n)
    const fiber = yield* Effect.forkChild(back.sleep(Duration.seconds(1)), { startImmediately: true })
    yield* TestClock.adjust(999)
    assert.isUndefined(fiber.pollUnsafe())
    yield* TestClock.adjust(1)
    assert.isDefined(fiber.pollUnsafe())
  }))

import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import { awsStandard, RetryInfo, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import { refuses } from "../utils/refuses.ts"

const twice = RetryPolicy.fromDelay(() => 100).pipe(RetryPolicy.maxAttempts(2), RetryPolicy.whileRetryable)

describe("outcomes", () => {
  it.effect("ends send after send as the script says, and notes when each began", () =>
    Effect.gen(function*() {
      const call = Kit.outcomes([Kit.throttled, Kit.timeout, Kit.ok("x")], { latency: "30 millis" })
      assert.strictEqual(yield* call.send.pipe(withRetry(awsStandard), Kit.runToEnd), "x")
      assert.strictEqual(call.sends, 3)
      call.timeline.expect("attempts at 0 ms, 530 ms, 1.56 s")
    }).pipe(Effect.provide([RetryQuota.layer(), Kit.fixedRandom(0.5)])))

  for (
    const [name, outcome, tag, retried, info] of [
      ["transient", Kit.transient, "Transient", true, RetryInfo.transient],
      ["throttled", Kit.throttled, "Throttled", true, RetryInfo.throttled()],
      ["timeout", Kit.timeout, "TimedOut", true, RetryInfo.timedOut],
      ["notRetryable", Kit.notRetryable, "NotRetryable", false, RetryInfo.notRetryable]
    ] as const
  ) {
    it.effect(`${name} fails with ${tag}, which policies ${retried ? "retry" : "do not retry"}`, () =>
      Effect.gen(function*() {
        const call = Kit.outcomes<[Kit.Outcome<never, { readonly _tag: string }>, Kit.Outcome<void, never>]>(
          [outcome, Kit.ok()]
        )
        const exit = yield* call.send.pipe(withRetry(twice), Effect.exit, Kit.runToEnd)
        assert.strictEqual(Exit.isSuccess(exit), retried)
        assert.strictEqual(call.sends, retried ? 2 : 1)
        const error = yield* Effect.flip<never, { readonly _tag: string }, never>(outcome.answer)
        assert.strictEqual(error._tag, tag)
        assert.deepStrictEqual(RetryInfo.fromError(error), Option.some(info))
      }))
  }

  it.effect("throttledFor carries the hint", () =>
    Effect.gen(function*() {
      const call = Kit.outcomes([Kit.throttledFor("2 seconds"), Kit.ok()])
      yield* call.send.pipe(withRetry(RetryPolicy.honorRetryAfter()(twice)), Kit.runToEnd)
      call.timeline.expect("attempts at 0 ms, 2 s")
    }))

  it.effect("failure, defect and never end a send with a custom error, a defect, and not at all", () =>
    Effect.gen(function*() {
      const error = { own: true }
      const call = Kit.outcomes([Kit.failure(error), Kit.defect("bug"), Kit.never])
      assert.strictEqual(yield* Effect.flip(call.send), error)
      assert.deepStrictEqual(yield* Effect.exit(call.send), Exit.die("bug"))
      const fiber = yield* Effect.forkChild(call.send)
      yield* TestClock.adjust("1 day")
      assert.isUndefined(fiber.pollUnsafe())
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("after gives one outcome a latency of its own", () =>
    Effect.gen(function*() {
      const call = Kit.outcomes([Kit.after("2 seconds", Kit.timeout), Kit.ok()], { latency: 10 })
      yield* call.send.pipe(withRetry(twice), Kit.runToEnd)
      call.timeline.expect("attempts at 0 ms, 2.1 s")
      assert.strictEqual(yield* Effect.clockWith((clock) => clock.currentTimeMillis), 2110)
    }))

  describe("afterwards", () => {
    const values = (call: Kit.Scripted<number, never>) => Effect.all([call.send, call.send, call.send, call.send])
    const script = [Kit.ok(1), Kit.ok(2)] as const

    it.effect("dies and says so by default", () =>
      Effect.gen(function*() {
        const exit = yield* Effect.exit(values(Kit.outcomes(script)))
        assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
        assert.include(
          String(Exit.isFailure(exit) && Cause.squash(exit.cause)),
          "the script has 2 outcomes, and this is send 3"
        )
      }))

    for (
      const [name, afterwards, expected] of [
        ["repeats the last outcome", "repeat", [1, 2, 2, 2]],
        ["begins again", "restart", [1, 2, 1, 2]],
        ["has an outcome of its own", Kit.ok(7), [1, 2, 7, 7]]
      ] as const
    ) {
      it.effect(name, () =>
        Effect.gen(function*() {
          assert.deepStrictEqual(yield* values(Kit.outcomes(script, { afterwards })), [...expected])
        }))
    }

    it.effect("begins again with the first, however many there are", () =>
      Effect.gen(function*() {
        const calls = Kit.outcomes([Kit.ok(1), Kit.ok(2), Kit.ok(3)], { afterwards: "restart" })
        assert.deepStrictEqual(yield* values(calls), [1, 2, 3, 1])
      }))
  })

  for (
    const [field, make] of [
      ["latency", () => Kit.outcomes([], { latency: -1 })],
      ["latency", () => Kit.after(NaN, Kit.transient)],
      ["afterwards", () => Kit.outcomes([], { afterwards: "stop" as "die" })],
      ["script", () => Kit.outcomes([], { afterwards: "repeat" })],
      ["script", () => Kit.outcomes([], { afterwards: "restart" })],
      ["script", () => Kit.outcomes([Kit.ok(), null as any])],
      ["script", () => Kit.outcomes([Effect.void as any])]
    ] as const
  ) {
    it(`refuses an impossible ${field}`, () => {
      assert.match(refuses(make, { field }).message, /^(outcomes|after): /)
    })
  }

  it("has the values and errors of its outcomes in its type", () => {
    const call = Kit.outcomes([Kit.throttled, Kit.timeout, Kit.ok("x")])
    expectTypeOf(call.send).toEqualTypeOf<Effect.Effect<string, Kit.Throttled | Kit.TimedOut>>()
    const more = Kit.outcomes([Kit.ok(1)], { afterwards: Kit.transient })
    expectTypeOf(more.send).toEqualTypeOf<Effect.Effect<number, Kit.Transient>>()
  })
})

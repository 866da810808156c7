import { assert, describe, it } from "@effect/vitest"
import { awsStandard, InvalidOption, RetryObserver, RetryQuota, withRetry } from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"

const thrownBy = (f: () => void): unknown => {
  try {
    f()
  } catch (error) {
    return error
  }
  return assert.fail("nothing was thrown")
}

/** Events `a` at 0, 430 and 1200 ms, `try` at 0.5 ms. */
const recorded = Effect.gen(function*() {
  const events = Kit.timeline()
  yield* events.record("a")
  yield* TestClock.adjust(0.5)
  yield* events.record("try")
  yield* TestClock.adjust(429.5)
  yield* events.record("a")
  yield* TestClock.adjust(770)
  yield* events.record("a")
  return events
})

describe("timeline", () => {
  for (
    const expected of [
      "a at 0 ms, 430 ms, 1.2 s",
      "a at 0, 0.43 s and 1200 ms",
      "a at 0 s, 430 millis,1.2 seconds",
      "as at 0 ms, 430 ms, 1.2 s",
      "a at 0 min, 430 ms, 0.02 min; tries at 0.5 ms",
      "no b; a at 0 ms, 430 ms, 1.2 s; no retries"
    ]
  ) {
    it.effect(`accepts "${expected}"`, () => Effect.map(recorded, (events) => events.expect(expected)))
  }

  for (
    const [expected, actual] of [
      ["a at 0 ms, 430 ms", "a at 0 ms, 430 ms, 1.2 s"],
      ["a at 0 ms, 431 ms, 1.2 s", "a at 0 ms, 430 ms, 1.2 s"],
      ["no a", "a at 0 ms, 430 ms, 1.2 s"],
      ["b at 0 ms", "no b"],
      ["no b; a at 1 ms", "no b; a at 0 ms, 430 ms, 1.2 s"]
    ] as const
  ) {
    it.effect(`throws for "${expected}", with both sides`, () =>
      Effect.gen(function*() {
        const events = yield* recorded
        const error = thrownBy(() => events.expect(expected))
        assert.instanceOf(error, Kit.TimelineMismatch)
        assert.instanceOf(error, Error)
        const mismatch = error as Kit.TimelineMismatch
        assert.deepStrictEqual([mismatch.expected, mismatch.actual], [expected, actual])
        assert.include(mismatch.message, `expected: ${expected}`)
        assert.include(mismatch.message, `actual:   ${actual}`)
      }))
  }

  for (const text of ["", "a", "a at", "a at soon", "a at 1", "a at 1 parsec", "a at -1 s", "no ", "a at 0 ms;"]) {
    it(`refuses to read "${text}"`, () => {
      assert.instanceOf(thrownBy(() => Kit.timeline().expect(text)), InvalidOption)
    })
  }

  it.effect("reads times in each unit, of its own names", () =>
    Effect.gen(function*() {
      const events = Kit.timeline()
      for (
        const [millis, units] of [
          [1, ["ms", "milli", "millis"]],
          [999, ["s", "second", "seconds"]],
          [59_000, ["min", "minute", "minutes"]],
          [3_540_000, ["h", "hour", "hours"]]
        ] as const
      ) {
        yield* TestClock.adjust(millis)
        yield* events.record(units[0])
        for (const unit of units) events.expect(`${units[0]} at 1 ${unit}`)
      }
    }))

  it.effect("reports the times of a name, and clears them", () =>
    Effect.gen(function*() {
      const events = yield* recorded
      assert.deepStrictEqual(events.at("a"), [0, 430, 1200])
      assert.deepStrictEqual(events.events[1], { name: "try", atMillis: 0.5 })
      assert.strictEqual(String(events), "0 ms a\n0.5 ms try\n430 ms a\n1.2 s a")
      yield* events.clear
      events.expect("no a; no try")
    }))

  it.effect("records what a policy decides, and notifies the observer in force as well", () =>
    Effect.gen(function*() {
      const events = Kit.timeline()
      const told: Array<string> = []
      const observer: RetryObserver.RetryObserver = {
        onRetry: () => void told.push("retry"),
        onStop: ({ reason }) => void told.push(reason)
      }
      const call = Kit.outcomes([Kit.transient], { afterwards: "repeat" })
      yield* call.send.pipe(
        events.attempts,
        withRetry(awsStandard),
        Effect.provide(Layer.provide(events.layer, RetryObserver.layer(observer))),
        Effect.exit,
        Kit.runToEnd
      )
      events.expect("attempts at 0 ms, 500 ms, 1.5 s; retries at 0 ms, 500 ms; max-attempts at 1.5 s")
      assert.deepStrictEqual(told, ["retry", "retry", "max-attempts"])
    }).pipe(Effect.provide([RetryQuota.layer(), Kit.fixedRandom(0.5)])))
})

import { assert, describe, it } from "@effect/vitest"
import { awsStandard, RetryQuota, withRetry } from "effect-retry"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import * as Kit from "effect-retry/testing"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Example from "../../examples/concurrency-limit.ts"

describe("examples/concurrency-limit", () => {
  it.effect("is cut by sends that time out, and lets the others fail unsent", () =>
    Effect.gen(function*() {
      const slow = Kit.outcomes([Kit.ok()], { afterwards: "repeat", latency: "1 minute" })
      const calls = yield* Effect.forEach(
        Array.from({ length: 30 }),
        () => Effect.forkChild(Effect.flip(Example.load(slow.send)), { startImmediately: true })
      )
      yield* TestClock.adjust(250)
      assert.strictEqual(slow.sends, 20)
      const refused = calls.filter((fiber) => fiber.pollUnsafe() !== undefined)
      assert.strictEqual(refused.length, 10)
      for (const fiber of refused) {
        assert.instanceOf(yield* Fiber.join(fiber), ConcurrencyLimiter.ConcurrencyLimitExceeded)
      }
      yield* TestClock.adjust(750)
      assert.strictEqual((yield* ConcurrencyLimiter.state).limit, 14)
    }).pipe(Effect.provide([Example.layer, Kit.fixedRandom(0.999)])))

  it.effect("does not repeat a write that timed out, and cuts the limit", () =>
    Effect.gen(function*() {
      const rows = Kit.outcomes([Kit.ok()], { afterwards: "repeat", latency: "2 seconds" })
      const error = yield* Kit.runToEnd(Effect.flip(Example.write(rows.send)))
      assert.strictEqual(error._tag, "TooSlow")
      assert.strictEqual(rows.sends, 1)
      assert.isBelow((yield* ConcurrencyLimiter.state).limit, 20)
    }).pipe(Effect.provide(Example.layer)))

  it.effect("Effect.timeout around a write would repeat it", () =>
    Effect.gen(function*() {
      const rows = Kit.outcomes([Kit.ok()], { afterwards: "repeat", latency: "2 seconds" })
      yield* Kit.runToEnd(Effect.exit(rows.send.pipe(Effect.timeout("1 second"), withRetry(awsStandard))))
      assert.strictEqual(rows.sends, 3)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("ends a call immediately if its hint is longer than the cool-down lets it wait", () =>
    Effect.gen(function*() {
      for (const [policy, millis] of [[Example.prompt, 0], [awsStandard, 20_000]] as const) {
        const program = Effect.gen(function*() {
          const busy = Kit.outcomes([Kit.throttledFor("30 seconds")], { afterwards: "repeat" })
          const start = yield* Clock.currentTimeMillis
          yield* Kit.runToEnd(Effect.exit(busy.send.pipe(withRetry(policy))))
          assert.strictEqual(busy.sends, 1)
          return (yield* Clock.currentTimeMillis) - start
        })
        assert.strictEqual(yield* Effect.provide(program, Layer.fresh(Example.polite)), millis)
      }
    }))

  it.effect("serves a background job after the others", () =>
    Effect.gen(function*() {
      const sent: Array<string> = []
      const send = (name: string) => Effect.andThen(Effect.sync(() => sent.push(name)), Effect.sleep(100))
      const scheduled = [
        ...Array.from({ length: 20 }, () => Example.load(send("first"))),
        Example.reindex(send("job")),
        Example.load(send("call"))
      ]
      yield* Effect.forEach(scheduled, (call) => Effect.forkChild(call, { startImmediately: true }))
      yield* TestClock.adjust(250)
      assert.deepStrictEqual(sent.slice(20), ["call", "job"])
    }).pipe(Effect.provide(Example.layer)))

  it.effect("leaves alone a server that asks for it", () =>
    Effect.gen(function*() {
      const told = Kit.outcomes([Kit.throttledFor("10 seconds")], { afterwards: "repeat" })
      const first = yield* Effect.forkChild(Effect.flip(Example.load(told.send)), { startImmediately: true })
      const second = yield* Effect.flip(Example.load(told.send))
      assert.instanceOf(second, CoolDown.CoolingDown)
      assert.strictEqual(told.sends, 1)
      yield* Fiber.interrupt(first)
    }).pipe(Effect.provide(Example.polite)))

  it.effect("holds a slot for each stream until it is read, over its retries", () =>
    Effect.gen(function*() {
      const reading = yield* Example.reading
      const { send } = Kit.outcomes([...Array.from({ length: 20 }, () => Kit.transient), Kit.ok()], {
        afterwards: "repeat"
      })
      const lines = Stream.concat(Stream.fromEffect(send), Stream.fromEffectDrain(Effect.sleep("10 seconds")))
      const streams = yield* Effect.forEach(
        Array.from({ length: 20 }),
        () => Effect.forkChild(Stream.runCollect(reading(lines)), { startImmediately: true })
      )
      yield* TestClock.adjust("2 seconds")
      const refused = yield* Effect.forkChild(Effect.flip(Stream.runCollect(reading(lines))), {
        startImmediately: true
      })
      yield* TestClock.adjust(250)
      assert.instanceOf(yield* Fiber.join(refused), ConcurrencyLimiter.ConcurrencyLimitExceeded)
      yield* TestClock.adjust("10 seconds")
      for (const stream of streams) assert.strictEqual((yield* Fiber.join(stream)).length, 1)
      const last = yield* Effect.forkChild(Stream.runCollect(reading(lines)), { startImmediately: true })
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* Fiber.join(last)).length, 1)
    }).pipe(Effect.provide([RetryQuota.layer(), Kit.fixedRandom(0.5)])))

  it.effect("has a bulkhead that refuses the eleventh", () =>
    Effect.gen(function*() {
      for (let send = 0; send < 10; send++) {
        yield* Effect.forkChild(Effect.scoped(Effect.andThen(ConcurrencyLimiter.slot, Effect.never)), {
          startImmediately: true
        })
      }
      const error = yield* Effect.flip(Effect.scoped(ConcurrencyLimiter.slot))
      assert.deepInclude(error, { reason: "full", limit: 10 })
    }).pipe(Effect.provide(Example.bulkhead)))
})

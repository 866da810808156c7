import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import { awsStandard, RetryQuota, withRetry } from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as TestClock from "effect/testing/TestClock"
import { refuses } from "../utils/refuses.ts"

/** Sends this many at the same time, and returns when and how each ended. */
const burst = <E>(send: Effect.Effect<void, E>, count: number) =>
  Effect.forEach(
    Array.from({ length: count }),
    () =>
      Effect.flatMap(Effect.exit(send), (exit) =>
        Effect.map(Clock.currentTimeMillis, (now) => [Exit.isSuccess(exit), now] as const)),
    { concurrency: "unbounded" }
  ).pipe(Kit.runToEnd)

describe("service", () => {
  it.effect("throttles what exceeds one second's worth at the same time, then admits as many as it can serve", () =>
    Effect.gen(function*() {
      const service = Kit.service({ capacity: 3 })
      assert.deepStrictEqual((yield* burst(service.send, 5)).map(([ok]) => ok), [true, true, true, false, false])
      const paced = Effect.gen(function*() {
        const ok: Array<boolean> = []
        for (let n = 0; n < 6; n++) {
          yield* Effect.sleep([333, 1, 332, 1, 332, 1][n]!)
          ok.push(Exit.isSuccess(yield* Effect.exit(service.send)))
        }
        return ok
      })
      assert.deepStrictEqual(yield* Kit.runToEnd(paced), [false, true, false, true, false, true])
      assert.deepStrictEqual([service.requests, service.accepted, service.throttled, service.failed], [11, 6, 5, 0])
      assert.deepStrictEqual([...service.requestsPerSecond], [[0, 10], [1, 1]])
    }))

  it.effect("works on a clock of today, and on one that goes back", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(Date.UTC(2026, 0, 1) + 0.1)
      for (let capacity = 1; capacity <= 100; capacity++) {
        const service = Kit.service({ capacity })
        yield* burst(service.send, capacity + 1)
        assert.deepStrictEqual([service.accepted, service.throttled], [capacity, 1])
        assert.deepStrictEqual([...service.requestsPerSecond.values()], [capacity + 1])
      }
      const service = Kit.service({ capacity: 1 })
      yield* Effect.all([service.send, TestClock.setTime(0), Effect.exit(service.send)])
      yield* TestClock.adjust("1 second")
      yield* service.send
      assert.deepStrictEqual([service.accepted, service.throttled], [2, 1])
    }))

  it.effect("law: accepts as many at the same time as its capacity, whatever its fractions add up to", () =>
    Effect.gen(function*() {
      for (let capacity = 1; capacity <= 100; capacity++) {
        const service = Kit.service({ capacity })
        yield* burst(service.send, capacity + 1)
        assert.strictEqual(service.accepted, capacity)
      }
    }))

  it.effect("lets all wait in a line", () =>
    Effect.gen(function*() {
      const service = Kit.service({ capacity: 4, overload: "slow", latency: 10 })
      assert.deepStrictEqual(yield* burst(service.send, 3), [[true, 260], [true, 510], [true, 760]])
      yield* Kit.runToEnd(Effect.sleep("1 minute"))
      assert.deepStrictEqual(yield* burst(service.send, 1), [[true, 61_020]])
    }))

  it.effect("fails from the beginning of an outage until just before its end", () =>
    Effect.gen(function*() {
      const service = Kit.service({ capacity: 100, outages: [{ from: "1 second", to: "2 seconds" }] })
      const ok: Array<boolean> = []
      for (const pause of [999, 1, 999, 1]) {
        yield* Kit.runToEnd(Effect.sleep(pause))
        ok.push(Exit.isSuccess(yield* Effect.exit(service.send)))
      }
      assert.deepStrictEqual(ok, [true, false, false, true])
      assert.deepStrictEqual([service.failed, service.accepted], [2, 2])
    }))

  it.effect("has an outcome of its own for an outage, with its latency or that of the service", () =>
    Effect.gen(function*() {
      const from = "0 seconds"
      const to = "1 second"
      const slow = Kit.service({ capacity: 1, latency: 20, outages: [{ from, to, outcome: Kit.timeout }] })
      assert.strictEqual((yield* Kit.runToEnd(Effect.flip(slow.send)))._tag, "TimedOut")
      assert.strictEqual(yield* Clock.currentTimeMillis, 20)
      const hangs = Kit.service({ capacity: 1, outages: [{ from, to, outcome: Kit.never }] })
      const exit = yield* Effect.timeoutOption(hangs.send, "1 hour").pipe(Kit.runToEnd)
      assert.strictEqual(exit._tag, "None")
    }))

  it.effect("is retried: the hint of its throttle is followed", () =>
    Effect.gen(function*() {
      const service = Kit.service({ capacity: 1, retryAfter: "1 second" })
      yield* service.send
      yield* service.send.pipe(withRetry(awsStandard), Kit.runToEnd)
      assert.deepStrictEqual([[...service.requestsPerSecond], service.throttled], [[[0, 2], [1, 1]], 1])
    }).pipe(Effect.provide([RetryQuota.layer(), Kit.fixedRandom(0)])))

  it("has the errors of its outages in its type", () => {
    const outages = [{ from: 0, to: 1, outcome: Kit.timeout }, { from: 1, to: 2 }]
    expectTypeOf(Kit.service({ capacity: 1, outages }).send)
      .toEqualTypeOf<Effect.Effect<void, Kit.Throttled | Kit.Transient | Kit.TimedOut>>()
    expectTypeOf(Kit.service({ capacity: 1 }).send).toEqualTypeOf<Effect.Effect<void, Kit.Throttled | Kit.Transient>>()
  })

  for (
    const [field, options] of [
      ["capacity", { capacity: 0 }],
      ["latency", { capacity: 1, latency: -1 }],
      ["overload", { capacity: 1, overload: "drop" as "slow" }],
      ["retryAfter", { capacity: 1, retryAfter: NaN }],
      ["from", { capacity: 1, outages: [{ from: -1, to: 5 }] }],
      ["to", { capacity: 1, outages: [{ from: 5, to: 5 }] }]
    ] as const
  ) {
    it(`refuses an impossible ${field}`, () => {
      refuses(() => Kit.service(options), { field })
    })
  }
})

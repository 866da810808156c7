import { assert, describe, it } from "@effect/vitest"
import { AdaptiveRateLimiter, AwsModes, Backoff, InvalidOption, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import { invalidOptionOf } from "../utils/call.ts"

const fieldOf = (make: () => unknown): string => {
  try {
    make()
    return "accepted"
  } catch (error) {
    return error instanceof InvalidOption ? error.field : String(error)
  }
}

describe("limits and sums", () => {
  const growing = {
    "exponential": Backoff.exponential("1 second", 2, { cap: "20 seconds" }),
    "exponential, capped after it": Backoff.exponential("1 second").pipe(RetryPolicy.capped("20 seconds")),
    "exponential by 1e300": Backoff.exponential("1 second", 1e300, { cap: "20 seconds" }),
    "fibonacci": Backoff.fibonacci("1 second", { cap: "20 seconds" }),
    "linear": Backoff.linear("1 second", { cap: "20 seconds" }),
    "decorrelated": Backoff.decorrelated("1 second", { cap: "20 seconds" })
  }
  for (const [name, policy] of Object.entries(growing)) {
    it.effect(`the backoffs before retries 1,000, 1,024, 1,025 and 1,026 are the cap: ${name}`, () =>
      Effect.gen(function*() {
        const call = Kit.outcomes([Kit.transient], { afterwards: "repeat" })
        const run = withRetry(call.send, RetryPolicy.maxAttempts(1030)(policy))
        yield* Effect.exit(Kit.runToEnd(run, { atMost: "2 days" }))
        const times = call.timeline.at("attempt")
        assert.strictEqual(times.length, 1030)
        for (const retry of [1000, 1023, 1024, 1025, 1026, 1029]) {
          assert.strictEqual(times[retry]! - times[retry - 1]!, 20_000, `retry ${retry}`)
        }
      }).pipe(Effect.provide(Kit.fixedRandom(0.999999))))
  }

  it.effect("no limit of attempts, and one of 2^53 - 1, have to be asked for, and hold", () =>
    Effect.gen(function*() {
      for (const limit of [Infinity, Number.MAX_SAFE_INTEGER]) {
        const call = Kit.outcomes([...Array.from({ length: 200 }, () => Kit.transient), Kit.ok("x")])
        const policy = Backoff.fixed("1 second").pipe(RetryPolicy.maxAttempts(limit))
        assert.strictEqual(yield* Kit.runToEnd(withRetry(call.send, policy)), "x")
        assert.strictEqual(call.sends, 201)
      }
      assert.strictEqual(fieldOf(() => RetryPolicy.maxAttempts(2 ** 53)), "maxAttempts")
      // What no caller asked for is bounded.
      const call = Kit.outcomes([Kit.transient], { afterwards: "repeat" })
      yield* Effect.exit(Kit.runToEnd(withRetry(call.send, AwsModes.standard())))
      assert.strictEqual(call.sends, 3)
    }).pipe(Effect.provide(Kit.TestQuota.layer())))

  for (const attempts of [NaN, -1, 0, 1.5, -Infinity, "3" as unknown as number, null as unknown as number]) {
    it(`maxAttempts ${JSON.stringify(attempts)} (${String(attempts)}) is refused, naming the field and the value`, () => {
      for (
        const make of [
          () => RetryPolicy.maxAttempts(attempts),
          () => AwsModes.standard({ maxAttempts: attempts }),
          () => AwsModes.standard2026({ maxAttempts: attempts })
        ]
      ) assert.strictEqual(fieldOf(make), "maxAttempts")
      try {
        RetryPolicy.maxAttempts(attempts)
      } catch (error) {
        assert.include((error as InvalidOption).message, typeof attempts === "string" ? `"3"` : String(attempts))
      }
    })
  }

  for (const value of [NaN, 0, -1, Infinity, -Infinity, "1" as unknown as number]) {
    const fields = ["beta", "minFillRate", "minCapacity", "scaleConstant", "smoothing"] as const
    it(`${JSON.stringify(value)} (${String(value)}) is no option of a limiter, nor the capacity of a quota`, () => {
      for (const field of fields) assert.strictEqual(fieldOf(() => AdaptiveRateLimiter.make({ [field]: value })), field)
      assert.strictEqual(fieldOf(() => RetryQuota.make({ capacity: value })), "capacity")
    })
  }
  it("nor are shares of 1 and more, and rates that are none", () => {
    for (const beta of [1, 1.5]) assert.strictEqual(fieldOf(() => AdaptiveRateLimiter.make({ beta })), "beta")
    assert.strictEqual(fieldOf(() => AdaptiveRateLimiter.make({ smoothing: 1.01 })), "smoothing")
    assert.strictEqual(fieldOf(() => AdaptiveRateLimiter.make({ minCapacity: 0.9 })), "minCapacity")
    for (const refillPerSecond of [NaN, -1, Infinity]) {
      assert.strictEqual(fieldOf(() => RetryQuota.make({ refillPerSecond })), "refillPerSecond")
    }
  })

  it.effect("ten deposits of 0.1 pay for 1, and a share of 0.6 pays for 60 in 100", () =>
    Effect.gen(function*() {
      const tenths = yield* RetryQuota.make({ capacity: 5, initial: 0 })
      for (let n = 0; n < 10; n++) yield* tenths.deposit(0.1)
      assert.isTrue(Option.isSome(yield* tenths.reserve(1)))
      assert.closeTo(yield* tenths.balance, 0, 1e-9)
    }))

  // Finagle's own property: 10,000 deposits, each followed by a withdrawal, while time stands still.
  for (const share of [0.0001, 0.001, 0.01, 0.1, 0.25, 0.5, 0.6, 0.75, 0.99, 0.999, 0.9999]) {
    it.effect(`of 10,000 calls that deposit ${share} each, ${Math.round(10_000 * share)} ± 1 can retry`, () =>
      Effect.gen(function*() {
        const quota = yield* RetryQuota.make({ capacity: 1000, initial: 0 })
        let retries = 0
        for (let n = 0; n < 10_000; n++) {
          yield* quota.deposit(share)
          if (Option.isSome(yield* quota.reserve(1))) retries++
        }
        assert.closeTo(retries, 10_000 * share, 1)
      }))
  }

  it.effect("a cost above the capacity is refused immediately, and no caller waits for it", () =>
    Effect.gen(function*() {
      for (const onExceeded of ["stop", "wait"] as const) {
        const quota = yield* RetryQuota.make({ capacity: 4, refillPerSecond: 1, onExceeded })
        assert.strictEqual((yield* invalidOptionOf(quota.reserve(5))).field, "cost")
        const stops: Array<string> = []
        const call = Kit.outcomes([Kit.transient])
        const policy = Backoff.fixed(1).pipe(RetryPolicy.quotaGated({ cost: 5 }))
        const events = Kit.timeline()
        yield* withRetry(call.send, policy).pipe(
          Effect.provideService(RetryQuota.RetryQuota, quota),
          Effect.provide(events.layer),
          Effect.exit
        )
        events.expect("quota-exhausted at 0 ms; no retries")
        assert.deepStrictEqual(stops, [])
        assert.strictEqual(yield* quota.balance, 4)
      }
      yield* TestClock.adjust(0)
    }))
})

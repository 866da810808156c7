import { assert, describe, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  awsAdaptive,
  awsStandard,
  InvalidOption,
  ResourceLimiters,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { Throttled, Transient } from "../utils/call.ts"

const stateOf = (key: string) =>
  Effect.all({ balance: RetryQuota.balance, limiter: AdaptiveRateLimiter.snapshot }).pipe(
    Effect.provide(ResourceLimiters.get(key))
  )

/** Keeps a resource in use. */
const using = (key: string) => Effect.forkScoped(Effect.provide(Effect.never, ResourceLimiters.get(key)))

describe("ResourceLimiters", () => {
  it.effect("an outage of one resource leaves balance and rate of the others untouched", () =>
    Effect.gen(function*() {
      const fresh = yield* stateOf("dynamodb:customers")
      let healthyCalls = 0
      const down = Effect.suspend(() => Effect.fail(healthyCalls % 2 === 0 ? new Throttled({}) : new Transient()))
      const outage = Effect.forEach(
        Array.from({ length: 200 }),
        () => Effect.exit(Effect.provide(withRetry(down, awsAdaptive), ResourceLimiters.get("dynamodb:orders"))),
        { concurrency: "unbounded" }
      )
      const fiber = yield* Effect.forkChild(outage)
      yield* TestClock.adjust("1 minute")
      const before = yield* Clock.currentTimeMillis
      for (let i = 0; i < 20; i++) {
        const healthy = Effect.sync(() => ++healthyCalls)
        yield* Effect.provide(withRetry(healthy, awsAdaptive), ResourceLimiters.get("dynamodb:customers"))
      }
      assert.strictEqual((yield* Clock.currentTimeMillis) - before, 0)
      const orders = yield* stateOf("dynamodb:orders")
      assert.isBelow(orders.balance, 500)
      assert.isTrue(orders.limiter.enabled)
      const customers = yield* stateOf("dynamodb:customers")
      assert.strictEqual(customers.balance, fresh.balance)
      assert.deepStrictEqual(
        [customers.limiter.enabled, customers.limiter.fillRate, customers.limiter.waiting],
        [false, fresh.limiter.fillRate, 0]
      )
      yield* Fiber.interrupt(fiber)
    }).pipe(Effect.provide(ResourceLimiters.layer())))

  it.effect("gives the same key the same quota, and other keys others", () =>
    Effect.gen(function*() {
      const take = (key: string) => Effect.provide(RetryQuota.reserve(100), ResourceLimiters.get(key))
      yield* take("a")
      yield* take("a")
      yield* take("")
      assert.deepStrictEqual(
        yield* Effect.forEach(["a", "b", ""], (key) => Effect.map(stateOf(key), (state) => state.balance)),
        [300, 500, 400]
      )
    }).pipe(Effect.provide(ResourceLimiters.layer())))

  it.effect("forgets a resource that was idle for its time, and keeps one that is in use", () =>
    Effect.scoped(Effect.gen(function*() {
      for (const key of ["idle", "used"]) {
        yield* Effect.provide(RetryQuota.reserve(100), ResourceLimiters.get(key))
      }
      yield* using("used")
      yield* TestClock.adjust("59 seconds")
      assert.strictEqual((yield* stateOf("idle")).balance, 400)
      yield* TestClock.adjust("60 seconds")
      assert.strictEqual((yield* stateOf("idle")).balance, 500)
      assert.strictEqual((yield* stateOf("used")).balance, 400)
    })).pipe(Effect.provide(ResourceLimiters.layer({ idleTimeToLive: "1 minute" }))))

  it.effect("quota gives the quota without the limiter, the same as get gives", () =>
    Effect.gen(function*() {
      yield* Effect.provide(AdaptiveRateLimiter.update(true), ResourceLimiters.get("a"))
      const call = withRetry(Effect.succeed("at once"), awsStandard)
      for (let i = 0; i < 10; i++) yield* Effect.provide(call, ResourceLimiters.quota("a"))
      assert.strictEqual(yield* Clock.currentTimeMillis, 0)
      yield* Effect.provide(RetryQuota.reserve(100), ResourceLimiters.quota("a"))
      assert.strictEqual((yield* stateOf("a")).balance, 400)
    }).pipe(Effect.provide(ResourceLimiters.layer())))

  it.effect("makes quotas and limiters by key", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* stateOf("small")).balance, 10)
      assert.strictEqual((yield* stateOf("large")).balance, 1000)
    }).pipe(Effect.provide(ResourceLimiters.layer({
      quota: (key) => ({ capacity: key === "small" ? 10 : 1000 }),
      limiter: { beta: 0.5 }
    }))))

  it.effect("works with Effect.retry's driver as with withRetry", () =>
    Effect.gen(function*() {
      const call = Effect.provide(withRetry(Effect.fail(new Transient()), awsStandard), ResourceLimiters.get("a"))
      const fiber = yield* Effect.forkChild(Effect.exit(call))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)
      assert.strictEqual((yield* stateOf("a")).balance, 490)
    }).pipe(Effect.provide(ResourceLimiters.layer())))

  describe("refuses", () => {
    const bad: ReadonlyArray<readonly [string, ResourceLimiters.Options]> = [
      ["idleTimeToLive", { idleTimeToLive: 0 }],
      ["idleTimeToLive", { idleTimeToLive: NaN }],
      ["capacity", { quota: { capacity: 0 } }],
      ["beta", { limiter: { beta: 2 } }]
    ]
    for (const [field, options] of bad) {
      it(field, () => {
        try {
          ResourceLimiters.layer(options)
          assert.fail("made it")
        } catch (error) {
          assert.instanceOf(error, InvalidOption)
          assert.strictEqual(error.field, field)
        }
      })
    }
  })
})

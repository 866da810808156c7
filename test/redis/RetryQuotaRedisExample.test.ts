import { assert, describe, it } from "@effect/vitest"
import { RetryQuota } from "effect-retry"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as TestClock from "effect/testing/TestClock"
import { configured, layer, placeOrder, status } from "../../examples/fleet.ts"
import * as FleetDocument from "../../examples/fleetDocument.ts"
import { scripted, Transient } from "../utils/call.ts"
import { FakeRedis } from "../utils/fakeRedis.ts"

describe("the example of a fleet", () => {
  it.effect("shares the tokens between processes, and decides alone when Redis does not answer", () =>
    Effect.gen(function*() {
      const redis = new FakeRedis()
      const process = Layer.provide(layer, Layer.succeed(Redis.Redis, redis.service))
      const retried = Effect.gen(function*() {
        const call = scripted([new Transient()])
        const fiber = yield* Effect.forkChild(placeOrder(Effect.andThen(call.effect, Effect.fail(new Transient()))))
        yield* TestClock.adjust("1 minute")
        assert.isDefined(fiber.pollUnsafe())
        return yield* status
      })
      assert.deepStrictEqual(yield* Effect.provide(retried, Layer.fresh(process)), { tokens: 490, isAlone: false })
      assert.deepStrictEqual(yield* Effect.provide(retried, Layer.fresh(process)), { tokens: 480, isAlone: false })
      redis.mood = "refusing"
      assert.deepStrictEqual(yield* Effect.provide(retried, Layer.fresh(process)), { tokens: 10, isAlone: true })
    }))

  it.effect("takes its settings from the environment", () =>
    Effect.gen(function*() {
      const redis = new FakeRedis()
      redis.latencyMillis = 25
      const env = { RETRY_QUOTA_CAPACITY: "2000", RETRY_QUOTA_TIMEOUT: "20 millis" }
      const balances = yield* Effect.forkChild(
        Effect.all([RetryQuota.balance, RetryQuota.balance]).pipe(
          Effect.provide(configured),
          Effect.provideService(Redis.Redis, redis.service),
          Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(env))
        )
      )
      for (let passed = 0; passed < 60; passed += 10) yield* TestClock.adjust(10)
      assert.deepStrictEqual(yield* Fiber.join(balances), [20, 20])
      assert.strictEqual(redis.states.get("retry-quota:orders")?.tokens, 2000)
    }))

  it.effect("has a document that is checked without a Redis", () =>
    Effect.gen(function*() {
      const nowhere = "redis://127.0.0.1:1"
      yield* FleetDocument.checked(FleetDocument.document, nowhere)
      const { orders } = FleetDocument.document.resources
      const misspelled = { resources: { orders: { ...orders, quota: { capacity: 500, redis: { fallbak: {} } } } } }
      const error = yield* Effect.flip(FleetDocument.checked(misspelled, nowhere))
      assert.include(String(error), "resources.orders.quota.redis")
    }))
})

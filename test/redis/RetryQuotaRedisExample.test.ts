import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as TestClock from "effect/testing/TestClock"
import { layer, placeOrder, status } from "../../examples/fleet.ts"
import { scripted, Transient } from "../utils/call.ts"
import { FakeRedis } from "../utils/fakeRedis.ts"

describe("the example of a fleet", () => {
  it.effect("shares the tokens between processes, and goes on alone when Redis does not answer", () =>
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
})

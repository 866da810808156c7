import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as TestClock from "effect/testing/TestClock"
import * as fs from "node:fs"
import * as path from "node:path"
import { layer, placeOrder, status } from "../../examples/fleet.ts"
import { scripted, Transient } from "../utils/call.ts"
import { FakeRedis } from "../utils/fakeRedis.ts"

const example = fs.readFileSync(path.join(import.meta.dirname, "../../examples/fleet.ts"), "utf8")
const page = fs.readFileSync(path.join(import.meta.dirname, "../../docs/fleet.md"), "utf8")

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

  it("is where the code of its page comes from", () => {
    const blocks = [...page.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code!)
    assert.isNotEmpty(blocks)
    for (const block of blocks) {
      for (const piece of block.trim().split(/\n\n+/)) assert.include(example, piece)
    }
  })
})

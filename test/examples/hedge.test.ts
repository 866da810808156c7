import { assert, describe, it } from "@effect/vitest"
import { Hedge } from "effect-retry"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as TestClock from "effect/testing/TestClock"
import * as Example from "../../examples/hedge.ts"

describe("examples/hedge", () => {
  it.effect("the hundredth read is late, and its hedge is not", () =>
    Effect.gen(function*() {
      let sends = 0
      const send = Effect.suspend(() => Effect.delay(Effect.succeed(++sends), sends === 100 ? 2000 : 20))
      for (let call = 1; call < 100; call++) {
        const fiber = yield* Effect.forkChild(Example.read(send), { startImmediately: true })
        yield* TestClock.adjust(30)
        assert.deepStrictEqual(fiber.pollUnsafe(), Exit.succeed(call))
      }
      const late = yield* Effect.forkChild(Example.read(send), { startImmediately: true })
      yield* TestClock.adjust(41)
      assert.deepStrictEqual(late.pollUnsafe(), Exit.succeed(101))
      assert.strictEqual((yield* Hedge.state).balance, 1)
    }).pipe(Effect.provide(Example.layer)))

  it.effect("two hedges wait for what pays for them", () =>
    Effect.gen(function*() {
      let sends = 0
      const send = Effect.suspend(() => Effect.delay(Effect.succeed(++sends), 500))
      const fiber = yield* Effect.forkChild(Example.readTwice(send), { startImmediately: true })
      yield* TestClock.adjust(500)
      assert.deepStrictEqual(fiber.pollUnsafe(), Exit.succeed(1))
    }).pipe(Effect.provide(Example.layer)))
})

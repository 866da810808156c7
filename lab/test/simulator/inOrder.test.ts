import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { inOrder } from "../../src/simulator/inOrder.ts"

describe("inOrder", () => {
  const tables: ReadonlyArray<
    readonly [what: string, concurrency: number, seconds: ReadonlyArray<number>, ends: number]
  > = [
    ["one after the other", 1, [3, 2, 1], 6],
    ["at the same time", 3, [3, 2, 1], 3],
    ["some at the same time", 2, [3, 2, 1], 3]
  ]
  for (const [what, concurrency, seconds, ends] of tables) {
    it.effect(`gives what each value gives, in their order: ${what}`, () =>
      Effect.gen(function*() {
        const fiber = yield* Effect.forkChild(
          inOrder(seconds, (one) => Effect.as(Effect.sleep(`${one} seconds`), one), concurrency)
        )
        yield* TestClock.adjust(ends * 1000 - 1)
        assert.isUndefined(fiber.pollUnsafe())
        yield* TestClock.adjust(1)
        assert.deepStrictEqual(yield* Fiber.join(fiber), seconds)
      }))
  }

  it.effect("fails with the first in order, not in time, and begins none after a failure", () =>
    Effect.gen(function*() {
      const begun: Array<number> = []
      const fails = (one: number) =>
        Effect.suspend(() => {
          begun.push(one)
          return Effect.andThen(Effect.sleep(`${one} seconds`), one === 4 ? Effect.void : Effect.fail(one))
        })
      const fiber = yield* Effect.forkChild(Effect.flip(inOrder([4, 3, 1, 2], fails, 3)))
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* Fiber.join(fiber), 3)
      assert.deepStrictEqual(begun, [4, 3, 1])
    }))
})

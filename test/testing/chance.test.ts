import { assert, describe, it } from "@effect/vitest"
import { InvalidOption } from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"

const three = Effect.all([Random.next, Random.next, Random.next])

describe("fixedRandom", () => {
  it.effect("always gives the same", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* Effect.provide(three, Kit.fixedRandom(0.5)), [0.5, 0.5, 0.5])
    }))

  it.effect("gives the numbers in turn, then the last, and starts over with the layer", () =>
    Effect.gen(function*() {
      const layer = Kit.fixedRandom(0, 0.9)
      assert.deepStrictEqual(yield* Effect.provide(three, layer), [0, 0.9, 0.9])
      assert.deepStrictEqual(yield* Effect.provide(three, layer, { local: true }), [0, 0.9, 0.9])
    }))

  it.effect("gives integers as far along as its numbers", () =>
    Effect.gen(function*() {
      for (const [value, expected] of [[0, 0], [0.5, 5], [0.999, 10]] as const) {
        const drawn = yield* Effect.provide(Random.nextIntBetween(0, 10), Kit.fixedRandom(value))
        assert.strictEqual(drawn, expected)
        assert.isTrue(Number.isSafeInteger(yield* Effect.provide(Random.nextInt, Kit.fixedRandom(value))))
      }
    }))

  for (const value of [1, -0.1, NaN, 2]) {
    it(`refuses ${value}`, () => {
      assert.throws(() => Kit.fixedRandom(value), InvalidOption, /^fixedRandom: values must be a number /)
    })
  }
})

describe("seededRandom", () => {
  it.effect("gives the numbers of its seed, another seed others", () =>
    Effect.gen(function*() {
      const [a, b, c] = yield* Effect.all([
        Effect.provide(three, Kit.seededRandom("a")),
        Effect.provide(three, Kit.seededRandom("a")),
        Effect.provide(three, Kit.seededRandom("b"))
      ])
      assert.deepStrictEqual(a, b)
      assert.notDeepEqual(a, c)
      assert.strictEqual(new Set(a).size, 3)
      assert.deepStrictEqual(a, yield* Random.withSeed(three, "a"))
    }))
})

import { assert, describe, it } from "@effect/vitest"
import * as Delays from "../../src/engine/delay.ts"

describe("delay arithmetic", () => {
  for (
    const [delay, expected] of [[0, 0], [0.2, 1], [1, 1], [49.5, 50], [50.00000000000001, 50], [
      1e15 + 0.5,
      1e15 + 1
    ]] as const
  ) {
    it(`rounds ${delay} ms to ${expected} whole ones: up, except for float noise`, () =>
      assert.strictEqual(Delays.wholeMillis(delay), expected))
  }

  for (const retry of [54, 1024, 1025, 1_000_000]) {
    it(`saturates at retry ${retry}, also from a base of 0`, () => {
      assert.strictEqual(Delays.exponential(1000, 2)(retry), Number.MAX_SAFE_INTEGER)
      assert.strictEqual(Delays.exponential(0, 2)(retry), 0)
      assert.strictEqual(Delays.fibonacci(0)(retry), 0)
      assert.strictEqual(Delays.linear(Number.MAX_SAFE_INTEGER, 1000)(retry), Number.MAX_SAFE_INTEGER)
    })
  }

  it("linear gives the base, then the increment more each time", () =>
    assert.deepStrictEqual([1, 2, 3].map(Delays.linear(10, 3)), [10, 13, 16]))

  it("exponential gives the base, then the factor times as much each time", () =>
    assert.deepStrictEqual([1, 2, 3].map(Delays.exponential(10, 3)), [10, 30, 90]))

  it("fibonacci gives 1, 1, 2, 3, 5, 8 times the base, then saturates", () => {
    assert.deepStrictEqual([1, 2, 3, 4, 5, 6].map((retry) => Delays.fibonacci(10)(retry)), [10, 10, 20, 30, 50, 80])
    assert.strictEqual(Delays.fibonacci(1000)(1_000_000), Number.MAX_SAFE_INTEGER)
  })

  it("fibonacci of a base of 0 counts nothing, however late the retry", () =>
    assert.strictEqual(Delays.fibonacci(0)(Number.MAX_SAFE_INTEGER), 0))

  it("decorrelated jitter saturates", () => {
    const most = Number.MAX_SAFE_INTEGER
    const late: Delays.Failing = {
      error: undefined,
      info: undefined,
      attempt: 2,
      step: 2,
      previousMillis: most,
      random: { nextDoubleUnsafe: () => 0.9, nextIntUnsafe: () => 0 },
      restart: () => undefined
    }
    assert.strictEqual(Delays.decorrelated(1, Number.MAX_VALUE, false)(late), most)
    assert.strictEqual(Delays.decorrelated(1, Number.MAX_VALUE, true)(late), most)
  })
})

import { assert, describe, it } from "@effect/vitest"
import { Chance } from "../../src/simulator/chance.ts"
import { cosOfTurn, exp, log, logOfShare, power } from "../../src/simulator/portable.ts"

/** How far two numbers are apart, as a share of the second. */
const off = (found: number, expected: number) => Math.abs(found / expected - 1)

const shares = (() => {
  const chance = new Chance(1, "shares")
  return Array.from({ length: 1000 }, () => chance.below(2 ** 32) + 1)
})()

describe("portable functions", () => {
  it("know their fixed points, to the last digit", () => {
    assert.deepStrictEqual([1, 2, 4, 0.5].map(log), [0, Math.LN2, 2 * Math.LN2, -Math.LN2])
    assert.deepStrictEqual([1, 2 ** 31, 2 ** 32].map(logOfShare), [-32 * Math.LN2, -Math.LN2, 0])
    assert.deepStrictEqual([0, -0, 1e9, -1e9].map(exp), [1, 1, Infinity, 0])
    assert.deepStrictEqual([0, 0.25, 0.5, 0.75, 1].map((turn) => cosOfTurn(turn) + 0), [1, 0, -1, 0, 1])
    assert.deepStrictEqual([power(3, 5), power(2, 1023), power(2, 1024), power(0.5, Infinity), power(7, 0)], [
      243,
      2 ** 1023,
      Infinity,
      0,
      1
    ])
  })

  it("are those of mathematics", () => {
    for (const share of shares) {
      const x = share / 2 ** 32
      assert.isBelow(off(logOfShare(share) - 1, Math.log(x) - 1), 4e-16)
      assert.isBelow(off(log(x * 1e9), Math.log(x * 1e9)), 4e-16)
      assert.strictEqual(logOfShare(share), log(x))
      assert.isBelow(off(exp(x * 80 - 40), Math.exp(x * 80 - 40)), 1e-15)
      assert.isBelow(Math.abs(cosOfTurn(x) - Math.cos(2 * Math.PI * x)), 2e-15)
      assert.isBelow(off(power(x, 37), x ** 37), 1e-14)
    }
  })
})

import { assert, describe, it } from "@effect/vitest"
import { cubeRoot, power } from "../../src/internal/math/portableMath.ts"

const numbers = Array.from({ length: 1000 }, (_, n) => 10 ** (n / 50 - 10))

describe("portable functions", () => {
  it("have cube roots of cubes, to the last digit", () => {
    for (const root of [0, 1, 2, 3, 10, 0.5, 1000]) assert.strictEqual(cubeRoot(root ** 3), root)
  })

  it("agree with mathematics", () => {
    for (const x of numbers) {
      assert.isBelow(Math.abs(cubeRoot(x) / Math.cbrt(x) - 1), 4e-16)
      assert.isBelow(Math.abs(power(x, 13) / x ** 13 - 1), 2e-14)
    }
  })

  it("have powers of 2 that are exact, and Infinity beyond", () => {
    for (let n = 0; n < 1024; n++) assert.strictEqual(power(2, n), 2 ** n)
    assert.deepStrictEqual([power(2, 1024), power(1.5, 1e6), power(1, 1e15), power(0, 0), power(0, 3)], [
      Infinity,
      Infinity,
      1,
      1,
      0
    ])
  })

  it("have the cube roots of the algorithm of FreeBSD, to the last digit", () => {
    const published = [
      [14, 2.41014226417523],
      [20, 2.7144176165949063],
      [30, 3.1072325059538586],
      [38, 3.361975406798963],
      [62, 3.9578916096804058],
      [71, 4.140817749422854]
    ] as const
    for (const [x, root] of published) assert.strictEqual(cubeRoot(x), root)
    // V8 has the same algorithm.
    for (const x of numbers) assert.strictEqual(cubeRoot(x), Math.cbrt(x))
  })
})

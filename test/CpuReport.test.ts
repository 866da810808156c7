/** The table of CPU seconds after the tests, and the limit that `CPU_LIMIT` sets. */
import { assert, it } from "@effect/vitest"
import { allowanceOf, limitOf, rowsOf } from "./utils/cpuReport.ts"

it("lists the ten dearest files, and parts that add up to the whole command", () => {
  const files = Array.from({ length: 11 }, (_, index) => [`${index}`, index] as const)
  const rows = rowsOf({ files, children: 6, whole: 100 })
  assert.deepStrictEqual(rows.slice(0, 10), files.slice(1).reverse())
  assert.deepStrictEqual(rows.slice(10), [
    ["the tests' threads", 55],
    ["children", 6],
    ["the rest: compiler, collector, main thread", 39],
    ["the whole command", 100]
  ])
})

it("a limit is a positive number, or there is none", () => {
  assert.strictEqual(limitOf("0.5"), 0.5)
  assert.strictEqual(limitOf(undefined), Infinity)
  for (const value of ["", " ", "1s", "0", "-1", "NaN"]) {
    assert.throws(() => limitOf(value), `CPU_LIMIT must be a positive number of seconds, got "${value}"`)
  }
})

it("a slow machine may take as much more as it is slower, a fast one not less", () => {
  assert.strictEqual(allowanceOf(200, 1.5), 300)
  assert.strictEqual(allowanceOf(200, 0.5), 200)
  assert.strictEqual(allowanceOf(Infinity, 1.5), Infinity)
})

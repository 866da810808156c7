import { assert, describe, it } from "@effect/vitest"
import { transformSync } from "esbuild"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Chance } from "../../src/simulator/chance.ts"
import { cosOfTurn, decadeOf, exp, halvings, log, logOfShare, power } from "../../src/simulator/portable.ts"

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

  it("find the power of 10 below a number, to the last digit", () => {
    for (
      const [x, decade] of [[1000, 1000], [999.9999999999999, 100], [1, 1], [0.001, 0.001], [0.5, 0.1], [
        2.3e-308,
        1e-308
      ]]
    ) {
      assert.strictEqual(decadeOf(x!), decade)
    }
  })

  it("count the halvings down to 1", () => {
    for (const [x, count] of [[0, 0], [1, 0], [1.0000000000000002, 1], [2, 1], [2.0000000000000004, 2], [1024, 10]]) {
      assert.strictEqual(halvings(x!), count)
    }
  })

  it("agree with mathematics", () => {
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

/** What every engine computes to the last digit. For Math.sqrt no standard promises that, but the processors do. */
const exact = "abs ceil clz32 floor imul max min round sqrt trunc LN2 PI".split(" ")

/** What may differ between engines in a source, without its types and comments. */
const inexactIn = (source: string): ReadonlyArray<string> =>
  (transformSync(source, { loader: "ts", target: "esnext", minifyWhitespace: true }).code.match(
    /(?<=[\w$)\]])\*\*|\bMath\b(?:\.\w+)?/g
  ) ?? [])
    .filter((found) => !exact.includes(found.slice("Math.".length)))

describe("the sources of what prints figures", () => {
  it("compute nothing in which engines differ, but for a logarithm that is corrected", () => {
    const folder = fileURLToPath(new URL("../../src", import.meta.url))
    const found = ["simulator", "explain", "fit", "cli"].flatMap((room) =>
      readdirSync(join(folder, room), { recursive: true, encoding: "utf8" })
        .filter((file) => file.endsWith(".ts"))
        .flatMap((file) =>
          inexactIn(readFileSync(join(folder, room, file), "utf8")).map((what) => `${room}/${file}: ${what}`)
        )
    )
    assert.deepStrictEqual(found, ["simulator/histogram.ts: Math.log2"])
  })

  it("are distinguished from what only looks like them", () => {
    assert.deepStrictEqual(
      inexactIn("/** Math.log */ const x = 2 ** y // **\n`**${x}**`\nMath.floor(Math.cbrt(Math.PI))"),
      [
        "**",
        "Math.cbrt"
      ]
    )
    assert.deepStrictEqual(inexactIn("const { log } = Math"), ["Math"])
  })
})

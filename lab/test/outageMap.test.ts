import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { budget, firstOf } from "../../test/utils/budget.ts"
import { drawn, file, plans, read } from "../scripts/map.ts"
import * as Simulator from "../src/Simulator.ts"
import { withValue } from "../src/simulator/paths.ts"

describe("the map on docs/overload.md", () => {
  it.effect("is drawn from the verdicts: npx tsx lab/scripts/map.ts --draw", () =>
    Effect.map(drawn, (picture) => {
      assert.isTrue(fs.readFileSync(new URL(`../../${file}`, import.meta.url), "utf8") === picture)
      assert.include(picture, "prefers-color-scheme:dark")
    }))

  it("is monotone: more load or a longer outage is no better", () => {
    const rank = { recovers: 0, limps: 1, collapses: 2 }
    for (const { label, rows } of read()) {
      rows.forEach((row, n) =>
        row.forEach((verdict, m) => {
          const [less, shorter] = [row[m - 1] ?? verdict, rows[n - 1]?.[m] ?? verdict]
          assert.isAtLeast(rank[verdict], Math.max(rank[less], rank[shorter]), `${label}, row ${n}, column ${m}`)
        })
      )
    }
  })

  it("has the loads up to which, by the page, each policy recovers", () => {
    const page = fs.readFileSync(new URL("../../docs/overload.md", import.meta.url), "utf8")
    const [once, standard, limited] = read().map(({ rows, x }) =>
      x.values.filter((_, n) => rows.every((row) => row[n] === "recovers")).at(-1)
    )
    assert.include(
      page,
      `Retrying once it does up to ${once} calls per second, with the AWS standard mode up to ${standard}, with a concurrency limit at every load shown.`
    )
    assert.strictEqual(limited, read()[2]!.x.values.at(-1))
  })

  // Cells of all kinds, the first inside what a verdict before the end of the run would get wrong. A change of the simulator that
  // moves an edge past one wants the command again.
  const cells = [
    ["awsStandard", 210, 3000, "recovers"],
    ["awsStandard", 285, 9000, "limps"],
    ["retry once", 90, 9000, "recovers"],
    ["retry once", 240, 5000, "collapses"],
    ["limited", 240, 9000, "recovers"]
  ] as const
  for (const [label, rate, length, expected] of firstOf(cells, 2)) {
    it.live(`${label} ${expected} at ${rate} calls per second after ${length} ms, in whole runs`, () =>
      Effect.gen(function*() {
        const map = read().find((map) => map.label === label)!
        const [x, y] = [map.x.values.indexOf(rate), map.y.values.indexOf(length)]
        assert.strictEqual(map.rows[y]?.[x], expected)
        const { scenario } = (yield* plans).find((plan) => plan.label === label)!
        const high = yield* Effect.flatMap(withValue(scenario, map.y.path, length), Simulator.decode)
        const one = yield* Effect.flatMap(withValue(high, map.x.path, rate), Simulator.decode)
        // In theory never: not in ten times the time either, or twice in the small budget.
        const whole = expected === "collapses"
          ? yield* Simulator.decode({ ...one, duration: `${budget(2000, 400)} seconds` })
          : one
        const { recovery } = Simulator.summarize([yield* Simulator.run(whole)])
        assert.strictEqual(recovery.runs, expected === "recovers" ? 1 : 0)
      }))
  }
})

import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { drawn, file, plans, read } from "../../scripts/map.ts"
import * as Simulator from "../src/Simulator.ts"
import { withValue } from "../src/simulator/paths.ts"

describe("the map in the README", () => {
  it.effect("is drawn from the verdicts: npx tsx scripts/map.ts --draw", () =>
    Effect.map(drawn, (picture) => {
      assert.isTrue(fs.readFileSync(new URL(`../../${file}`, import.meta.url), "utf8") === picture)
      assert.include(picture, "prefers-color-scheme:dark")
    }))

  // Cells well inside an area: a change of the simulator that moves an edge past one wants the command again.
  const cells = [
    ["retry once", 90, 9000, "recovers"],
    ["retry once", 240, 5000, "collapses"],
    ["awsStandard", 120, 9000, "recovers"],
    ["awsStandard", 210, 3000, "collapses"],
    ["limited", 240, 9000, "recovers"]
  ] as const
  for (const [label, rate, length, expected] of cells) {
    it.live(
      `${label} ${expected} at ${rate} calls per second after ${length} ms, as a run does`,
      () =>
        Effect.gen(function*() {
          const map = read().find((map) => map.label === label)!
          const [x, y] = [map.x.values.indexOf(rate), map.y.values.indexOf(length)]
          assert.strictEqual(map.rows[y]?.[x], expected)
          const { scenario } = (yield* plans).find((plan) => plan.label === label)!
          const high = yield* Effect.flatMap(withValue(scenario, map.y.path, length), Simulator.decode)
          const one = yield* Effect.flatMap(withValue(high, map.x.path, rate), Simulator.decode)
          assert.strictEqual(yield* Simulator.verdict(one, { runs: 1 }), expected)
        }),
      60_000
    )
  }
})

import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { firstOf } from "../../test/utils/budget.ts"
import { drawn, mechanisms, outcome, read, settings, sizes } from "../scripts/overload.ts"

const root = new URL("../../", import.meta.url)
const figures = read()

describe("the page that compares limits", () => {
  for (const [file, text] of Object.entries(drawn())) {
    it(`${file} is drawn from the figures: npx tsx lab/scripts/overload.ts --draw`, () => {
      assert.isTrue(fs.readFileSync(new URL(file, root), "utf8") === text)
    })
  }

  it("has pictures with a title and a description, for light and dark", () => {
    for (const [file, text] of Object.entries(drawn()).filter(([file]) => file.endsWith(".svg"))) {
      assert.match(text, /^<svg [^>]*role="img"[^>]*><title>[^<]+<\/title><desc>[^<]+<\/desc>/, file)
      assert.include(text, "prefers-color-scheme:dark", file)
    }
  })

  it("has figures of every mechanism in every scenario", () => {
    assert.deepStrictEqual(Object.keys(figures), Object.keys(settings))
    for (const [scenario, rows] of Object.entries(figures)) {
      assert.deepStrictEqual(Object.keys(rows), Object.keys(mechanisms), scenario)
      for (const [mechanism, cells] of Object.entries(rows)) {
        const of = sizes.map(({ processes }) => cells[processes]?.served.length ?? 0)
        assert.isTrue(of.every((seeds) => seeds >= 3), `${scenario}, ${mechanism}: ${of.join(" ")} seeds`)
      }
    }
  })
})

describe("the figures of the page are those of runs", () => {
  // Runs that are cheap. A change of the simulator that moves a figure by more than random variation wants the command again.
  for (
    const [scenario, mechanism, processes] of firstOf(
      [
        ["outage", "limit", 1],
        ["outage", "Gradient2", 10],
        ["brownout", "Vegas", 1],
        ["brownout", "quota", 10],
        ["cool-down-herd", "throttle", 10],
        ["two-fleets", "AIMD", 1],
        ["thin-fleet", "limit", 10],
        ["near-the-timeout", "Vegas", 10]
      ] as const,
      2
    )
  ) {
    it.live(`${scenario}, ${mechanism}, ${processes}`, () =>
      Effect.gen(function*() {
        const known = figures[scenario]![mechanism]![processes]!.served
        const { served } = yield* outcome(scenario, mechanism, processes, 1)
        assert.isAtLeast(served, Math.min(...known) - 1)
        assert.isAtMost(served, Math.max(...known) + 1)
      }))
  }
})

import { assert, describe, it } from "@effect/vitest"
import { budget } from "../utils/budget.ts"
import { type Run, simulate } from "./utils/simulation.ts"

// SEED=123 npx vitest run test/reliability/seeded.test.ts replays one; `npm run seeds` runs 10,000.
const given = process.env["SEED"]
const seeds = given === undefined ? Array.from({ length: budget(200, 40) }, (_, n) => n + 1) : [Number(given)]

describe("a simulation of the engine with a faulty service", () => {
  let played: ReadonlyArray<Run> | undefined
  /** The runs of all seeds, each played once. */
  const runs = () => played ??= seeds.map((seed) => simulate(seed))

  it(`keeps its promises over ${seeds.length} seeds`, () => {
    assert.strictEqual(runs().length, seeds.length)
  })

  it("does the same again for the same seed, and something else for another", () => {
    for (const { hash, seed } of runs().filter((_, index) => index % budget(4, 8) === 0)) {
      assert.strictEqual(simulate(seed).hash, hash, `SEED=${seed}`)
    }
    assert.strictEqual(new Set(runs().map(({ hash }) => hash)).size, seeds.length)
  })

  it.skipIf(given !== undefined)(
    "has each fault in many of its runs, and sends, cancels and ends calls in plenty",
    () => {
      const faults = runs().flatMap((run) => run.faults)
      for (const fault of new Set(faults)) {
        assert.isAbove(faults.filter((one) => one === fault).length, budget(60, 12), fault)
      }
      assert.strictEqual(new Set(faults).size, 10)
      const sum = (of: (run: Run) => number) => runs().reduce((total, run) => total + of(run), 0)
      assert.isAbove(sum(({ calls }) => calls), budget(5000, 1000))
      assert.isAbove(sum(({ sends }) => sends), budget(6000, 1200))
      assert.isAbove(sum(({ cancelled }) => cancelled), budget(100, 20))
    }
  )
})

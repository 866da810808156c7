import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { budget, firstOf } from "../../../test/utils/budget.ts"
import { inputOf, shipped } from "../utils/simulate.ts"
import { traces } from "./traces.ts"

/** Most of the time for little: the gate runs them, and the small budget what is in them elsewhere. */
const long = ["client-throttling", "outage", "thin-fleet", "noisy-neighbor", "steady-failures", "two-fleets"]

describe("the trace of a run", () => {
  for (const [name, hashes] of Object.entries(traces).filter(([name]) => budget(1, 0) === 1 || !long.includes(name))) {
    it.live(`is the one that is known: ${name}`, () =>
      Effect.gen(function*() {
        const scenario = yield* Simulator.decode(inputOf(name, { scenario: { seed: 1 } }))
        const found: Record<string, string> = {}
        for (const policy of firstOf(Object.keys(hashes) as ReadonlyArray<Simulator.PolicyName | "written">, 1)) {
          const { traceHash } = yield* Simulator.run(
            policy === "written" ? scenario : Simulator.withPolicy(scenario, policy)
          )
          found[policy] = traceHash
        }
        assert.deepStrictEqual(found, Object.fromEntries(firstOf(Object.entries(hashes), 1)))
      }))
  }

  it("is known for all built-in scenarios but the benchmark's", () => {
    assert.deepStrictEqual([...Object.keys(traces), "ten-thousand-clients"].sort(), [...shipped].sort())
  })
})

import type * as Effect from "effect/Effect"
import type { InvalidScenario } from "./problem.ts"
import type { SimulationResult } from "./result.ts"
import type { Scenario } from "./scenario.ts"
import type { SimulationStalled } from "./simulation.ts"

/** Reads and runs changed scenarios, for searches that change one. */
export interface Runner {
  readonly decode: (input: unknown) => Effect.Effect<Scenario, InvalidScenario>
  readonly run: (
    scenario: Scenario,
    runs: number
  ) => Effect.Effect<ReadonlyArray<SimulationResult>, SimulationStalled>
}

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { SimulationResult } from "./result.ts"
import type { Scenario } from "./scenario.ts"
import { Running, type RunOptions, type SimulationStalled } from "./simulation.ts"

interface Simulation {
  readonly run: (options: RunOptions) => Effect.Effect<SimulationResult, SimulationStalled>
}

/** Runs scenarios, in one or more threads. */
export interface Executor {
  /** How many jobs to give it at the same time. */
  readonly concurrency: number
  /** One run, with the seed of the scenario. */
  readonly run: (scenario: Scenario, options: RunOptions) => Effect.Effect<SimulationResult, SimulationStalled>
  /** Continues a simulation in the calling thread, where its result so far can be read. */
  readonly here: (simulation: Simulation, options: RunOptions) => Effect.Effect<SimulationResult, SimulationStalled>
}

/** Default: runs in the calling thread, one scenario after the other. */
export const Executor = Context.Reference<Executor>("@effect-retry/lab/Executor", {
  defaultValue: () => ({
    concurrency: 1,
    run: (scenario, options) => new Running(scenario).run(options),
    here: (simulation, options) => simulation.run(options)
  })
})

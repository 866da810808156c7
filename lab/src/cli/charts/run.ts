import type { SimulationResult } from "../../Simulator.ts"

/** The simulations of a scenario, and its name among others. */
export interface Run {
  readonly label: string
  /** The run with the seed of the scenario. */
  readonly result: SimulationResult
  /** That one, and those with the seeds after it. */
  readonly results: readonly [SimulationResult, ...Array<SimulationResult>]
}

/** One scenario, or several that differ in their policies; all have been run with the same seeds. */
export type Runs = readonly [Run, ...Array<Run>]

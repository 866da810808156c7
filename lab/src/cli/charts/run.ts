import type { SimulationResult } from "../../Simulator.ts"

/** A simulation, and what it is called beside others. */
export interface Run {
  readonly label: string
  readonly result: SimulationResult
}

/** One run, or several of the same scenario. */
export type Runs = readonly [Run, ...Array<Run>]

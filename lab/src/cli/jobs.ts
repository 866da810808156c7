import type { Progress, Scenario, SimulationResult } from "../Simulator.ts"

/** A job of a thread: a run, which can report its progress. */
export interface Job {
  readonly scenario: Scenario
  readonly reportsProgress: boolean
}

/** The result of a run without its scenario, which the calling thread has. */
type Shown = Omit<SimulationResult, "scenario">

/** The outcome of a job. */
export type Ended =
  | { readonly kind: "shown"; readonly shown: Shown }
  | { readonly kind: "stalled"; readonly atMillis: number }
  | { readonly kind: "defect"; readonly problem: string }

/** A message of a thread. */
export type Message = { readonly kind: "progress"; readonly progress: Progress } | Ended

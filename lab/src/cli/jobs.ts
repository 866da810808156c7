import type { Progress, Scenario, SimulationResult, Verdict } from "../Simulator.ts"

/** A job of a thread: a run, which can report its progress, or the majority verdict of several. */
export type Job =
  | { readonly kind: "run"; readonly scenario: Scenario; readonly tells: boolean }
  | { readonly kind: "judge"; readonly scenario: Scenario; readonly runs: number }

/** The result of a run without its scenario, which the calling thread has. */
type Shown = Omit<SimulationResult, "scenario">

/** The outcome of a job. */
export type Ended =
  | { readonly kind: "shown"; readonly shown: Shown }
  | { readonly kind: "judged"; readonly verdict: Verdict }
  | { readonly kind: "stalled"; readonly atMillis: number }
  | { readonly kind: "defect"; readonly problem: string }

/** A message of a thread. */
export type Told = { readonly kind: "progress"; readonly progress: Progress } | Ended

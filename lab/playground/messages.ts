import type { Explanation } from "../src/Explain.ts"
import type { Policy, Summary } from "../src/Simulator.ts"
import type { Choice, Setup } from "./setup.ts"

/** A request to a worker: runs of one policy. An earlier request for the slot is abandoned. */
export interface Ask {
  readonly slot: number
  readonly id: number
  readonly setup: Setup
  readonly choice: Choice
  /** How many runs to make. Existing ones with the same `id` are kept. */
  readonly runs: number
}

type Values = ReadonlyArray<number | null>

/** A line: the median of the runs, and the range from 5 to 95 % of them once there are several. */
export interface Line {
  readonly values: Values
  readonly band?: { readonly low: Values; readonly high: Values }
}

/** The results of runs. */
export interface Figures {
  readonly runs: number
  /** Whether the first run is still in progress. */
  readonly isPartial: boolean
  /** Requests per second at the service. */
  readonly load: Line
  /** The share of the calls that ended which succeeded. */
  readonly success: Line
  /** What is left in the quota, or the budget, of a process: a share of the most that it held. */
  readonly left: Line
  readonly summary: Summary
  /** The hash of the first run. */
  readonly traceHash: string
  readonly attempts: number
}

/** A policy, and what it does with one call. */
export interface About {
  readonly policy: Policy
  readonly code: string
  /** `undefined` without retries. */
  readonly explanation: Explanation | undefined
}

/** A worker's response. */
export type Message =
  & { readonly slot: number; readonly id: number }
  & (
    | { readonly kind: "about"; readonly about: About }
    | { readonly kind: "figures"; readonly figures: Figures; readonly isDone: boolean }
    | { readonly kind: "refused"; readonly problem: string }
  )

import type { Explanation } from "../src/Explain.ts"
import type { Policy, Summary } from "../src/Simulator.ts"
import type { Choice, Setup } from "./setup.ts"

/** What the page asks of a worker: runs of one policy. What was asked for the slot before is given up. */
export interface Ask {
  readonly slot: number
  readonly id: number
  readonly setup: Setup
  readonly choice: Choice
  /** How many runs there shall be. Those of the same `id` that there are already are kept. */
  readonly runs: number
}

type Values = ReadonlyArray<number | null>

/** A line: the median of the runs, and the range from 5 to 95 % of them once there are several. */
export interface Line {
  readonly values: Values
  readonly band?: { readonly low: Values; readonly high: Values }
}

/** What runs have shown. */
export interface Figures {
  readonly runs: number
  /** The first run is still under way. */
  readonly isPartial: boolean
  /** Requests per second at the service. */
  readonly load: Line
  /** Of the calls that ended, the share that ended well. */
  readonly success: Line
  /** What is left in the quota, or the budget, of a process: a share of the most that it held. */
  readonly left: Line
  readonly summary: Summary
  /** The hash of the first run. */
  readonly traceHash: string
  readonly attempts: number
}

/** What a policy is, and what it does to one call. */
export interface About {
  readonly policy: Policy
  readonly code: string
  /** `undefined` without retries. */
  readonly explanation: Explanation | undefined
}

/** What a worker answers. */
export type Told =
  & { readonly slot: number; readonly id: number }
  & (
    | { readonly kind: "about"; readonly about: About }
    | { readonly kind: "figures"; readonly figures: Figures; readonly isDone: boolean }
    | { readonly kind: "refused"; readonly problem: string }
  )

import { type Bound, boundsOf } from "./expectations.ts"
import type { SimulationResult } from "./result.ts"
import { outcomeOf } from "./runs.ts"
import { afterOf } from "./runSummary.ts"
import { type Spread, spreadOf } from "./spread.ts"

/**
 * Whether runs meet one of the expectations of their scenario.
 *
 * @category models
 * @since 0.1.0
 */
export interface Judgment {
  readonly name: "succeed" | "sendsPerCall" | "p99" | "recoveredWithin" | "recoversInRuns"
  readonly comparison: "<" | "<=" | ">" | ">="
  /** A share from 0 to 1, attempts per call, milliseconds, or a number of runs. */
  readonly bound: number
  /** What the runs show, in the same unit; `null` where they show nothing, such as the latency when no call succeeds. */
  readonly found: number | null
  /** The range of the runs, where `found` is their mean. */
  readonly spread: Spread | undefined
  /** How many runs there are. */
  readonly runs: number
  /** Whether what was found is within the bound. */
  readonly holds: boolean
}

const compares: { readonly [Of in Bound["comparison"]]: (a: number, b: number) => boolean } = {
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b
}

type Shown = Pick<Judgment, "bound" | "found" | "spread">

/** Judges the expectations of the scenario that was run, if it has any. */
export const judgmentsOf = (results: ReadonlyArray<SimulationResult>): ReadonlyArray<Judgment> => {
  const bounds = boundsOf(results[0]?.scenario.expect ?? {})
  const outcomes = results.map(outcomeOf)
  const afters = outcomes.flatMap(({ recovery }) => afterOf(recovery) ?? []).sort((a, b) => a - b)
  const share = bounds.find(({ name }) => name === "recoversInRuns")?.value ?? 1
  // Rounding must not make 0.7 of 10 an 8.
  const needed = Math.ceil(Number((share * results.length).toPrecision(12)))
  const mean = (of: "succeeded" | "sendsPerCall" | "p99Millis", bound: number): Shown => {
    const spread = spreadOf(outcomes.map((outcome) => outcome[of]))
    return { bound, spread, found: spread?.mean ?? null }
  }
  const shown = ({ name, value }: Bound): Shown => {
    switch (name) {
      case "succeed":
        return mean("succeeded", value)
      case "sendsPerCall":
        return mean("sendsPerCall", value)
      case "p99":
        return mean("p99Millis", value)
      case "recoveredWithin":
        return { bound: value, spread: undefined, found: needed === 0 ? 0 : afters[needed - 1] ?? null }
      case "recoversInRuns":
        return { bound: needed, spread: undefined, found: afters.length }
    }
  }
  return bounds.map((one) => {
    const { bound, found, spread } = shown(one)
    const holds = found !== null && compares[one.comparison](found, bound)
    return { name: one.name, comparison: one.comparison, bound, found, spread, runs: results.length, holds }
  })
}

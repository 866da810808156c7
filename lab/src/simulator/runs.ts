import * as Effect from "effect/Effect"
import { Executor } from "./executor.ts"
import { inOrder } from "./inOrder.ts"
import type { SimulationResult } from "./result.ts"
import { afterOf, fleetsOf, type Recovery, runSummaryOf } from "./runSummary.ts"
import type { Scenario } from "./scenario.ts"
import type { SimulationStalled } from "./simulation.ts"
import { type Spread, spreadOf } from "./spread.ts"

/** The summary of one run: the figures that runs are compared by. */
interface Outcome {
  /** The share of the calls of all fleets that succeeded, from 0 to 1; `null` if there was none. */
  readonly succeeded: number | null
  /** Attempts per call. */
  readonly sendsPerCall: number | null
  /** How long calls that succeeded took, retries included, in milliseconds: of the fleet that made the most calls. */
  readonly p50Millis: number | null
  readonly p99Millis: number | null
  /** The most requests in a second that a service received. */
  readonly peakPerSecond: number | null
  readonly recovery: Recovery
}

/**
 * How often runs returned to nine tenths of their share of successes before the outage.
 *
 * @category models
 * @since 0.1.0
 */
export interface Recoveries {
  /** Runs that recovered before their end, including those that were always healthy. */
  readonly runs: number
  readonly of: number
  /** How long after the last outage; `undefined` when no run did. */
  readonly afterMillis: Spread | undefined
}

/**
 * The summary of several runs of one scenario, each with its own seed.
 *
 * @category models
 * @since 0.1.0
 */
export interface Summary {
  readonly succeeded: Spread | undefined
  readonly sendsPerCall: Spread | undefined
  readonly p50Millis: Spread | undefined
  readonly p99Millis: Spread | undefined
  readonly peakPerSecond: Spread | undefined
  readonly recovery: Recoveries
}

/**
 * The difference between two policies, run by run with the same seed: the second minus the first.
 *
 * @category models
 * @since 0.1.0
 */
export interface Difference {
  readonly succeeded: Spread | undefined
  readonly sendsPerCall: Spread | undefined
  readonly p99Millis: Spread | undefined
}

/** Enough runs for a range. */
const usualRuns = 20

/** The options of several runs. */
export interface RunsOptions {
  /** How many: from 1. Default 20. */
  readonly runs?: number | undefined
  /** Runs a scenario somewhere else, such as in a worker. Default: here. */
  readonly run?: ((scenario: Scenario) => Effect.Effect<SimulationResult, SimulationStalled>) | undefined
  /** How many run at the same time. Default 1. */
  readonly concurrency?: number | undefined
}

/** The scenario with each of its seeds: the one that it has, and those after it. */
export const seedsOf = (scenario: Scenario, runs: number): ReadonlyArray<Scenario> =>
  Array.from({ length: runs }, (_, index) => ({ ...scenario, seed: scenario.seed + index }))

/** The summary of one run. */
export const outcomeOf = (result: SimulationResult): Outcome => {
  const { attemptsPerCall, peak, recovery, share } = runSummaryOf(result)
  const busiest = fleetsOf(result).reduce<SimulationResult["clients"][number] | undefined>(
    (most, fleet) => most !== undefined && most.totals.calls >= fleet.totals.calls ? most : fleet,
    undefined
  )
  return {
    succeeded: share ?? null,
    sendsPerCall: attemptsPerCall ?? null,
    p50Millis: busiest?.totals.latency.p50Millis ?? null,
    p99Millis: busiest?.totals.latency.p99Millis ?? null,
    peakPerSecond: peak?.perSecond ?? null,
    recovery
  }
}

/** The summary of the runs of one scenario. */
export const summaryOf = (results: ReadonlyArray<SimulationResult>): Summary => {
  const outcomes = results.map(outcomeOf)
  const afters = outcomes.flatMap(({ recovery }) => afterOf(recovery) ?? [])
  return {
    succeeded: spreadOf(outcomes.map(({ succeeded }) => succeeded)),
    sendsPerCall: spreadOf(outcomes.map(({ sendsPerCall }) => sendsPerCall)),
    p50Millis: spreadOf(outcomes.map(({ p50Millis }) => p50Millis)),
    p99Millis: spreadOf(outcomes.map(({ p99Millis }) => p99Millis)),
    peakPerSecond: spreadOf(outcomes.map(({ peakPerSecond }) => peakPerSecond)),
    recovery: {
      runs: afters.length,
      of: outcomes.length,
      afterMillis: spreadOf(afters)
    }
  }
}

/** How the second of two policies differs from the first, run by run. */
export const differenceOf = (
  first: ReadonlyArray<SimulationResult>,
  second: ReadonlyArray<SimulationResult>
): Difference => {
  const before = first.map(outcomeOf)
  const less = (of: "succeeded" | "sendsPerCall" | "p99Millis") =>
    spreadOf(
      second.map(outcomeOf).map((outcome, run) => {
        const [a, b] = [before[run]?.[of] ?? null, outcome[of]]
        return a === null || b === null ? null : b - a
      })
    )
  return { succeeded: less("succeeded"), sendsPerCall: less("sendsPerCall"), p99Millis: less("p99Millis") }
}

/** Runs a scenario with several seeds. */
export const runSeeds = Effect.fnUntraced(
  function*(scenario: Scenario, { concurrency, run, runs = usualRuns }: RunsOptions) {
    const seeds = seedsOf(scenario, runs)
    if (run !== undefined) return yield* Effect.forEach(seeds, run, { concurrency: concurrency ?? 1 })
    const executor = yield* Executor
    return yield* inOrder(seeds, (seeded) => executor.run(seeded, {}), concurrency ?? executor.concurrency)
  }
)

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Simulator from "../Simulator.ts"
import { seedsOf } from "../simulator/runs.ts"
import type { Run, Runs } from "./charts/run.ts"
import { progressLine, toldOn } from "./progress.ts"
import { refusal } from "./refusal.ts"
import { plain } from "./text.ts"

/** A scenario to run, and its name among others. */
export interface Plan {
  readonly label: string
  readonly scenario: Simulator.Scenario
}

const usualRuns = 20
const leastRuns = 5
/** This many attempts of a policy run in seconds. */
const cheapAttempts = 5_000_000

/** As many runs as are cheap: that depends on the scenario alone, not on the machine. */
const affordable = (runs: ReadonlyArray<Run>): number => {
  const attempts = Math.max(1, ...runs.map(({ result }) => result.attempts))
  return Math.max(leastRuns, Math.min(usualRuns, Math.floor(cheapAttempts / attempts)))
}

/** The position of a run among all. */
interface Place {
  readonly index: number
  readonly of: number
}

/** Runs a plan, and shows the progress. */
const simulated = Effect.fnUntraced(function*<E, R>(
  { label, scenario }: Plan,
  place: Place,
  interrupted: (partial: Simulator.SimulationResult) => Effect.Effect<void, E, R>
) {
  const line = yield* progressLine
  const simulation = yield* Simulator.make(scenario)
  return yield* simulation.run({ onProgress: toldOn(line, plain(label), place) }).pipe(
    Effect.mapError(({ message }) => refusal(`${scenario.name} (${label}): ${message}`)),
    Effect.ensuring(line.clear),
    Effect.onInterrupt(() => Effect.flatMap(simulation.result, interrupted))
  )
})

const added = ([first, ...others]: Runs, results: ReadonlyArray<Simulator.SimulationResult>): Runs => {
  const add = (run: Run, index: number): Run => ({ ...run, results: [...run.results, results[index]!] })
  return [add(first, 0), ...others.map((run, index) => add(run, index + 1))]
}

/** Runs all plans with one more seed. */
const again = Effect.fnUntraced(function*<E, R>(
  plans: ReadonlyArray<Plan>,
  runs: Runs,
  count: number,
  finish: (runs: Runs, isWhole: boolean) => Effect.Effect<void, E, R>
) {
  const seed = runs[0].results.length
  const found: Array<Simulator.SimulationResult> = []
  for (const [index, { label, scenario }] of plans.entries()) {
    const plan = { label, scenario: seedsOf(scenario, seed + 1)[seed]! }
    const place = { index: seed * plans.length + index, of: count * plans.length }
    // A seed that not every plan has run with is left out: it could not be paired.
    found.push(yield* simulated(plan, place, () => finish(runs, false)))
  }
  return added(runs, found)
})

/**
 * Runs one plan after the other with their seed, then all of them with the seeds after it, and passes the results
 * to `finish`. Interrupted, it passes the results so far: of the first seed also the run in progress, partial.
 */
export const runAll = Effect.fnUntraced(function*<E, R>(
  plans: readonly [Plan, ...Array<Plan>],
  asked: Option.Option<number>,
  finish: (runs: Runs, isWhole: boolean) => Effect.Effect<void, E, R>
) {
  const begin = Effect.fnUntraced(function*(plan: Plan, index: number, before: ReadonlyArray<Run>) {
    const withResult = (result: Simulator.SimulationResult): Runs => {
      const run: Run = { label: plan.label, result, results: [result] }
      const [first, ...rest] = [...before, run]
      return first === undefined ? [run] : [first, ...rest]
    }
    const place = { index, of: plans.length }
    return withResult(yield* simulated(plan, place, (partial) => finish(withResult(partial), false)))
  })
  const [one, ...others] = plans
  let runs = yield* begin(one, 0, [])
  for (const [index, plan] of others.entries()) runs = yield* begin(plan, index + 1, runs)
  const count = Option.getOrElse(asked, () => affordable(runs))
  while (runs[0].results.length < count) runs = yield* again(plans, runs, count, finish)
  yield* finish(runs, true)
})

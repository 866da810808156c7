import * as Effect from "effect/Effect"
import * as Simulator from "../Simulator.ts"
import type { Run, Runs } from "./charts/run.ts"
import { progressLine, toldOn } from "./progress.ts"
import { refusal } from "./refusal.ts"
import { plain } from "./text.ts"

/** A scenario to run, and what it is called beside others. */
export interface Plan {
  readonly label: string
  readonly scenario: Simulator.Scenario
}

/**
 * Runs one plan after the other, and gives what they have shown to `finish`. Interrupted, it gives what there is so far, the
 * last run partial.
 */
export const runAll = Effect.fnUntraced(function*<E, R>(
  plans: readonly [Plan, ...Array<Plan>],
  finish: (runs: Runs) => Effect.Effect<void, E, R>
) {
  const line = yield* progressLine
  const runOne = Effect.fnUntraced(function*({ label, scenario }: Plan, index: number, before: ReadonlyArray<Run>) {
    const simulation = yield* Simulator.make(scenario)
    const withResult = (result: Simulator.SimulationResult): Runs => {
      const [first, ...others] = [...before, { label, result }]
      return first === undefined ? [{ label, result }] : [first, ...others]
    }
    const result = yield* simulation.run({ onProgress: toldOn(line, plain(label), { index, of: plans.length }) }).pipe(
      Effect.mapError(({ message }) => refusal(`${scenario.name} (${label}): ${message}`)),
      Effect.ensuring(line.clear),
      Effect.onInterrupt(() => Effect.flatMap(simulation.result, (partial) => finish(withResult(partial))))
    )
    return withResult(result)
  })
  const [first, ...others] = plans
  let runs = yield* runOne(first, 0, [])
  for (const [index, plan] of others.entries()) runs = yield* runOne(plan, index + 1, runs)
  yield* finish(runs)
})

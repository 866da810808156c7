import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Scenario } from "../Simulator.ts"
import { edgeLines } from "./edges.ts"
import * as flags from "./flags.ts"
import { asJson, dataOf, finishing, writableIfAsked } from "./output.ts"
import { labelOf } from "./policies.ts"
import { inThreads } from "./pool.ts"
import { runAll } from "./runs.ts"
import { scenarioFrom } from "./scenarios.ts"
import { print, screen } from "./screen.ts"
import { simulationTable } from "./simulationTable.ts"
import { warningTexts } from "./warnings.ts"

/** The scenario with the seed that was asked for. */
export const seeded = (scenario: Scenario, seed: Option.Option<number>): Scenario =>
  Option.match(seed, { onNone: () => scenario, onSome: (seed) => ({ ...scenario, seed }) })

/** The name of an unchanged scenario among others: its policy, if there is one for all. */
export const writtenLabel = ({ fleets }: Scenario): string => {
  const labels = new Set(fleets.map(({ policy }) => labelOf(policy)))
  return labels.size === 1 ? [...labels].join() : "as written"
}

export const simulate = Command.make(
  "simulate",
  {
    scenario: flags.scenario,
    seed: flags.seed,
    runs: flags.runs,
    workers: flags.workers,
    json: flags.json,
    report: flags.report
  },
  Effect.fnUntraced(function*(asked) {
    const scenario = seeded(yield* scenarioFrom(asked.scenario), asked.seed)
    yield* writableIfAsked(asked.report, "page")
    const shown = yield* screen
    yield* runAll(
      [{ label: writtenLabel(scenario), scenario }],
      asked.runs,
      finishing(
        asked,
        (runs, edges) => {
          const [run] = runs
          const [edge] = edges
          if (!asked.json) return print([simulationTable(run, shown), ...edgeLines(runs, edges)].join("\n"))
          const one = { ...run.result, warnings: warningTexts(run), ...edge === undefined ? {} : { edge } }
          return Console.log(asJson(run.results.length > 1 ? dataOf(run, edge) : one))
        }
      )
    )
  }, inThreads)
).pipe(
  Command.withShortDescription("Run a scenario"),
  Command.withDescription(
    "Runs a scenario in virtual time, with the library's own code and several seeds, and reports " +
      "what happened to its calls. Ctrl-C stops it and shows the results so far."
  ),
  Command.withExamples([
    { command: "effect-retry simulate outage" },
    { command: "effect-retry simulate scenario.json --seed 7 --report report.html" }
  ])
)

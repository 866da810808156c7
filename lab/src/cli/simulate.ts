import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Scenario } from "../Simulator.ts"
import * as flags from "./flags.ts"
import { asJson, dataOf, finishing, writableIfAsked } from "./output.ts"
import { labelOf } from "./policies.ts"
import { runAll } from "./runs.ts"
import { scenarioFrom } from "./scenarios.ts"
import { simulationTable } from "./simulationTable.ts"

/** The scenario with the seed that was asked for. */
export const seeded = (scenario: Scenario, seed: Option.Option<number>): Scenario =>
  Option.match(seed, { onNone: () => scenario, onSome: (seed) => ({ ...scenario, seed }) })

/** What a scenario as it is written is called beside others: its policy, if there is one for all. */
export const writtenLabel = ({ fleets }: Scenario): string => {
  const labels = new Set(fleets.map(({ policy }) => labelOf(policy)))
  return labels.size === 1 ? [...labels].join() : "as written"
}

export const simulate = Command.make(
  "simulate",
  { scenario: flags.scenario, seed: flags.seed, runs: flags.runs, json: flags.json, report: flags.report },
  Effect.fnUntraced(function*(asked) {
    const scenario = seeded(yield* scenarioFrom(asked.scenario), asked.seed)
    yield* writableIfAsked(asked.report)
    yield* runAll(
      [{ label: writtenLabel(scenario), scenario }],
      asked.runs,
      finishing(
        asked.report,
        ([run]) => !asked.json ? simulationTable(run) : asJson(run.results.length === 1 ? run.result : dataOf(run))
      )
    )
  })
).pipe(
  Command.withShortDescription("Run a scenario"),
  Command.withDescription(
    "Runs a scenario in virtual time, with the library's own code and several seeds, and tells\n" +
      "  what became of its calls. Ctrl-C ends it and shows what there is."
  ),
  Command.withExamples([
    { command: "effect-retry simulate outage" },
    { command: "effect-retry simulate scenario.json --seed 7 --report report.html" }
  ])
)

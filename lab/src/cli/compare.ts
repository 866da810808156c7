import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { difference, type Policy, type Scenario, withPolicy } from "../Simulator.ts"
import type { Runs } from "./charts/run.ts"
import { comparisonTable } from "./comparisonTable.ts"
import { edgeLines, type Edges } from "./edges.ts"
import * as flags from "./flags.ts"
import { pageMaps } from "./maps.ts"
import { asJson, dataOf, finishing, writableIfAsked } from "./output.ts"
import { labelOf, policyFrom } from "./policies.ts"
import { inThreads } from "./pool.ts"
import { part, progress } from "./progress.ts"
import { refusal } from "./refusal.ts"
import { type Plan, runAll } from "./runs.ts"
import { scenarioFrom } from "./scenarios.ts"
import { print, screen } from "./screen.ts"
import { seeded, writtenLabel } from "./simulate.ts"

const policy = Flag.String("policy").pipe(
  Flag.withMetavar("POLICY"),
  Flag.withDescription("A policy for all clients: a name, or its steps as JSON; repeatable"),
  Flag.atLeast(1)
)

/** The scenario as written and with each policy, without duplicates, each under a name of its own. */
export const plansOf = (scenario: Scenario, policies: ReadonlyArray<Policy>) => {
  const written: Plan = { label: writtenLabel(scenario), scenario }
  const seen = new Set([JSON.stringify(scenario.fleets)])
  const labels = new Map([[written.label, 1]])
  const others: Array<Plan> = []
  for (const policy of policies) {
    const changed = withPolicy(scenario, policy)
    const key = JSON.stringify(changed.fleets)
    if (seen.has(key)) continue
    seen.add(key)
    const label = labelOf(policy)
    const count = (labels.get(label) ?? 0) + 1
    labels.set(label, count)
    others.push({ label: count === 1 ? label : `${label} (${count})`, scenario: changed })
  }
  return [written, ...others] as const
}

/** A map is most of the work where there is one. */
const shareOfMaps = 0.8

/** Runs a scenario as written, then with each policy, and reports the results. */
export const compared = Effect.fnUntraced(function*(
  scenario: Scenario,
  policies: ReadonlyArray<Policy>,
  asked: {
    readonly scenario: string
    readonly runs: Option.Option<number>
    readonly json: boolean
    readonly report: Option.Option<string>
    readonly map?: boolean
  }
) {
  const plans = plansOf(scenario, policies)
  const all = yield* progress
  const maps = asked.map === true ? yield* pageMaps(plans, part(all, 0, shareOfMaps)) : undefined
  const shown = yield* screen
  const printed = (runs: Runs, edges: Edges) =>
    asked.json
      ? Console.log(asJson({
        runs: runs.map((run, index) => ({
          ...dataOf(run, edges[index]),
          difference: difference(runs[0].results, run.results)
        }))
      }))
      : print([comparisonTable(runs, shown), ...edgeLines(runs, edges)].join("\n"))
  const rest = maps === undefined ? all : part(all, shareOfMaps, 1)
  return yield* runAll([...plans], asked.runs, finishing(asked, printed, maps), rest)
})

export const compare = Command.make(
  "compare",
  {
    scenario: flags.scenario,
    policy,
    seed: flags.seed,
    runs: flags.runs,
    workers: flags.workers,
    json: flags.json,
    report: flags.report,
    map: Flag.Boolean("map").pipe(
      Flag.withDescription("Start the page with a map of where each policy recovers. Takes longer"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function*(asked) {
    if (asked.map && Option.isNone(asked.report)) {
      return yield* refusal("--map adds a map to the --report page; `effect-retry map` prints one")
    }
    const policies = yield* Effect.forEach(asked.policy, policyFrom)
    const scenario = seeded(yield* scenarioFrom(asked.scenario), asked.seed)
    yield* writableIfAsked(asked.report, "page")
    yield* compared(scenario, policies, asked)
  }, inThreads)
).pipe(
  Command.withShortDescription("Run a scenario with several policies"),
  Command.withDescription(
    "Runs a scenario as written, then with each policy in place of its clients' own: " +
      "one table, one page. Ctrl-C stops it and shows the results so far."
  ),
  Command.withExamples([
    { command: "effect-retry compare outage --policy awsStandard --policy finagle" },
    { command: "effect-retry compare outage --policy awsStandard --report outage.html --map" },
    { command: `effect-retry compare ramp --policy '{"steps":[{"linear":{"base":100}}]}' --report report.html` }
  ])
)

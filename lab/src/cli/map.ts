import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { mapSvg } from "./charts/mapChart.ts"
import { plansOf } from "./compare.ts"
import * as flags from "./flags.ts"
import { axesOf, axisOf, mapsOf, usualSteps } from "./maps.ts"
import { mapTable } from "./mapTable.ts"
import { asJson, writableIfAsked, writeIfAsked } from "./output.ts"
import { policyFrom } from "./policies.ts"
import { inThreads } from "./pool.ts"
import { progress } from "./progress.ts"
import { scenarioFrom } from "./scenarios.ts"
import { print, screen } from "./screen.ts"
import { seeded } from "./simulate.ts"
import { printWarningsOf } from "./warnings.ts"

const axis = (name: "x" | "y", what: string) =>
  Flag.String(name).pipe(
    Flag.filterMap(axisOf, () => "PATH=FROM..TO or PATH=FROM..TO/STEPS, such as fleets.0.rate=60..300/12"),
    Flag.withMetavar("PATH=FROM..TO"),
    Flag.withDescription(what),
    Flag.optional
  )

export const map = Command.make(
  "map",
  {
    scenario: flags.scenario,
    x: axis("x", "The x axis. Default: the rate of the first fleet that has one"),
    y: axis("y", "The y axis. Default: the length of the first outage, in milliseconds"),
    policy: flags.policies,
    runs: flags.runsOf("Runs of each cell; the majority decides. Default 5").pipe(Flag.withDefault(5)),
    workers: flags.workers,
    seed: flags.seed,
    json: flags.json,
    svg: flags.svg
  },
  Effect.fnUntraced(function*(asked) {
    const policies = yield* Effect.forEach(asked.policy, policyFrom)
    const scenario = seeded(yield* scenarioFrom(asked.scenario), asked.seed)
    const axes = yield* axesOf(scenario, asked, { across: usualSteps, up: usualSteps })
    yield* writableIfAsked(asked.svg, "picture")
    yield* printWarningsOf(asked.scenario, scenario)
    const maps = yield* mapsOf(plansOf(scenario, policies), { ...axes, runs: asked.runs }, yield* progress)
    yield* writeIfAsked(asked.svg, () => mapSvg({ scenario, maps }))
    yield* asked.json
      ? Console.log(asJson({ scenario: scenario.name, runs: asked.runs, maps }))
      : print(mapTable(scenario, maps, yield* screen))
  }, inThreads)
).pipe(
  Command.withShortDescription("Map where policies recover, limp and collapse"),
  Command.withDescription(
    "Varies two parameters of a scenario, any paths into it, and reports for each pair what happens " +
      "to the calls after the outage: they recover, they limp (not within the run), or they " +
      "collapse (in theory never). Every cell is up to --runs whole runs."
  ),
  Command.withExamples([
    { command: "effect-retry map outage --policy awsStandard --policy finagle --svg map.svg" },
    { command: "effect-retry map outage --x fleets.0.rate=100..300/9 --y fleets.0.timeout=250ms..4s/6" }
  ])
)

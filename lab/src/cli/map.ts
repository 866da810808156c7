import * as RetryPolicyJson from "effect-retry/RetryPolicyJson"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Simulator from "../Simulator.ts"
import { millis } from "../simulator/units.ts"
import { counted, percent } from "./charts/format.ts"
import { mapSvg } from "./charts/mapChart.ts"
import { plansOf } from "./compare.ts"
import * as flags from "./flags.ts"
import { mapTable } from "./mapTable.ts"
import { asJson, writableIfAsked, writeAndTell } from "./output.ts"
import { policyFrom } from "./policies.ts"
import { progressLine } from "./progress.ts"
import { Refusal, refusal } from "./refusal.ts"
import { scenarioFrom } from "./scenarios.ts"
import { seeded } from "./simulate.ts"
import { plain } from "./text.ts"

const usualSteps = 20

const spaced = (from: number, to: number, steps: number): ReadonlyArray<number> =>
  Array.from({ length: steps }, (_, n) => Number((from + (to - from) * n / Math.max(1, steps - 1)).toPrecision(6)))

/** A number; of a duration, its milliseconds. */
const amount = (text = ""): number =>
  Option.match(RetryPolicyJson.duration(text), { onNone: () => Number(text), onSome: Duration.toMillis })

/** `fleets.0.rate=60..300`, with the number of steps `fleets.0.rate=60..300/12`, of a duration `fleets.0.timeout=250ms..4s`. */
const axis = (name: "x" | "y", what: string) =>
  Flag.String(name).pipe(
    Flag.filterMap(
      (text): Option.Option<Simulator.Axis> => {
        const [, path, from, to, steps] =
          /^([^=]+)=(\d+(?:\.\d+)?(?:ms|s|m|h)?)\.\.(\d+(?:\.\d+)?(?:ms|s|m|h)?)(?:\/(\d{1,3}))?$/.exec(text) ??
            []
        return path === undefined || Number(steps ?? 2) < 2
          ? Option.none()
          : Option.some({ path, values: spaced(amount(from), amount(to), Number(steps ?? usualSteps)) })
      },
      () => "PATH=FROM..TO or PATH=FROM..TO/STEPS, such as fleets.0.rate=60..300/12"
    ),
    Flag.withMetavar("PATH=FROM..TO"),
    Flag.withDescription(what),
    Flag.optional
  )

/** Load: from a fifth of what the service bears up to it. */
const loadOf = (scenario: Simulator.Scenario) => {
  const fleet = scenario.fleets.findIndex(({ rate }) => typeof rate === "number")
  if (fleet < 0) return undefined
  const { rate, to } = scenario.fleets[fleet]!
  const most = scenario.services.find(({ name }) => name === to)?.capacity ?? 1.5 * Number(rate)
  return { path: `fleets.${fleet}.rate`, values: spaced(most / 5, most, usualSteps) }
}

/** Length of the first outage: from half a second up to one and a half times as long as it is. */
const lengthOf = ({ services }: Simulator.Scenario) => {
  const service = services.findIndex(({ outages }) => outages.length > 0)
  const outage = services[service]?.outages[0]
  if (outage === undefined) return undefined
  const length = millis(outage.to) - millis(outage.from)
  return {
    path: `services.${service}.outages.0.length`,
    values: spaced(Math.min(500, length / 2), 1.5 * length, usualSteps)
  }
}

const policy = Flag.String("policy").pipe(
  Flag.withMetavar("POLICY"),
  Flag.withDescription("A policy for all clients: a name, or its steps as JSON; once for each"),
  Flag.atLeast(0)
)

const runs = Flag.Int("runs").pipe(
  Flag.filter((value) => value >= 1 && value <= 1000, () => "a whole number from 1 to 1000"),
  Flag.withMetavar("NUMBER"),
  Flag.withDescription("Runs of each cell, of which most decide. Default 5"),
  Flag.withDefault(5)
)

export const map = Command.make(
  "map",
  {
    scenario: flags.scenario,
    x: axis("x", "Across. Default: the rate of the first fleet that has one"),
    y: axis("y", "Up. Default: the length of the first outage, in milliseconds"),
    policy,
    runs,
    seed: flags.seed,
    json: flags.json,
    svg: Flag.String("svg").pipe(Flag.withMetavar("FILE"), Flag.withDescription("Write a picture"), Flag.optional)
  },
  Effect.fnUntraced(function*(asked) {
    const policies = yield* Effect.forEach(asked.policy, policyFrom)
    const scenario = seeded(yield* scenarioFrom(asked.scenario), asked.seed)
    const x = Option.getOrElse(asked.x, () => loadOf(scenario))
    const y = Option.getOrElse(asked.y, () => lengthOf(scenario))
    if (x === undefined) {
      return yield* refusal("the scenario has no fleet with a steady rate: say what is across with --x")
    }
    if (y === undefined) return yield* refusal("the scenario has no outage: say what is up with --y")
    yield* writableIfAsked(asked.svg)
    const line = yield* progressLine
    const plans = plansOf(scenario, policies)
    const maps = yield* Effect.forEach(plans, (plan, index) =>
      Effect.map(
        Simulator.map(plan.scenario, {
          x,
          y,
          runs: asked.runs,
          onProgress: (done, of) =>
            line.show(`${percent((index + done / of) / plans.length)}: ${plain(plan.label)}, ${counted(done)} cells`)
        }),
        (found) => ({ label: plan.label, ...found })
      )).pipe(
        Effect.mapError((error) =>
          error._tag === "InvalidScenario"
            ? new Refusal({ lines: error.problems.map(({ path, problem }) => `${path}: ${problem}`) })
            : refusal(error.message)
        ),
        Effect.ensuring(line.clear)
      )
    const [first, ...others] = maps
    const all = [first!, ...others] as const
    if (Option.isSome(asked.svg)) yield* writeAndTell(asked.svg.value, mapSvg(scenario.name, all))
    yield* Console.log(
      asked.json ? asJson({ scenario: scenario.name, runs: asked.runs, maps }) : mapTable(scenario, all)
    )
  })
).pipe(
  Command.withShortDescription("Map where policies recover, limp and collapse"),
  Command.withDescription(
    "Changes two parameters of a scenario, any paths into it, and tells for each pair what becomes\n" +
      "  of the calls after the outage: they recover, they limp, or the outage goes on by itself."
  ),
  Command.withExamples([
    { command: "effect-retry map outage --policy awsStandard --policy finagle --svg map.svg" },
    { command: "effect-retry map outage --x fleets.0.rate=100..300/9 --y fleets.0.timeout=250ms..4s/6" }
  ])
)

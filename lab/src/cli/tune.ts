import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { codeOf } from "../policyCode.ts"
import * as Simulator from "../Simulator.ts"
import { percent } from "./charts/format.ts"
import { tuneSvg } from "./charts/tuneChart.ts"
import * as flags from "./flags.ts"
import { asJson, writableIfAsked, writeAndTell } from "./output.ts"
import { policyFrom } from "./policies.ts"
import { progressLine } from "./progress.ts"
import { refusalOf } from "./refusal.ts"
import { scenarioFrom } from "./scenarios.ts"
import { seeded } from "./simulate.ts"
import { plain } from "./text.ts"
import { tuneText } from "./tuneText.ts"
import { tellWarningsOf } from "./warnings.ts"

const file = (name: string, what: string) =>
  Flag.String(name).pipe(Flag.withMetavar("FILE"), Flag.withDescription(what), Flag.optional)

export const tune = Command.make(
  "tune",
  {
    scenarios: Argument.String("scenario").pipe(
      Argument.withDescription("A scenario with an outage; or several, to do well in all of them"),
      Argument.atLeast(1)
    ),
    policy: flags.policies,
    expect: flags.expect,
    runs: Flag.Int("runs").pipe(
      Flag.filter((value) => value >= 1 && value <= 1000, () => "a whole number from 1 to 1000"),
      Flag.withMetavar("NUMBER"),
      Flag.withDescription("Runs of each policy in each outage. Default 5"),
      Flag.withDefault(5)
    ),
    seed: flags.seed,
    json: flags.json,
    svg: file("svg", "Write an SVG chart"),
    code: file("code", "Write the chosen policy as TypeScript")
  },
  Effect.fnUntraced(function*({ code, expect, json, policy, runs, scenarios, seed, svg }) {
    const policies = yield* Effect.forEach(policy, policyFrom)
    const read = yield* Effect.forEach(
      scenarios,
      (one) => Effect.flatMap(scenarioFrom(one), (read) => flags.withExpectations(seeded(read, seed), expect))
    )
    const [scenario, ...others] = read
    yield* writableIfAsked(svg)
    yield* writableIfAsked(code)
    yield* Effect.forEach(read, tellWarningsOf)
    const line = yield* progressLine
    const tuning = yield* Simulator.tune(scenario!, {
      others,
      policies: policies.length === 0 ? undefined : policies,
      runs,
      onProgress: (done, of, label) => line.show(`${percent(Math.floor(100 * done / of) / 100)}: ${plain(label)}`)
    }).pipe(Effect.mapError(refusalOf), Effect.ensuring(line.clear))
    if (Option.isSome(svg)) yield* writeAndTell(svg.value, tuneSvg(scenario!.name, tuning))
    if (Option.isSome(code)) yield* writeAndTell(code.value, codeOf(tuning.chosen.policy))
    yield* Console.log(
      json
        ? asJson({ scenario: scenario!.name, ...tuning, code: codeOf(tuning.chosen.policy) })
        : tuneText(scenario!, tuning)
    )
  })
).pipe(
  Command.withShortDescription("Choose a policy by its worst case over a family of outages"),
  Command.withDescription(
    "Runs policies in outages like those of a scenario (shorter, longer, of other kinds), or in several\n" +
      "  scenarios, chooses one, shows what the choice depends on, and prints it as TypeScript."
  ),
  Command.withExamples([
    { command: "effect-retry tune retries.json" },
    { command: "effect-retry tune retries.json --policy awsStandard --policy sre --svg tune.svg --code policy.ts" }
  ])
)

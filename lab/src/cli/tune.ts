import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { codeOf } from "../policyCode.ts"
import * as Simulator from "../Simulator.ts"
import { tuneSvg } from "./charts/tuneChart.ts"
import * as flags from "./flags.ts"
import { asJson, writableIfAsked, writeIfAsked } from "./output.ts"
import { policyFrom } from "./policies.ts"
import { inThreads } from "./pool.ts"
import { progress } from "./progress.ts"
import { refusalOf } from "./refusal.ts"
import { scenarioFrom } from "./scenarios.ts"
import { print, screen } from "./screen.ts"
import { seeded } from "./simulate.ts"
import { plain } from "./text.ts"
import { tuneText } from "./tuneText.ts"
import { printWarningsOf } from "./warnings.ts"

export const tune = Command.make(
  "tune",
  {
    scenarios: Argument.String("scenario").pipe(
      Argument.withDescription("A scenario with an outage; or several, to do well in all of them"),
      Argument.atLeast(1)
    ),
    policy: flags.policies,
    expect: flags.expect,
    runs: flags.runsOf("Runs of each policy in each outage. Default 5").pipe(Flag.withDefault(5)),
    workers: flags.workers,
    seed: flags.seed,
    json: flags.json,
    svg: flags.svg,
    code: flags.file("code", "Write the chosen policy as TypeScript")
  },
  Effect.fnUntraced(function*({ code, expect, json, policy, runs, scenarios, seed, svg }) {
    const policies = yield* Effect.forEach(policy, policyFrom)
    const read = yield* Effect.forEach(
      scenarios,
      (one) => Effect.flatMap(scenarioFrom(one), (read) => flags.withExpectations(seeded(read, seed), expect))
    )
    const [scenario, ...others] = read
    yield* writableIfAsked(svg, "picture")
    yield* writableIfAsked(code, "code")
    yield* Effect.forEach(read, (one, n) => printWarningsOf(scenarios[n]!, one))
    const shown = yield* progress
    const tuning = yield* Simulator.tune(scenario!, {
      others,
      policies: policies.length === 0 ? undefined : policies,
      runs,
      onProgress: (done, of, label) => shown.show(done / of, plain(label))
    }).pipe(Effect.mapError(refusalOf), Effect.ensuring(shown.clear))
    yield* writeIfAsked(svg, () => tuneSvg(scenario!.name, tuning))
    yield* writeIfAsked(code, () => codeOf(tuning.chosen.policy))
    const chosen = codeOf(tuning.chosen.policy)
    yield* json
      ? Console.log(asJson({ scenario: scenario!.name, ...tuning, code: chosen }))
      : print(`${tuneText(scenario!, tuning, yield* screen)}\n`, chosen)
  }, inThreads)
).pipe(
  Command.withShortDescription("Choose a policy by its worst case over a family of outages"),
  Command.withDescription(
    "Runs policies in outages like those of a scenario (shorter, longer, of other kinds), or in several " +
      "scenarios, chooses one, shows what the choice depends on, and prints it as TypeScript."
  ),
  Command.withExamples([
    { command: "effect-retry tune retries.json" },
    { command: "effect-retry tune retries.json --policy awsStandard --policy sre --svg tune.svg --code policy.ts" }
  ])
)

import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Simulator from "../Simulator.ts"
import { ExpectationsFailed } from "./check.ts"
import * as flags from "./flags.ts"
import { asJson } from "./output.ts"
import { inThreads } from "./pool.ts"
import { progress } from "./progress.ts"
import { refusal, refusalOf } from "./refusal.ts"
import { scenarioFrom } from "./scenarios.ts"
import { print, screen } from "./screen.ts"
import { seeded } from "./simulate.ts"
import { answerOf, sweepText } from "./sweepText.ts"
import { plain } from "./text.ts"
import { printWarningsOf } from "./warnings.ts"

const value = (name: string, what: string) =>
  Flag.String(name).pipe(
    Flag.filterMap(
      (text) => Option.filter(Option.some(flags.amount(text)), Number.isFinite),
      () => "a number, or a duration such as 250ms"
    ),
    Flag.withMetavar("NUMBER"),
    Flag.withDescription(what)
  )

export const sweep = Command.make(
  "sweep",
  {
    scenario: flags.scenario,
    path: Argument.String("path").pipe(
      Argument.withDescription("The parameter to vary: a path such as fleets.0.policy.quota.capacity")
    ),
    from: value("from", "The low end of the range; durations in milliseconds, or as 250ms"),
    to: value("to", "The high end"),
    step: value("step", "Precision of the answer. Default: 1, or about a thousandth of the range").pipe(
      Flag.optional
    ),
    expect: flags.expect,
    runs: flags.runsOf("Runs of each value. Default: the number in recoversInRuns, otherwise 20").pipe(Flag.optional),
    workers: flags.workers,
    seed: flags.seed,
    json: flags.json
  },
  Effect.fnUntraced(function*(asked) {
    const { expect, from, json, path, runs, seed, step, to } = asked
    const scenario = seeded(yield* flags.withExpectations(yield* scenarioFrom(asked.scenario), expect), seed)
    if (scenario.expect === undefined) {
      return yield* refusal("the scenario has no expectations: add one with --expect 'succeed >= 99 %'")
    }
    yield* printWarningsOf(asked.scenario, scenario)
    const shown = yield* progress
    const found = yield* Simulator.sweep(scenario, {
      path,
      from,
      to,
      step: Option.getOrUndefined(step),
      runs: Option.getOrUndefined(runs),
      onProgress: ({ value }, done, of) => shown.show(done / of, plain(`${path} ${value}`))
    }).pipe(Effect.mapError(refusalOf), Effect.ensuring(shown.clear))
    yield* json
      ? Console.log(asJson({ scenario: scenario.name, ...found }))
      : print(sweepText(scenario, found, yield* screen))
    if (found.kind === "nowhere") return yield* new ExpectationsFailed({ message: answerOf(found) })
  }, inThreads)
).pipe(
  Command.withShortDescription("Find the smallest or largest value that satisfies the expectations"),
  Command.withDescription(
    "Looks for the smallest or largest value of a parameter with which a scenario meets its " +
      "expectations: at both ends of a range and between them, then by bisection."
  ),
  Command.withExamples([
    {
      command: "effect-retry sweep outage fleets.0.rate --from 60 --to 300 --expect 'recoversInRuns 5 of 5'"
    },
    { command: "effect-retry sweep retries.json fleets.0.policy.quota.capacity --from 10 --to 1000" }
  ])
)

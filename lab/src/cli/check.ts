import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { judge, type Scenario } from "../Simulator.ts"
import { runsExpected } from "../simulator/expectations.ts"
import type { Runs } from "./charts/run.ts"
import { checkJUnit } from "./checkJUnit.ts"
import { checkMarkdown } from "./checkMarkdown.ts"
import { checkText } from "./checkText.ts"
import * as flags from "./flags.ts"
import { type Checked, failedOf, failedText, seedsOf } from "./judgments.ts"
import { asJson, writableIfAsked, writeIfAsked } from "./output.ts"
import { inThreads } from "./pool.ts"
import { part, type Progress, progress } from "./progress.ts"
import { Refusal } from "./refusal.ts"
import { runAll } from "./runs.ts"
import { scenarioFrom } from "./scenarios.ts"
import { print, screen } from "./screen.ts"
import { seeded, writtenLabel } from "./simulate.ts"
import { quoted } from "./text.ts"
import { printWarnings, warningTexts } from "./warnings.ts"

/** Expectations that do not hold. The findings have been printed. The exit code is 3. */
export class ExpectationsFailed extends Data.TaggedError("ExpectationsFailed")<{ readonly message: string }> {}

interface Asked {
  readonly source: string
  readonly scenario: Scenario
}

/** Everything is read before anything is run, and every mistake is reported. */
const readAll = Effect.fnUntraced(function*(
  sources: ReadonlyArray<string>,
  expect: ReadonlyArray<string>,
  seed: Option.Option<number>
) {
  const read = yield* Effect.forEach(sources, (source) =>
    Effect.result(
      Effect.flatMap(Effect.flatMap(scenarioFrom(source), (read) => flags.withExpectations(read, expect)), (scenario) =>
        scenario.expect === undefined
          ? Effect.fail(
            new Refusal({
              lines: [
                `${
                  quoted(source)
                } has no expectations: add "expect", such as { "succeed": ">= 99 %", "sendsPerCall": "<= 1.2" }`
              ]
            })
          )
          : Effect.succeed<Asked>({ source, scenario: seeded(scenario, seed) }))
    ))
  const lines = read.flatMap((one) => one._tag === "Failure" ? one.failure.lines : [])
  if (lines.length > 0) return yield* new Refusal({ lines })
  return read.flatMap((one) => one._tag === "Success" ? [one.success] : [])
})

const checked = Effect.fnUntraced(function*(
  { scenario, source }: Asked,
  runs: Option.Option<number>,
  progress: Progress
) {
  let shown: Runs | undefined
  const label = writtenLabel(scenario)
  const expected = Option.fromUndefinedOr(runsExpected(scenario.expect))
  yield* runAll(
    [{ label, scenario }],
    Option.orElse(runs, () => expected),
    (found) => Effect.sync(() => void (shown = found)),
    progress
  )
  const { results } = shown![0]
  const warnings = warningTexts(shown![0])
  yield* printWarnings(source, warnings)
  const outcome: Checked = {
    source,
    name: scenario.name,
    seeds: seedsOf(results),
    judgments: judge(results),
    warnings
  }
  return outcome
})

export const check = Command.make(
  "check",
  {
    scenarios: Argument.String("scenario").pipe(
      Argument.withDescription("Files or built-in scenarios, each with expectations"),
      Argument.atLeast(1)
    ),
    expect: flags.expect,
    seed: flags.seed,
    runs: flags.runs,
    workers: flags.workers,
    json: flags.json,
    junit: flags.file("junit", "Write JUnit XML, for a CI system"),
    markdown: flags.file("markdown", "Write Markdown, for a pull request comment")
  },
  Effect.fnUntraced(function*({ expect, json, junit, markdown, runs, scenarios, seed }) {
    const asked = yield* readAll(scenarios, expect, seed)
    yield* writableIfAsked(junit, "junit")
    yield* writableIfAsked(markdown, "markdown")
    const whole = yield* progress
    const all = yield* Effect.forEach(
      asked,
      (one, index) => checked(one, runs, part(whole, index / asked.length, (index + 1) / asked.length))
    )
    yield* writeIfAsked(junit, () => checkJUnit(all))
    yield* writeIfAsked(markdown, () => checkMarkdown(all))
    const count = failedOf(all)
    yield* json ? Console.log(asJson({ ...count, scenarios: all })) : print(checkText(all, yield* screen))
    if (count.failed > 0) return yield* new ExpectationsFailed({ message: failedText(count) })
  }, inThreads)
).pipe(
  Command.withShortDescription("Check scenarios against their expectations"),
  Command.withDescription(
    "Runs scenarios and reports whether each meets its \"expect\". The exit code is 3 if one does " +
      "not. For CI: JUnit XML for the test report, Markdown for a pull request."
  ),
  Command.withExamples([
    { command: "effect-retry check retries.json" },
    { command: "effect-retry check scenarios/*.json --junit retries.xml --markdown retries.md" }
  ])
)

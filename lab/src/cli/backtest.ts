import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Simulator from "../Simulator.ts"
import { backtestTable } from "./backtestTable.ts"
import { backtestSvg } from "./charts/backtestChart.ts"
import { type AllSeries, backtestReport, type Series } from "./charts/backtestReport.ts"
import { read } from "./files.ts"
import * as flags from "./flags.ts"
import { parsed } from "./json.ts"
import { seriesOfCsv } from "./measuredCsv.ts"
import { asJson, writableIfAsked, writeIfAsked } from "./output.ts"
import { policyFrom } from "./policies.ts"
import { inThreads } from "./pool.ts"
import { progress } from "./progress.ts"
import { Refusal, refusal } from "./refusal.ts"
import { scenarioFrom } from "./scenarios.ts"
import { print, type Screen, screen } from "./screen.ts"
import { seeded } from "./simulate.ts"
import { plain } from "./text.ts"
import { printWarningsOf } from "./warnings.ts"

const usualRuns = 20

const measured = Flag.String("measured").pipe(
  Flag.withMetavar("FILE"),
  Flag.withDescription("The measurements for each second, as JSON or CSV; repeatable"),
  Flag.atLeast(1)
)

const policy = Flag.String("policy").pipe(
  Flag.withMetavar("POLICY"),
  Flag.withDescription("A policy: a name, or its steps as JSON; once, or once for each --measured"),
  Flag.atLeast(0)
)

/** The measured series of a file. */
const measuredFrom = Effect.fnUntraced(function*(path: string) {
  const text = yield* read(path)
  const input = /\.csv$/i.test(path) ? yield* seriesOfCsv(path, text) : yield* parsed(`${path}:`, text)
  return yield* Effect.mapError(
    Simulator.decodeMeasured(input),
    ({ problems }) =>
      new Refusal({
        lines: problems.map(({ path: at, problem }) => at === "" ? `${path}: ${problem}` : `${path}: ${at}: ${problem}`)
      })
  )
})

/** Refuses flags that do not go together: a chart shows one series, and there is one policy for all or one for each. */
const checked = Effect.fnUntraced(
  function*(measured: number, policies: number, svg: Option.Option<string>) {
    if (policies > 1 && policies !== measured) {
      return yield* refusal(
        `--policy is given ${policies} times, --measured ${measured} times: give one policy, or one for each series`
      )
    }
    if (measured > 1 && Option.isSome(svg)) {
      return yield* refusal("--svg draws one series: --report draws several")
    }
  }
)

/** Reads a series, and predicts it. */
const seriesOf = Effect.fnUntraced(
  function*(path: string, policy: string | undefined, written: Simulator.Scenario, runs: number) {
    const scenario = policy === undefined ? written : Simulator.withPolicy(written, yield* policyFrom(policy))
    const measured = yield* measuredFrom(path)
    const found = yield* Simulator.backtest(scenario, measured, { runs }).pipe(
      Effect.mapError(({ message }) => refusal(`${scenario.name}: ${message}`))
    )
    const { name } = (yield* Path.Path).parse(path)
    return { name, scenario, measured, found } satisfies Series
  }
)

const dataOf = ({ found, scenario }: Series) => ({ scenario: scenario.name, ...found })

const jsonOf = (all: AllSeries): string =>
  asJson(all.length === 1 ? dataOf(all[0]) : all.map((one) => ({ name: one.name, ...dataOf(one) })))

const textOf = (all: AllSeries, screen: Screen): string =>
  all.map(({ found, name, scenario }) =>
    backtestTable(all.length === 1 ? scenario : { ...scenario, name }, found, screen)
  ).join("\n\n")

export const backtest = Command.make(
  "backtest",
  {
    scenario: flags.scenario,
    measured,
    policy,
    seed: flags.seed,
    runs: flags.runs,
    workers: flags.workers,
    json: flags.json,
    report: flags.report,
    svg: flags.svg
  },
  Effect.fnUntraced(function*(asked) {
    const written = seeded(yield* scenarioFrom(asked.scenario), asked.seed)
    yield* checked(asked.measured.length, asked.policy.length, asked.svg)
    yield* writableIfAsked(asked.svg, "picture")
    yield* writableIfAsked(asked.report, "page")
    yield* printWarningsOf(asked.scenario, written)
    const shown = yield* progress
    const runs = Option.getOrElse(asked.runs, () => usualRuns)
    const [first, ...others] = yield* Effect.forEach(
      asked.measured,
      (path, index) =>
        Effect.ensuring(
          seriesOf(path, asked.policy[index] ?? asked.policy[0], written, runs),
          shown.show((index + 1) / asked.measured.length, plain(path))
        )
    ).pipe(Effect.ensuring(shown.clear))
    const all: AllSeries = [first!, ...others]
    yield* writeIfAsked(asked.svg, () => backtestSvg(all[0].scenario, all[0].found))
    yield* writeIfAsked(asked.report, () => backtestReport(all))
    yield* asked.json ? Console.log(jsonOf(all)) : print(textOf(all, yield* screen))
  }, inThreads)
).pipe(
  Command.withShortDescription("Compare a scenario with what was measured"),
  Command.withDescription(
    "Runs a scenario with the measured calls, second by second, and reports how far off it is: " +
      "each figure as measured and as predicted, and both over time."
  ),
  Command.withExamples([
    { command: "effect-retry backtest outage.json --measured incident.csv" },
    { command: "effect-retry backtest outage.json --measured incident.json --policy awsStandard --svg both.svg" },
    { command: "effect-retry backtest outage.json --measured before.csv --measured after.csv --report both.html" }
  ])
)

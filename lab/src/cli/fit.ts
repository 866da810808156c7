import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import { arrivalsText } from "../fit/arrivals.ts"
import { unitNames } from "../fit/fields.ts"
import { type Fitted, fittedOf } from "../fit/fitted.ts"
import { formats } from "../fit/formats.ts"
import { Log } from "../fit/log.ts"
import { scenarioOf } from "../fit/scenario.ts"
import * as Simulator from "../Simulator.ts"
import { staysInside } from "./arrivalsFile.ts"
import { counted, percent } from "./charts/format.ts"
import { writableNew, write } from "./files.ts"
import { firstBrokenOf, fitTable, remarksOf } from "./fitTable.ts"
import * as flags from "./flags.ts"
import { schemaFor } from "./init.ts"
import { readLog } from "./logs.ts"
import { asJson, word } from "./output.ts"
import { part, progress } from "./progress.ts"
import { refusal } from "./refusal.ts"
import { print, screen } from "./screen.ts"
import { plain, quoted } from "./text.ts"
import { printWarnings } from "./warnings.ts"

const field = (name: string, what: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("FIELD"),
    Flag.withDescription(`JSON lines, CSV: the field with ${what}; dots reach inside`),
    Flag.optional
  )

const choices = <const A extends string>(name: string, of: ReadonlyArray<A>, what: string) =>
  Flag.Literals(name, of).pipe(Flag.withDescription(what), Flag.optional)

const usualTake = Duration.minutes(10)

/** The scenario's name, from its log's: letters and digits. */
const nameOf = (file: string): string => file.replace(/\.gz$/, "").replaceAll(/[^\w.-]+/g, "-").slice(0, 60) || "log"

const readAll = Effect.fnUntraced(function*(files: ReadonlyArray<string>, log: Log) {
  const shown = yield* progress
  const remarks = yield* Effect.forEach(
    files,
    (file, index) => readLog(file, log, part(shown, index / files.length, (index + 1) / files.length))
  ).pipe(Effect.ensuring(shown.clear))
  return remarks.filter((remark) => remark !== undefined)
})

/** What cannot be fitted, and why. */
const refusalOf = ({ broken, chosen, firstBroken, meter }: Log) => {
  if (chosen === undefined || meter.requests === 0) {
    const seen = firstBroken === undefined
      ? "the log is empty"
      : `no line could be parsed, such as ${quoted(firstBroken.line)}`
    return refusal(
      `${seen} (${broken} lines): formats are ${formats.join(", ")}; --time, --duration, --status name the fields`
    )
  }
  const unclear = chosen.fields?.unclear
  return unclear === undefined
    ? undefined
    : refusal(`the unit of the field ${quoted(unclear)} is unclear: --unit ${unitNames.join(", --unit ")}`)
}

const flagsOfFit = {
  logs: Argument.String("log").pipe(
    Argument.withDescription("Access logs, oldest first; gzipped if the name ends in .gz"),
    Argument.atLeast(1)
  ),
  format: choices("format", formats, "Default: detected"),
  time: field("time", "the time"),
  duration: field("duration", "how long the request took"),
  unit: choices("unit", unitNames, "The unit of --duration"),
  status: field("status", "the status"),
  attempt: field("attempt", "the attempt, from 1"),
  capacity: flags.capacity("Requests per second the service can handle, in place of the fitted capacity"),
  take: flags.duration("take", "At most how much of the log to replay, the busiest part. Default 10 minutes"),
  arrivals: flags.file(
    "arrivals",
    "With --out: write the calls of each second, as JSON or CSV; backtest --measured reads the CSV"
  ),
  out: flags.file("out", "Write the scenario"),
  force: flags.force,
  json: flags.json
}

type Asked = Command.Command.Config.Infer<typeof flagsOfFit>

const logFor = ({ attempt, duration, format, status, time, unit }: Asked): Log =>
  new Log({
    format: Option.getOrUndefined(format),
    names: {
      time: Option.getOrUndefined(time),
      duration: Option.getOrUndefined(duration),
      unit: Option.getOrUndefined(unit),
      status: Option.getOrUndefined(status),
      attempt: Option.getOrUndefined(attempt)
    }
  })

/** The file of the arrivals as the scenario names it. */
const arrivalsNextTo = Effect.fnUntraced(function*({ arrivals, force, out }: Asked) {
  if (Option.isNone(arrivals)) return undefined
  if (Option.isNone(out)) return yield* refusal("--arrivals goes with --out: the scenario names the file")
  const paths = yield* Path.Path
  const [file, scenario] = [paths.resolve(arrivals.value), paths.resolve(out.value)]
  const name = paths.relative(paths.dirname(scenario), file).replaceAll("\\", "/")
  if (file === scenario || !staysInside(name)) {
    return yield* refusal(
      `--arrivals: ${quoted(arrivals.value)} has to be another file in the folder of ${quoted(out.value)} or below`
    )
  }
  yield* writableNew(arrivals.value, force)
  return name
})

const scenarioFor = Effect.fnUntraced(function*(
  fitted: Fitted,
  { capacity, logs, out, take }: Asked,
  arrivals: string | undefined
) {
  const paths = yield* Path.Path
  return scenarioOf(fitted, {
    name: nameOf(paths.basename(logs[0]!)),
    takeMillis: Duration.toMillis(Option.getOrElse(take, () => usualTake)),
    capacity: Option.getOrUndefined(capacity),
    arrivals,
    schema: Option.isSome(out) ? yield* schemaFor(out.value) : undefined
  })
})

/** What is written is what the other commands read. */
const checkReadable = ({ bucket, buckets, scenario }: ReturnType<typeof scenarioOf>) => {
  const fleets = scenario.fleets.map((fleet) =>
    fleet.arrivals === undefined ? fleet : { ...fleet, arrivals: { bucket, calls: buckets.map(({ calls }) => calls) } }
  )
  return Effect.mapError(
    Simulator.decode({ ...scenario, fleets }),
    ({ problems: [problem] }) => {
      const cure = problem!.path.startsWith("fleets[0].arrivals") ? ": a shorter --take" : ""
      return refusal(`the scenario would be refused: ${problem!.path}: ${problem!.problem}${cure}`)
    }
  )
}

/** Of the lines: with more of them malformed the figures are of something else. */
const tolerated = 0.05

const next = (out: Option.Option<string>): string =>
  Option.match(out, {
    onNone: () => "--out scenario.json writes the scenario",
    onSome: (path) => `wrote ${plain(path)}; next: effect-retry simulate ${plain(word(path))}`
  })

export const fit = Command.make(
  "fit",
  flagsOfFit,
  Effect.fnUntraced(function*(asked) {
    if (Option.isSome(asked.out)) yield* writableNew(asked.out.value, asked.force)
    const arrivals = yield* arrivalsNextTo(asked)
    const log = logFor(asked)
    const damages = yield* readAll(asked.logs, log)
    const problem = refusalOf(log)
    if (problem !== undefined) return yield* problem
    const fitted = fittedOf(log.meter)
    const made = yield* scenarioFor(fitted, asked, arrivals)
    yield* checkReadable(made)
    if (Option.isSome(asked.arrivals)) {
      yield* write(asked.arrivals.value, arrivalsText(asked.arrivals.value, made.buckets, made.bucket))
    }
    if (Option.isSome(asked.out)) yield* write(asked.out.value, `${asJson(made.scenario)}\n`)
    const { broken, chosen, lines } = log
    if (broken > tolerated * lines) {
      yield* printWarnings(
        asked.logs.join(", "),
        [`${percent(broken / lines)} of the lines are malformed, and left out: ${firstBrokenOf(log)}`]
      )
    }
    if (asked.json) {
      return yield* Console.log(
        asJson({ format: chosen?.format, lines, broken, damages, fitted, scenario: made.scenario })
      )
    }
    const { columns } = yield* screen
    yield* print([
      `${chosen?.format}: ${counted(lines)} lines, ${counted(broken)} malformed`,
      ...fitTable(fitted, columns),
      "",
      ...remarksOf(fitted, made, log),
      ...damages,
      next(asked.out)
    ].join("\n"))
  })
).pipe(
  Command.withShortDescription("Make a scenario from access logs"),
  Command.withDescription(
    "Reads access logs of nginx, an ALB or Envoy, JSON lines, CSV or OTLP JSON, and reports rate, " +
      "latency, statuses, retries and capacity with 95 % intervals; --out writes a scenario."
  ),
  Command.withExamples([
    { command: "effect-retry fit access.log.2.gz access.log.1 access.log --out scenario.json" },
    { command: "effect-retry fit requests.csv --time at --duration took --unit ms --status code" }
  ])
)

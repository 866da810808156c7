import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import { unitNames } from "../fit/fields.ts"
import { type Fitted, fittedOf } from "../fit/fitted.ts"
import { formats } from "../fit/formats.ts"
import { Log } from "../fit/log.ts"
import { scenarioOf } from "../fit/scenario.ts"
import { counted } from "./charts/format.ts"
import { writable, write } from "./files.ts"
import { fitTable, remarksOf } from "./fitTable.ts"
import * as flags from "./flags.ts"
import { schemaFor } from "./init.ts"
import { readLog } from "./logs.ts"
import { asJson, word } from "./output.ts"
import { progressLine } from "./progress.ts"
import { refusal } from "./refusal.ts"
import { plain, quoted } from "./text.ts"

const field = (name: string, what: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("FIELD"),
    Flag.withDescription(`JSON lines and CSV: the field of ${what}; dots lead inside`),
    Flag.optional
  )

const choices = <const A extends string>(name: string, of: ReadonlyArray<A>, what: string) =>
  Flag.Literals(name, of).pipe(Flag.withDescription(what), Flag.optional)

const usualTake = Duration.minutes(10)

/** What a scenario is called after its log: letters and digits of its name. */
const nameOf = (file: string): string => file.replace(/\.gz$/, "").replaceAll(/[^\w.-]+/g, "-").slice(0, 60) || "log"

const readAll = Effect.fnUntraced(function*(files: ReadonlyArray<string>, log: Log) {
  const line = yield* progressLine
  const remarks = yield* Effect.ensuring(Effect.forEach(files, (file) => readLog(file, log, line)), line.clear)
  return remarks.filter((remark) => remark !== undefined)
})

/** What cannot be fitted, and why. */
const refusalOf = ({ broken, chosen, firstBroken, meter }: Log) => {
  if (chosen === undefined || meter.requests === 0) {
    const seen = firstBroken === undefined
      ? "the log is empty"
      : `no line was understood, such as ${quoted(firstBroken)}`
    return refusal(
      `${seen} (${broken} lines): formats are ${formats.join(", ")}; --time, --duration, --status name fields`
    )
  }
  const unclear = chosen.unclear()
  return unclear === undefined
    ? undefined
    : refusal(`nobody can say what the field ${quoted(unclear)} is in: --unit ${unitNames.join(", --unit ")}`)
}

/** Refuses a path that holds something already, unless it may go. */
const writableNew = Effect.fnUntraced(function*(path: string, force: boolean) {
  const fs = yield* FileSystem.FileSystem
  const exists = yield* Effect.orElseSucceed(fs.exists(path), () => false)
  if (exists && !force) return yield* refusal(`${quoted(path)} is there already: --force overwrites it`)
  yield* writable(path)
})

const flagsOfFit = {
  logs: Argument.String("log").pipe(
    Argument.withDescription("Access logs, the oldest first; packed where the name ends with .gz"),
    Argument.atLeast(1)
  ),
  format: choices("format", formats, "Default: what reads it"),
  time: field("time", "the time"),
  duration: field("duration", "how long the request took"),
  unit: choices("unit", unitNames, "What --duration is in"),
  status: field("status", "the status"),
  attempt: field("attempt", "the attempt, from 1"),
  capacity: Flag.Finite("capacity").pipe(
    Flag.filter((value) => value > 0, () => "requests per second, above 0"),
    Flag.withMetavar("NUMBER"),
    Flag.withDescription("Requests per second that the service bears, if you know better"),
    Flag.optional
  ),
  take: flags.duration("take", "The longest stretch that the scenario plays, the busiest. Default 10 minutes"),
  out: Flag.String("out").pipe(Flag.withMetavar("FILE"), Flag.withDescription("Write the scenario"), Flag.optional),
  force: Flag.Boolean("force").pipe(Flag.withDescription("Overwrite a file that is there"), Flag.withDefault(false)),
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

const scenarioFor = Effect.fnUntraced(function*(fitted: Fitted, { capacity, logs, out, take }: Asked) {
  const paths = yield* Path.Path
  return scenarioOf(fitted, {
    name: nameOf(paths.basename(logs[0]!)),
    takeMillis: Duration.toMillis(Option.getOrElse(take, () => usualTake)),
    capacity: Option.getOrUndefined(capacity),
    schema: Option.isSome(out) ? yield* schemaFor(out.value) : undefined
  })
})

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
    const log = logFor(asked)
    const damages = yield* readAll(asked.logs, log)
    const problem = refusalOf(log)
    if (problem !== undefined) return yield* problem
    const fitted = fittedOf(log.meter)
    const made = yield* scenarioFor(fitted, asked)
    if (Option.isSome(asked.out)) yield* write(asked.out.value, `${asJson(made.scenario)}\n`)
    const { broken, chosen, lines } = log
    yield* Console.log(
      asked.json
        ? asJson({ format: chosen?.format, lines, broken, damages, fitted, scenario: made.scenario })
        : [
          `${chosen?.format}: ${counted(lines)} lines, ${counted(broken)} broken`,
          ...fitTable(fitted),
          "",
          ...remarksOf(fitted, made, log),
          ...damages,
          next(asked.out)
        ].join("\n")
    )
  })
).pipe(
  Command.withShortDescription("Make a scenario from access logs"),
  Command.withDescription(
    "Reads access logs of nginx, an ALB or Envoy, JSON lines, CSV or OTLP JSON, and tells rate,\n" +
      "  latency, statuses, retries and capacity, each with how sure it is; with --out as a scenario."
  ),
  Command.withExamples([
    { command: "effect-retry fit access.log.2.gz access.log.1 access.log --out scenario.json" },
    { command: "effect-retry fit requests.csv --time at --duration took --unit ms --status code" }
  ])
)

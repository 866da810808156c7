import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Simulator from "../Simulator.ts"
import { compared } from "./compare.ts"
import { writableNew, write } from "./files.ts"
import * as flags from "./flags.ts"
import { Installed } from "./Installed.ts"
import { asJson, word, writableIfAsked } from "./output.ts"
import { policyFrom } from "./policies.ts"
import { kinds, type Question, scenarioOf } from "./question.ts"
import { Refusal } from "./refusal.ts"
import { plain } from "./text.ts"

/** Where an editor finds the schema: next to the scenario if the package is installed there, otherwise on the web. */
export const schemaFor = Effect.fnUntraced(function*(file: string) {
  const { folder, version } = yield* Installed
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const own = yield* Effect.orElseSucceed(fs.realPath(folder), () => folder)
  let here = paths.dirname(paths.resolve(file))
  while (true) {
    const candidate = paths.join(here, "node_modules", "@effect-retry", "lab")
    const real = yield* Effect.orElseSucceed(fs.realPath(candidate), () => undefined)
    if (real === own) {
      const schema = paths.join(candidate, "dist", "scenario.schema.json")
      const relative = paths.relative(paths.dirname(paths.resolve(file)), schema).replaceAll("\\", "/")
      return relative.startsWith("../") ? relative : `./${relative}`
    }
    const above = paths.dirname(here)
    if (above === here) return `https://unpkg.com/@effect-retry/lab@${version}/dist/scenario.schema.json`
    here = above
  }
})

const positive = (name: string, what: string, usual: number) =>
  Flag.Finite(name).pipe(
    Flag.filter((value) => value > 0, () => "a number above 0"),
    Flag.withMetavar("NUMBER"),
    Flag.withDescription(`${what}. Default ${usual}`),
    Flag.withDefault(usual)
  )

const settings = {
  file: Argument.String("file").pipe(
    Argument.withDescription("Where to write it. Default scenario.json"),
    Argument.withDefault("scenario.json")
  ),
  rate: positive("rate", "Calls per second of all clients", 200),
  clients: Flag.Int("clients").pipe(
    Flag.filter((value) => value >= 1, () => "a whole number from 1"),
    Flag.withMetavar("NUMBER"),
    Flag.withDescription("Client processes, each with its own quota. Default 4"),
    Flag.withDefault(4)
  ),
  p50: flags.duration("p50", "The service's median latency when healthy"),
  p99: flags.duration("p99", "The service's 99th percentile latency when healthy"),
  capacity: flags.capacity("Requests per second the service can handle. Default 1.5 times the rate"),
  timeout: flags.duration("timeout", "How long an attempt waits. Default 1s, or longer with a long p99"),
  brownout: flags.duration("brownout", "How long the service is degraded. Default: a 10s outage"),
  factor: positive("factor", "With --kind slow: how many times as long the work takes", 20),
  queue: Flag.Int("queue").pipe(
    Flag.filter((value) => value >= 0, () => "a whole number from 0"),
    Flag.withMetavar("NUMBER"),
    Flag.withDescription("Requests that may wait; more are refused. Default unlimited"),
    Flag.optional
  ),
  kind: Flag.Literals("kind", kinds).pipe(
    Flag.withDescription("The kind of brownout. Default fail"),
    Flag.withDefault<Question["kind"]>("fail")
  ),
  policy: Flag.String("policy").pipe(
    Flag.withMetavar("POLICY"),
    Flag.withDescription("A name, or its steps as JSON. With several, it is also run with each"),
    Flag.atLeast(0)
  ),
  report: flags.report,
  force: flags.force
}

export const init = Command.make(
  "init",
  settings,
  Effect.fnUntraced(function*({ brownout, capacity, file, force, p50, p99, policy, queue, report, timeout, ...asked }) {
    yield* writableNew(file, force)
    const [first = "awsStandard", ...others] = yield* Effect.forEach(policy, policyFrom)
    const input = scenarioOf({
      ...asked,
      brownout: Option.getOrUndefined(brownout),
      capacity: Option.getOrUndefined(capacity),
      p50: Option.getOrUndefined(p50),
      p99: Option.getOrUndefined(p99),
      queue: Option.getOrUndefined(queue),
      timeout: Option.getOrUndefined(timeout),
      policy: first
    }, yield* schemaFor(file))
    const scenario = yield* Effect.mapError(
      Simulator.decode(input),
      ({ problems }) => new Refusal({ lines: problems.map(({ path, problem }) => `${path}: ${problem}`) })
    )
    yield* writableIfAsked(report, "page")
    yield* write(file, `${asJson(input)}\n`)
    if (others.length === 0 && Option.isNone(report)) {
      return yield* Console.log(`wrote ${plain(file)}; next: effect-retry simulate ${plain(word(file))}`)
    }
    yield* Console.error(`wrote ${plain(file)}`)
    yield* compared(scenario, others, { scenario: file, runs: Option.none(), json: false, report })
  })
).pipe(
  Command.withShortDescription("Write a starter scenario, and answer a first question"),
  Command.withDescription(
    "Writes a starter scenario: what you know about your service, and guesses for the rest, listed in " +
      "its description. With several policies it is also run with each. Its \"$schema\" gives editors " +
      "each key, its default and its limits."
  ),
  Command.withExamples([
    { command: "effect-retry init" },
    {
      command: "effect-retry init --rate 400 --clients 30 --p99 80ms --brownout 20s --policy none --policy naive"
    }
  ])
)

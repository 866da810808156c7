import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import type { ScenarioInput } from "../Simulator.ts"
import { write } from "./files.ts"
import { Installed } from "./Installed.ts"
import { asJson, word } from "./output.ts"
import { refusal } from "./refusal.ts"
import { plain, quoted } from "./text.ts"

const starter = (schema: string): ScenarioInput => ({
  $schema: schema,
  name: "my-service",
  description: "For ten seconds the service answers every request with an error.",
  seed: 1,
  duration: "2 minutes",
  fleets: [
    {
      name: "application",
      to: "service",
      processes: 4,
      rate: 200,
      timeout: "1 second",
      network: "5 millis",
      policy: "awsStandard"
    }
  ],
  services: [
    {
      name: "service",
      capacity: 300,
      latency: { exponential: "20 millis" },
      outages: [{ kind: "fail", from: "20 seconds", to: "30 seconds" }]
    }
  ]
})

/** Where an editor finds the schema: beside the scenario if the package is installed there, otherwise on the web. */
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

export const init = Command.make(
  "init",
  {
    file: Argument.String("file").pipe(
      Argument.withDescription("Where to write it. Default scenario.json"),
      Argument.withDefault("scenario.json")
    ),
    force: Flag.Boolean("force").pipe(
      Flag.withDescription("Overwrite a file that is there"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function*({ file, force }) {
    const fs = yield* FileSystem.FileSystem
    const exists = yield* Effect.orElseSucceed(fs.exists(file), () => false)
    if (exists && !force) return yield* refusal(`${quoted(file)} is there already: --force overwrites it`)
    yield* write(file, `${asJson(starter(yield* schemaFor(file)))}\n`)
    yield* Console.log(`wrote ${plain(file)}; next: effect-retry simulate ${plain(word(file))}`)
  })
).pipe(
  Command.withShortDescription("Write a scenario to begin with"),
  Command.withDescription(
    "Writes a scenario to begin with. Its \"$schema\" tells editors each key, its default and its limits."
  )
)

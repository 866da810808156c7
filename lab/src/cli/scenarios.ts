import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import * as Simulator from "../Simulator.ts"
import { suggestion } from "../simulator/suggestion.ts"
import { withFiles } from "./arrivalsFile.ts"
import { scenarioIn } from "./charts/reproduce.ts"
import { read } from "./files.ts"
import { Installed } from "./Installed.ts"
import { parsed } from "./json.ts"
import { Refusal, refusal } from "./refusal.ts"
import { quoted } from "./text.ts"

const shippedFolder = Effect.gen(function*() {
  const { folder } = yield* Installed
  const paths = yield* Path.Path
  return paths.join(folder, "scenarios")
})

/** The names of the built-in scenarios, in alphabetical order. */
export const shippedNames = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const folder = yield* shippedFolder
  const files = yield* Effect.mapError(
    fs.readDirectory(folder),
    () => refusal(`the built-in scenarios are not in ${quoted(folder)}`)
  )
  return files.filter((file) => file.endsWith(".json")).map((file) => file.slice(0, -".json".length)).sort()
})

/** The JSON of a file with a scenario: all of it, or what a report page has of it. */
const jsonOf = (path: string, text: string): Effect.Effect<string, Refusal> => {
  if (!/^\s*<!doctype html/i.test(text)) return Effect.succeed(text)
  const json = scenarioIn(text)
  return json === undefined
    ? Effect.fail(refusal(`${path}: is a page without a whole scenario: use the scenario's own file`))
    : Effect.succeed(json)
}

const decoded = Effect.fnUntraced(function*(path: string, text: string) {
  const json = yield* jsonOf(path, text)
  const input = yield* withFiles(yield* parsed(`${path}:`, json), path)
  return yield* Effect.mapError(
    Simulator.decode(input),
    ({ problems }) =>
      new Refusal({
        lines: problems.map(({ path: at, problem }) => at === "" ? `${path}: ${problem}` : `${path}: ${at}: ${problem}`)
      })
  )
})

/** A built-in scenario. */
export const shipped = Effect.fnUntraced(function*(name: string) {
  const paths = yield* Path.Path
  const path = paths.join(yield* shippedFolder, `${name}.json`)
  return yield* decoded(path, yield* read(path))
})

const looksLikeAFile = (text: string): boolean => /[/\\]|\.(?:json|html)$/i.test(text)

/** A scenario as written on the command line: the name of a built-in one, otherwise a file, or a report with one. */
export const scenarioFrom = Effect.fnUntraced(function*(text: string) {
  const fs = yield* FileSystem.FileSystem
  const names = yield* shippedNames
  if (names.includes(text)) return yield* shipped(text)
  if (looksLikeAFile(text) || (yield* Effect.orElseSucceed(fs.exists(text), () => false))) {
    return yield* decoded(text, yield* read(text))
  }
  return yield* refusal(`${quoted(text)} is neither a built-in scenario nor a file: ${suggestion(text, names)}`)
})

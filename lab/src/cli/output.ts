import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stdio from "effect/Stdio"
import { summarize } from "../Simulator.ts"
import { report } from "./charts/report.ts"
import type { Run, Runs } from "./charts/run.ts"
import { writable, write } from "./files.ts"
import { plain } from "./text.ts"

/** A word of a command, quoted where a shell would take it apart. */
export const word = (text: string): string =>
  /^[\w./:=,@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`

/** The command as it was typed. */
const command = Effect.gen(function*() {
  const { args } = yield* Stdio.Stdio
  return ["effect-retry", ...yield* args].map((text) => plain(word(text))).join(" ")
})

/** Data as text. */
export const asJson = (data: unknown): string => JSON.stringify(data, undefined, 2)

/** The runs of a scenario as data: what they come to, and each of them. */
export const dataOf = ({ label, results }: Run) => ({
  label,
  seeds: results.map(({ scenario }) => scenario.seed),
  summary: summarize(results),
  results
})

/** Writes a file that was asked for, and says so. */
export const writeAndTell = Effect.fnUntraced(function*(path: string, text: string) {
  yield* write(path, text)
  yield* Console.error(`wrote ${plain(path)}`)
})

/** Refuses a path that was asked for and cannot be written. */
export const writableIfAsked = (path: Option.Option<string>) =>
  Option.match(path, { onNone: () => Effect.void, onSome: writable })

/** Writes the page if it was asked for, then prints the text. */
export const finishing = (path: Option.Option<string>, textOf: (runs: Runs) => string) =>
  Effect.fnUntraced(function*(runs: Runs) {
    if (Option.isSome(path)) {
      yield* writeAndTell(path.value, report(runs, { command: yield* command }))
    }
    yield* Console.log(textOf(runs))
  })

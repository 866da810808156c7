import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stdio from "effect/Stdio"
import { type Edge, summarize } from "../Simulator.ts"
import type { Maps } from "./charts/mapChart.ts"
import { report } from "./charts/report.ts"
import type { Run, Runs } from "./charts/run.ts"
import { type Edges, edgesOf } from "./edges.ts"
import { writable, write } from "./files.ts"
import type { Progress } from "./progress.ts"
import { plain } from "./text.ts"
import { printWarningsOfRuns, warningTexts } from "./warnings.ts"

/** A word of a command, quoted where a shell would take it apart. */
export const word = (text: string): string =>
  /^[\w./:=,@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`

/** The command as it was typed. */
const command = Effect.gen(function*() {
  const { args } = yield* Stdio.Stdio
  return ["effect-retry", ...yield* args].map((text) => plain(word(text))).join(" ")
})

/** Data as text, which cannot move the cursor either: the same data without what `plain` escapes. */
export const asJson = (data: unknown): string =>
  JSON.stringify(data, undefined, 2).replace(
    /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`
  )

/** The runs of a scenario as data: the summary, and each run. */
export const dataOf = (run: Run, edge: Edge | undefined) => ({
  label: run.label,
  seeds: run.results.map(({ scenario }) => scenario.seed),
  summary: summarize(run.results),
  warnings: warningTexts(run),
  ...edge === undefined ? {} : { edge },
  results: run.results
})

/** Writes a file if it was asked for, and prints its path. */
export const writeIfAsked = (path: Option.Option<string>, text: () => string) =>
  Option.match(path, {
    onNone: () => Effect.void,
    onSome: (path) => Effect.andThen(write(path, text()), Console.error(`wrote ${plain(path)}`))
  })

/** How each kind of file begins. */
const begins = {
  code: "import ",
  junit: "<?xml",
  markdown: "<!-- effect-retry check",
  page: "<!DOCTYPE html>",
  picture: "<svg"
}

/** Refuses a path that was asked for and cannot be written. */
export const writableIfAsked = (path: Option.Option<string>, kind: keyof typeof begins) =>
  Option.match(path, { onNone: () => Effect.void, onSome: (path) => writable(path, begins[kind]) })

/**
 * Prints warnings, writes the page if it was asked for, with maps if there are any, then what there is to print. If the runs
 * were ended early, no edges are looked for.
 */
export const finishing = <E, R>(
  { report: path, scenario: source }: { readonly report: Option.Option<string>; readonly scenario: string },
  print: (runs: Runs, edges: Edges) => Effect.Effect<void, E, R>,
  maps?: Maps
) =>
  Effect.fnUntraced(function*(runs: Runs, isWhole: boolean, progress: Progress) {
    yield* printWarningsOfRuns(source, runs)
    const edges = isWhole ? yield* edgesOf(runs, progress) : []
    const typed = yield* command
    yield* writeIfAsked(path, () => report(runs, { command: typed, maps }))
    yield* print(runs, edges)
  })

import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { within } from "../explain/layout.ts"
import { type Scenario, type SimulationResult, warnings } from "../Simulator.ts"
import type { Run, Runs } from "./charts/run.ts"
import { screen } from "./screen.ts"
import { plain } from "./text.ts"

const texts = (
  label: string,
  scenario: Scenario,
  results: ReadonlyArray<SimulationResult>
): ReadonlyArray<string> =>
  warnings(scenario, results).map(({ path, problem }) => `${path === "" ? label : path}: ${problem}`)

/** Settings that are allowed but probably a mistake, and policies that recover in only some of the runs. */
export const warningTexts = ({ label, results }: Run): ReadonlyArray<string> =>
  texts(label, results[0].scenario, results)

/** Prints warnings about a file, or a built-in scenario, a line each. */
export const printWarnings = (source: string, lines: ReadonlyArray<string>) =>
  lines.length === 0
    ? Effect.void
    : Effect.flatMap(screen, ({ columns }) =>
      Console.error(
        lines.map((line) => within(`effect-retry: warning: ${plain(`${source}: ${line}`)}`, columns)).join("\n")
      ))

/** Prints each warning once. */
export const printWarningsOfRuns = (source: string, runs: Runs) =>
  printWarnings(source, [...new Set(runs.flatMap(warningTexts))])

/** Prints what can be said of a scenario before it runs. */
export const printWarningsOf = (source: string, scenario: Scenario) => printWarnings(source, texts("", scenario, []))

import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { type Scenario, type SimulationResult, warnings } from "../Simulator.ts"
import type { Run, Runs } from "./charts/run.ts"
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

/** Prints warnings, a line each. */
export const tell = (lines: ReadonlyArray<string>): Effect.Effect<void> =>
  lines.length === 0
    ? Effect.void
    : Console.error(lines.map((line) => `effect-retry: warning: ${plain(line)}`).join("\n"))

/** Prints each warning once. */
export const tellWarnings = (runs: Runs): Effect.Effect<void> => tell([...new Set(runs.flatMap(warningTexts))])

/** Prints what can be said of a scenario before it runs. */
export const tellWarningsOf = (scenario: Scenario): Effect.Effect<void> => tell(texts("", scenario, []))

import * as Data from "effect/Data"
import type { InvalidScenario, SimulationStalled } from "../Simulator.ts"

/** What the user has to change: lines for the terminal, each of which stands alone. The exit code is 2. */
export class Refusal extends Data.TaggedError("Refusal")<{ readonly lines: ReadonlyArray<string> }> {
  override get message(): string {
    return this.lines.join("\n")
  }
}

/** A refusal in one line. */
export const refusal = (line: string): Refusal => new Refusal({ lines: [line] })

/** What is wrong with a scenario, or that it does not go on. */
export const refusalOf = (error: InvalidScenario | SimulationStalled): Refusal =>
  error._tag === "InvalidScenario"
    ? new Refusal({ lines: error.problems.map(({ path, problem }) => path === "" ? problem : `${path}: ${problem}`) })
    : refusal(error.message)

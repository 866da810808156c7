import * as Data from "effect/Data"
import type { InvalidScenario, SimulationStalled } from "../Simulator.ts"

/** A mistake in the input: lines for the terminal, each complete by itself. The exit code is 2. */
export class Refusal extends Data.TaggedError("Refusal")<{ readonly lines: ReadonlyArray<string> }> {
  override get message(): string {
    return this.lines.join("\n")
  }
}

/** A refusal in one line. */
export const refusal = (line: string): Refusal => new Refusal({ lines: [line] })

/** What is wrong with a scenario, or where its virtual time is stuck. */
export const refusalOf = (error: InvalidScenario | SimulationStalled): Refusal =>
  error._tag === "InvalidScenario"
    ? new Refusal({ lines: error.problems.map(({ path, problem }) => path === "" ? problem : `${path}: ${problem}`) })
    : refusal(error.message)

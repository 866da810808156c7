import * as Data from "effect/Data"

/** What the user has to change: lines for the terminal, each of which stands alone. The exit code is 2. */
export class Refusal extends Data.TaggedError("Refusal")<{ readonly lines: ReadonlyArray<string> }> {
  override get message(): string {
    return this.lines.join("\n")
  }
}

/** A refusal in one line. */
export const refusal = (line: string): Refusal => new Refusal({ lines: [line] })

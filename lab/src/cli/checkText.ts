import { type Checked, expectationText, failedOf, failedText, foundText, runsText } from "./judgments.ts"
import { plain, table } from "./text.ts"

/** The expectations of scenarios as plain text. */
export const checkText = (all: ReadonlyArray<Checked>): string =>
  [
    ...all.flatMap(({ judgments, name, seeds, source }) => [
      `${plain(name)}${name === source ? "" : ` (${plain(source)})`}: ${runsText(seeds)}`,
      ...table(
        ["expected", "", "found"],
        judgments.map((judgment) => [
          expectationText(judgment),
          judgment.holds ? "ok" : "FAILED",
          foundText(judgment)
        ])
      ),
      ""
    ]),
    failedText(failedOf(all))
  ].join("\n")

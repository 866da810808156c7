import { tableWithin } from "../explain/layout.ts"
import { type Checked, expectationText, failedOf, failedText, foundText, runsText } from "./judgments.ts"
import { type Screen, unbounded } from "./screen.ts"
import { plain } from "./text.ts"

/** The expectations of scenarios as plain text. */
export const checkText = (all: ReadonlyArray<Checked>, { columns, paint }: Screen = unbounded): string =>
  [
    ...all.flatMap(({ judgments, name, seeds, source }) => [
      `${plain(name)}${name === source ? "" : ` (${plain(source)})`}: ${runsText(seeds)}`,
      ...tableWithin(columns, {
        heads: ["expected", "", "found"],
        rows: judgments.map((judgment) => [
          expectationText(judgment),
          judgment.holds ? paint("good", "ok") : paint("bad", "FAILED"),
          foundText(judgment)
        ])
      }),
      ""
    ]),
    failedText(failedOf(all))
  ].join("\n")

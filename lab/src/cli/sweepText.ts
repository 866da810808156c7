import { tableWithin } from "../explain/layout.ts"
import type { Scenario, Sweep, SweepPoint } from "../Simulator.ts"
import { expectationText, foundText } from "./judgments.ts"
import { type Screen, unbounded } from "./screen.ts"
import { plain } from "./text.ts"

const number = (value: number): string => `${Number(value.toPrecision(6))}`

const whyOf = ({ judgments }: SweepPoint): string => {
  const failed = judgments.filter(({ holds }) => !holds)
  return failed.length === 0
    ? judgments.map((judgment) => `${judgment.name} ${foundText({ ...judgment, spread: undefined })}`).join(", ")
    : failed.map((judgment) => `not ${expectationText(judgment)}: ${foundText({ ...judgment, spread: undefined })}`)
      .join(", ")
}

/** Why an answer is not certain. */
const doubts = ({ kind, monotone, points, value }: Sweep): ReadonlyArray<string> => {
  const [first, last] = [points[0]!.value, points.at(-1)!.value]
  const isAtEnd = (kind === "smallest" && value === last) || (kind === "largest" && value === first)
  return [
    ...kind === "everywhere" ? ["Every value tried satisfies them: the answer is beyond the range."] : [],
    ...isAtEnd ? ["It is at the end of the range: there may be better values beyond it."] : [],
    ...monotone
      ? []
      : ["It is not monotonic: the expectations start and stop holding along the range, so check the values above."]
  ]
}

/** The result of a sweep, in a sentence. */
export const answerOf = (sweep: Sweep): string => {
  const { beside, kind, path, value } = sweep
  const [name, answer] = [plain(path), number(value ?? 0)]
  switch (kind) {
    case "smallest":
      return `The smallest ${name} that satisfies the expectations is ${answer}; ${number(beside!)} does not.`
    case "largest":
      return `The largest ${name} that satisfies the expectations is ${answer}; ${number(beside!)} does not.`
    case "everywhere":
      return `The expectations hold from ${number(sweep.points[0]!.value)} to ${number(sweep.points.at(-1)!.value)}.`
    case "nowhere":
      return `no value of ${name} that was tried satisfies the expectations`
  }
}

/** A sweep's trials and result, as plain text. */
export const sweepText = ({ name, seed }: Scenario, sweep: Sweep, { columns, paint }: Screen = unbounded): string => {
  const { kind, path, points, runs } = sweep
  return [
    `${plain(name)}: ${runs} ${runs === 1 ? "run" : "runs"} of each value, seeds ${seed} to ${seed + runs - 1}`,
    "",
    ...tableWithin(columns, {
      heads: [plain(path), ""],
      rows: points.map(({ holds, value }) => [number(value), holds ? paint("good", "ok") : paint("bad", "FAILED")]),
      notes: points.map(whyOf)
    }),
    "",
    ...kind === "nowhere" ? [] : [answerOf(sweep)],
    ...doubts(sweep)
  ].join("\n").trimEnd()
}

import * as Effect from "effect/Effect"
import * as Csv from "effect/encoding/Csv"
import * as Stream from "effect/Stream"
import { type Refusal, refusal } from "./refusal.ts"
import { quoted } from "./text.ts"

/** What the cells of a column must be. */
export interface Expected {
  readonly problem: string
  readonly holds: (value: number) => boolean
}

export const wholeNumbers: Expected = {
  problem: "not a whole number from 0",
  holds: (value) => Number.isInteger(value) && value >= 0
}

/** What separates the values: the first of these that the header has. */
const delimiters = [",", ";", "\t", "|"]

/** A text of comma-separated values, below a header of names: its head, and the numbers of each record in the columns named. */
export const csvOf = Effect.fnUntraced(function*(path: string, text: string) {
  const whole = text.trim()
  const delimiter = delimiters.find((one) => whole.split("\n", 1)[0]!.includes(one))
  const [first = [], ...records] = yield* Stream.make(whole).pipe(
    Stream.pipeThroughChannel(Csv.decodeString({ delimiter })),
    Stream.runCollect,
    Effect.mapError(({ line, message }) => refusal(`${path}: line ${line}: ${message}`))
  )
  const head = first.map((name) => name.trim())
  const twice = head.find((name, column) => head.indexOf(name) < column)
  if (twice !== undefined) return yield* refusal(`${path}: line 1: two columns are called ${quoted(twice)}`)
  const numbers = (
    columns: ReadonlyArray<string>,
    { holds, problem }: Expected
  ): Effect.Effect<ReadonlyArray<ReadonlyArray<number>>, Refusal> =>
    Effect.forEach(records, (record, row) => {
      const wrong = (why: string) => refusal(`${path}: line ${row + 2}: ${why}`)
      if (record.length !== head.length) return wrong(`it has ${record.length} of ${head.length} cells`)
      const cells = columns.map((name) => record[head.indexOf(name)]?.trim() ?? "")
      const bad = cells.findIndex((cell) => !holds(Number(cell || NaN)))
      return bad < 0
        ? Effect.succeed(cells.map(Number))
        : wrong(`${columns[bad]} is ${quoted(cells[bad]!)}, ${problem}`)
    })
  return { head, numbers }
})

import * as Effect from "effect/Effect"
import Papa from "papaparse"
import { type Refusal, refusal } from "./refusal.ts"
import { quoted } from "./text.ts"

/** What the cells of a column must be. */
export interface Expected {
  readonly says: string
  readonly holds: (value: number) => boolean
}

export const wholeNumbers: Expected = {
  says: "not a whole number from 0",
  holds: (value) => Number.isInteger(value) && value >= 0
}

interface Csv {
  /** The names in its head. */
  readonly head: ReadonlyArray<string>
  /** The numbers of each record in the columns named, in their order. */
  readonly numbers: (
    columns: ReadonlyArray<string>,
    expected: Expected
  ) => Effect.Effect<ReadonlyArray<ReadonlyArray<number>>, Refusal>
}

const wrong = (path: string, row: number | undefined, why: string): Refusal =>
  refusal(`${path}:${row === undefined ? "" : ` line ${row + 2}:`} ${why}`)

/** A text of comma-separated values, below a header of names. */
export const csvOf = Effect.fnUntraced(function*(path: string, text: string) {
  const [names = []] = Papa.parse<ReadonlyArray<string>>(text.trim(), { preview: 1 }).data
  const heads = names.map((name) => name.trim())
  const twice = heads.find((name, column) => heads.indexOf(name) < column)
  if (twice !== undefined) return yield* refusal(`${path}: line 1: two columns are called ${quoted(twice)}`)
  const { data, errors, meta } = Papa.parse<{ readonly [name: string]: string }>(text.trim(), {
    header: true,
    transformHeader: (name) => name.trim()
  })
  const [error] = errors.filter(({ type }) => type !== "Delimiter")
  if (error !== undefined) return yield* wrong(path, error.row, error.message)
  const csv: Csv = {
    head: meta.fields ?? [],
    numbers: Effect.fnUntraced(function*(columns, { holds, says }) {
      const records: Array<ReadonlyArray<number>> = []
      for (const [row, cells] of data.entries()) {
        const record = columns.map((name) => Number(cells[name]?.trim() || NaN))
        const bad = columns.find((_, column) => !holds(record[column]!))
        if (bad !== undefined) return yield* wrong(path, row, `${bad} is ${quoted(cells[bad] ?? "")}, ${says}`)
        records.push(record)
      }
      return records
    })
  }
  return csv
})

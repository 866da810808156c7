import * as Effect from "effect/Effect"
import { csvOf, wholeNumbers } from "./csv.ts"
import { refusal } from "./refusal.ts"

const columns = ["calls", "attempts", "succeeded", "failed"] as const

/** A measured series as CSV: a header with at least these names, then a line for each second. */
export const seriesOfCsv = Effect.fnUntraced(function*(path: string, text: string) {
  const { head, numbers } = yield* csvOf(path, text)
  const missing = columns.filter((name) => !head.includes(name))
  if (missing.length > 0) {
    return yield* refusal(`${path}: its header has no ${missing.join(", ")}: expected ${columns.join(",")}`)
  }
  const records = yield* numbers(columns, wholeNumbers)
  return {
    series: records.map((record) => Object.fromEntries(columns.map((name, column) => [name, record[column]])))
  }
})

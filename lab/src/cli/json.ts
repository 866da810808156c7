import * as Effect from "effect/Effect"
import { parse, type ParseError } from "jsonc-parser"
import { type Refusal, refusal } from "./refusal.ts"
import { quoted } from "./text.ts"

/** The line and the column of a place in a text, both from 1. */
export const placeOf = (text: string, offset: number): { readonly line: number; readonly column: number } => {
  const lines = text.slice(0, offset).split("\n")
  return { line: lines.length, column: lines.at(-1)!.length + 1 }
}

/** Where a text stops being JSON, and what stands there. */
const whyNot = (whole: string, message: string): string => {
  const text = whole.trimEnd()
  const errors: Array<ParseError> = []
  parse(text, errors, { disallowComments: true })
  const [first] = errors
  if (first === undefined) return message
  const { column, line } = placeOf(text, first.offset)
  const [found] = /^(?:[\w.+-]+|[^])/.exec(text.slice(first.offset)) ?? []
  return `line ${line}, column ${column}: ${found === undefined ? "it ends too early" : `unexpected ${quoted(found)}`}`
}

/** The value of a JSON text. `what` names the text in the error. */
export const parsed = (what: string, text: string): Effect.Effect<unknown, Refusal> =>
  Effect.try({
    try: (): unknown => JSON.parse(text),
    catch: (error) => refusal(`${what} is not valid JSON: ${whyNot(text, (error as Error).message)}`)
  })

import * as Effect from "effect/Effect"
import { type Refusal, refusal } from "./refusal.ts"
import { quoted } from "./text.ts"

interface Place {
  readonly line: number
  readonly column: number
}

/** The line and the column of a place in a text, both from 1. */
export const placeOf = (text: string, offset: number): Place => {
  const lines = text.slice(0, offset).split("\n")
  return { line: lines.length, column: lines.at(-1)!.length + 1 }
}

/** Whether more text could still make this JSON: the platform's parser stops at its end, or not at all. */
const isBegun = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch (error) {
    const { message } = error as Error
    const [, position] = /position (\d+)/.exec(message) ?? []
    return /end of JSON input/.test(message) || Number(position) >= text.length || message.startsWith("Unterminated")
  }
}

/** Where a text stops being JSON. Not every parser reports it, so bisection finds the longest valid prefix. */
const brokenAt = (text: string, message: string): Place | undefined => {
  if (!isBegun("")) return undefined
  let [begun, broken] = [0, text.length + 1]
  while (broken - begun > 1) {
    const middle = Math.floor((begun + broken) / 2)
    if (isBegun(text.slice(0, middle))) begun = middle
    else broken = middle
  }
  // A word such as `tru` is wrong from its first letter.
  const [, word = ""] = /(?:^|[\s:,[{])([a-z]+)$/.exec(text.slice(0, begun)) ?? []
  return placeOf(text, message.startsWith("Bad control character") ? begun : begun - word.length)
}

/** The word, or else the character, at a place; `undefined` at the end. */
const foundAt = (text: string, { column, line }: Place): string | undefined => {
  const rest = text.split("\n").slice(line - 1).join("\n").slice(column - 1)
  return /^(?:\\?[\w.+-]+|[^])/.exec(rest)?.[0]
}

const whyNot = (whole: string, message: string): string => {
  const text = whole.trimEnd()
  const place = brokenAt(text, message)
  if (place === undefined) return message
  const found = foundAt(text, place)
  const what = found === undefined ? "it ends too early" : `unexpected ${quoted(found)}`
  return `line ${place.line}, column ${place.column}: ${what}`
}

/** The value of a JSON text. `what` names the text in the error. */
export const parsed = (what: string, text: string): Effect.Effect<unknown, Refusal> =>
  Effect.try({
    try: (): unknown => JSON.parse(text),
    catch: (error) => refusal(`${what} is not valid JSON: ${whyNot(text, (error as Error).message)}`)
  })

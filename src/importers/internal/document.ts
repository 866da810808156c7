import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { InvalidOption } from "../../InvalidOption.ts"

/** What is wrong with a document, and where. */
class Refusal {
  readonly path: string
  readonly value: unknown
  readonly expected: string

  constructor(path: string, value: unknown, expected: string) {
    this.path = path
    this.value = value
    this.expected = expected
  }
}

export const refuse = (path: string, value: unknown, expected: string): never => {
  throw new Refusal(path, value, expected)
}

/** Reads a document of another system, or fails with the path of what is wrong with it. */
export const importing = <A>(constructorName: string, read: () => A): Effect.Effect<A, InvalidOption> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(read())
    } catch (error) {
      return error instanceof Refusal
        ? Effect.fail(
          new InvalidOption({ constructorName, field: error.path, value: error.value, expected: error.expected })
        )
        : Effect.die(error)
    }
  })

/** An object of a document. */
export interface Fields {
  readonly [field: string]: unknown
}

const isFields = Schema.is(Schema.Record(Schema.String, Schema.Unknown))

export const at = (path: string, field: string | number): string => {
  if (typeof field === "number") return `${path}[${field}]`
  return path === "" ? field : `${path}.${field}`
}

export const fieldsOf = (value: unknown, path: string): Fields =>
  isFields(value) && !Array.isArray(value) ? value : refuse(path, value, "an object")

export const listOf = (value: unknown, path: string): ReadonlyArray<unknown> =>
  Array.isArray(value) ? value : refuse(path, value, "a list")

export const textOf = (value: unknown, path: string): string =>
  typeof value === "string" && value !== "" ? value : refuse(path, value, "a text")

/** A number from `least` on, or below `below`; `otherwise` where there is none. */
export const numberOf = (value: unknown, path: string, least: number, otherwise?: number): number => {
  if (value === undefined && otherwise !== undefined) return otherwise
  return typeof value === "number" && value >= least && value < Infinity
    ? value
    : refuse(path, value, `a number of at least ${least}`)
}

export const wholeOf = (value: unknown, path: string, least: number, otherwise?: number): number => {
  const number = numberOf(value, path, least, otherwise)
  return Number.isSafeInteger(number) ? number : refuse(path, value, `a whole number of at least ${least}`)
}

/** What the library has no words for must not be lost in silence. */
export const without = (fields: Fields, path: string, names: { readonly [field: string]: string }): void => {
  for (const [name, expected] of Object.entries(names)) {
    if (fields[name] !== undefined) refuse(at(path, name), fields[name], `left out: ${expected}`)
  }
}

const units: { readonly [unit: string]: number } = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000
}

/** A duration as protocol buffers have it in JSON, `"1.5s"`, also in other units; or milliseconds. */
export const durationOf = (value: unknown, path: string, otherwise?: number): number => {
  if (value === undefined && otherwise !== undefined) return otherwise
  const [, number, unit] = typeof value === "string" ? /^(\d*\.?\d+) ?(ms|s|m|h|d)$/.exec(value) ?? [] : []
  const millis = number === undefined ? value : Number(number) * units[unit!]!
  return typeof millis === "number" && millis >= 0 && millis < Infinity
    ? millis
    : refuse(path, value, `a duration, such as "1.5s" or "100ms", or milliseconds`)
}

export const positiveDurationOf = (value: unknown, path: string, otherwise?: number): number => {
  const millis = durationOf(value, path, otherwise)
  return millis > 0 ? millis : refuse(path, value, "a duration above 0")
}

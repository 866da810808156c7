import * as Duration from "effect/Duration"

/** Milliseconds as people write them: whole seconds in seconds. Values without a word form stay numbers. */
export const words = (millis: number): string | number => {
  if (!Number.isSafeInteger(millis)) return counted(millis)
  return millis % 1000 === 0 ? `${millis / 1000} second${millis === 1000 ? "" : "s"}` : `${millis} millis`
}

/** A number as JSON: `Infinity` becomes a string. */
export const counted = (number: number): string | number => number === Infinity ? "Infinity" : number

/** An argument of a policy that has no JSON form and shows as a name: a function, a schedule, a gate. */
export class Opaque {
  constructor(readonly value: unknown, private readonly code: string, private readonly name = code) {}

  toString(): string {
    return this.code
  }

  toJSON(): string {
    return this.name
  }
}

/** A user's function. */
export const named = (f: { readonly name: string }): Opaque => new Opaque(f, String(f.name || "<function>"))

/** The longest text in a message, in characters. */
const maxShown = 100

const shown = (text: string, as: (text: string) => string): string =>
  `${as(text.slice(0, maxShown))}${text.length > maxShown ? "..." : ""}`

/** A value, as a message shows it: of a text, the beginning. */
export const render = (value: unknown): string => {
  if (typeof value === "string") return shown(value, JSON.stringify)
  if (Duration.isDuration(value)) return Duration.format(value)
  if (Array.isArray(value)) return "an array"
  try {
    const text = String(value)
    return text === "[object Object]" ? "an object" : shown(text, (text) => text.replace(/\s+/g, " "))
  } catch {
    return typeof value
  }
}

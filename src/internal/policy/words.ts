import type { Node } from "../engine/parts.ts"

/** Milliseconds as people write them: whole seconds in seconds. What has no words is a number. */
export const words = (millis: number): string | number => {
  if (!Number.isSafeInteger(millis)) return counted(millis)
  return millis % 1000 === 0 ? `${millis / 1000} second${millis === 1000 ? "" : "s"}` : `${millis} millis`
}

/** A number as JSON has it, which knows no infinity. */
export const counted = (number: number): string | number => number === Infinity ? "Infinity" : number

/** What a policy was given that has no JSON, and shows as a name: a function, a schedule. */
export class Opaque {
  readonly value: unknown
  private readonly name: string

  constructor(value: unknown, name: string) {
    this.value = value
    this.name = name
  }

  toString(): string {
    return this.name
  }

  toJSON(): string {
    return this.name
  }
}

/** A function of the user. */
export const named = (f: { readonly name: string }): Opaque => new Opaque(f, String(f.name || "<function>"))

/** What a step was given, as it is written in a program. */
const print = (given: unknown): string => {
  if (typeof given === "string" && given !== "Infinity") return JSON.stringify(given)
  if (typeof given !== "object" || "toJSON" in given!) return String(given)
  const options = Object.entries(given!).map(([key, value]) => `${key}: ${print(value)}`)
  return options.length === 0 ? "" : `{ ${options.join(", ")} }`
}

/** The composition, as it is written in a program. */
export const toText = (nodes: ReadonlyArray<Node>): string => {
  const [first, ...others] = nodes.map(([tag, given]) => given === undefined ? tag : `${tag}(${print(given)})`)
  return others.length === 0 ? first! : `${first}.pipe(${others.join(", ")})`
}

/** The composition in JSON: a step is the name of a combinator, or its name and what it was given. */
export const toSteps = (nodes: ReadonlyArray<Node>) =>
  nodes.map(([tag, given]) => {
    const name = tag.replace(/^(Backoff|RetryPolicy)\./, "")
    return given === undefined ? name : { [name]: given }
  })

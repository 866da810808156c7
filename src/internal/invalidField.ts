import { InvalidOption } from "../InvalidOption.ts"
import { short } from "./tryGet.ts"

/** A place in a document. */
export type Path = ReadonlyArray<string | number>

/** What is wrong with a document, and where. */
export class Refusal {
  constructor(readonly path: Path, readonly value: unknown, readonly expected: string) {}
}

export const refuse = (path: Path, value: unknown, expected: string): never => {
  throw new Refusal(path, value, expected)
}

/** `steps[2].capped`; keys that are not plain words are quoted. */
export const pathText = (before: string, key: string | number): string => {
  if (typeof key === "number") return `${before}[${key}]`
  const shown = short(key, 100)
  if (!/^\w+$/.test(shown)) return `${before}[${JSON.stringify(shown)}]`
  return before === "" ? shown : `${before}.${shown}`
}

/** What is wrong, as an error of the constructor that was given the document. */
export const errorOf = ({ expected, path, value }: Refusal, constructorName: string): InvalidOption =>
  new InvalidOption({ constructorName, field: path.reduce(pathText, ""), value, expected })

const unshown = { toString: () => "a value" }

/** An object of a document. */
export interface Fields {
  readonly [field: string]: unknown
}

export const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Refuses a key that means nothing: it may be misspelled. Its value may be a secret at the wrong place: it is not shown. */
export const rejectUnknownKeys = (fields: Fields, names: ReadonlyArray<string>, path: Path): void => {
  for (const field of Object.keys(fields)) {
    if (!names.includes(field)) refuse([...path, field], unshown, "left out: there is no such key")
  }
}

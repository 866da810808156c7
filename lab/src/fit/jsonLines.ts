import { type FieldNames, type FieldReader, Fields, type Get } from "./fields.ts"

type Keyed = { readonly [key: string]: unknown }

export const isKeyed = (value: unknown): value is Keyed =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** An object in a line; `undefined` for anything else. */
export const objectIn = (line: string): Keyed | undefined => {
  if (line[0] !== "{") return undefined
  try {
    return JSON.parse(line) as Keyed
  } catch {
    return undefined
  }
}

const inside = (value: unknown, path: string): unknown =>
  path.split(".").reduce((at: unknown, key) => isKeyed(at) ? at[key] : undefined, value)

const getFrom = (object: Keyed): Get => (name) => {
  const value = object[name]
  return value === undefined && name.includes(".") ? inside(object, name) : value
}

/** One JSON object per line, as nginx, pino, Traefik and others write them. */
export const jsonLines = (names: FieldNames): FieldReader => {
  const fields = new Fields(names)
  return {
    fields,
    read: (line, sink) => {
      const object = objectIn(line)
      return object !== undefined && fields.read(getFrom(object), sink)
    }
  }
}

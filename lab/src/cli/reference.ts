import { within } from "../explain/layout.ts"
import { jsonSchema } from "../Simulator.ts"
import { described } from "./text.ts"

/** What the JSON Schema of a scenario says about a place. */
export interface Place {
  readonly description?: string
  readonly enum?: ReadonlyArray<string>
  readonly properties?: { readonly [key: string]: Place }
  readonly anyOf?: ReadonlyArray<Place>
  readonly items?: Place
}

export type Row = readonly [name: string, description: string]

/** The places that the schema has names for. */
export const places = (): (name: string) => Place => {
  const { $defs } = jsonSchema() as { readonly $defs: { readonly [name: string]: Place } }
  return (name) => $defs[name] ?? {}
}

/** Keys, and what each is. */
export const keysOf = ({ properties = {} }: Place): ReadonlyArray<Row> =>
  Object.entries(properties).map(([key, place]) => {
    const inner = Object.keys(place.properties ?? {})
    return [key, `${place.description ?? ""}${inner.length === 0 ? "" : ` Keys: ${inner.join(", ")}.`}`]
  })

/** The members of unions by their `kind`, and the keys of each. */
export const kindsOf = ({ anyOf = [] }: Place): ReadonlyArray<Row> =>
  anyOf.map(({ properties: { kind, ...others } = {} }) => [
    kind?.enum?.join() ?? "",
    `Keys: ${Object.keys(others).join(", ")}.`
  ])

/** Lists under their heads. */
export const sections = (
  all: ReadonlyArray<readonly [head: string, rows: ReadonlyArray<Row>]>,
  columns: number
): string =>
  all.map(([head, rows]) =>
    [within(head, columns), ...described(rows, columns - 2).map((line) => `  ${line}`)].join("\n")
  ).join("\n\n")

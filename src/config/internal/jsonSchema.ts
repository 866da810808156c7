import * as Schema from "effect/Schema"

type Json = { readonly [key: string]: unknown }

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)

/** Whether the part can be added without a conflict. */
const addsTo = (schema: Json, part: unknown): part is Json =>
  isObject(part) && Object.keys(part).every((key) => !Object.hasOwn(schema, key))

/** Without `allOf` where possible: editors show what is next to a `$ref`, but not what is in another part. */
const flat = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(flat)
  if (!isObject(value)) return value
  const { allOf = [], ...rest } = value
  const parts = flat(allOf) as ReadonlyArray<unknown>
  let schema: Json = Object.fromEntries(Object.entries(rest).map(([key, inner]) => [key, flat(inner)]))
  const apart: Array<unknown> = []
  for (const part of parts) {
    if (addsTo(schema, part)) schema = { ...schema, ...part }
    else apart.push(part)
  }
  return apart.length === 0 ? schema : { ...schema, allOf: apart }
}

/** The JSON Schema of the encoded form, draft 2020-12. */
export const documentOf = (schema: Schema.Constraint): unknown => {
  const { definitions, schema: root } = Schema.toJsonSchemaDocument(schema, { onExcessProperty: "error" })
  return flat({ $schema: "https://json-schema.org/draft/2020-12/schema", ...root, $defs: definitions })
}

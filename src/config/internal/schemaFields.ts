import * as Schema from "effect/Schema"
import { type Fields, isObject } from "../../internal/invalidField.ts"
import { isTime, type Option, type OptionRecord } from "../../internal/options.ts"

/** Whether the part can be added without a conflict. */
const addsTo = (schema: Fields, part: unknown): part is Fields =>
  isObject(part) && Object.keys(part).every((key) => !Object.hasOwn(schema, key))

/** Without `allOf` where possible: editors show what is next to a `$ref`, but not what is in another part. */
const flat = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(flat)
  if (!isObject(value)) return value
  const { allOf = [], ...rest } = value
  const parts = flat(allOf) as ReadonlyArray<unknown>
  let schema: Fields = Object.fromEntries(Object.entries(rest).map(([key, inner]) => [key, flat(inner)]))
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

/** The expectation in the message for a rejected value. */
export const expecting = (expected: string) => ({ expected })

/** A required key. */
export const described = <S extends Schema.Top>(schema: S, description: string) => schema.annotateKey({ description })

/** An optional key. */
export const maybe = <S extends Schema.Constraint>(schema: S, description: string) =>
  Schema.optionalKey(schema).annotateKey({ description })

/** An optional key with an object. */
export const nested = <S extends Schema.Struct.Fields>(description: string, fields: S) =>
  maybe(Schema.Struct(fields), description)

const expectedDuration = `milliseconds, or a text such as "250ms", "20s", "2 minutes"`

/** A duration. */
export const Time = Schema.Union([
  Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0, expecting(expectedDuration))),
  Schema.String.check(
    Schema.isPattern(
      /^\d+(\.\d+)?( (nanos?|micros?|millis?|seconds?|minutes?|hours?|days?|weeks?)| ?(ns|us|µs|ms|s|m|min|h|d|w))$/,
      expecting(expectedDuration)
    )
  )
]).annotate({
  identifier: "PolicyTime",
  expected: expectedDuration,
  title: `A duration: ${expectedDuration}`
})

const between = (bounds: Parameters<typeof Schema.isBetween>[0], expected: string) =>
  Schema.Finite.check(Schema.isBetween(bounds, expecting(expected)))

/** A number of at least `minimum`, and at most `maximum` if there is one. */
const atLeast = (minimum: number, maximum: number) =>
  maximum < Number.MAX_VALUE
    ? between({ minimum, maximum }, `a number from ${minimum} to ${maximum}`)
    : Schema.Finite.check(Schema.isGreaterThanOrEqualTo(minimum, expecting(`a finite number of at least ${minimum}`)))

const whole = (minimum: number, maximum: number) => {
  const expected = expecting(`a whole number from ${minimum} to ${maximum}`)
  return Schema.Finite.check(Schema.isInt(expected), Schema.isBetween({ minimum, maximum }, expected))
}

/** A whole number, or no limit. */
export const count = (minimum: number) => {
  const expected = expecting(`a whole number of at least ${minimum}`)
  return Schema.Union([
    Schema.Finite.check(Schema.isInt(expected), Schema.isGreaterThanOrEqualTo(minimum, expected)),
    Schema.Literal("Infinity")
  ])
}

const upToOne = { minimum: 0, maximum: 1, exclusiveMinimum: true }

export const Amount = atLeast(0, Infinity)
const Above = Schema.Finite.check(Schema.isGreaterThan(0, expecting("a finite number above 0")))
export const Factor = atLeast(1, Infinity)
export const Share = atLeast(0, 1)

type SchemaOf<O> = O extends Option<"duration" | "positiveDuration", any, any> ? typeof Time
  : O extends Option<"count", any, any> ? ReturnType<typeof count>
  : O extends Option<"word", infer A, any> ? Schema.Literals<ReadonlyArray<A & string>>
  : typeof Schema.Finite

/** The options that a document can set. */
type Written<Options> = {
  [K in keyof Options]: Options[K] extends Option<"inCode" | "callback", any, any> ? never : K
}[keyof Options]

type Keys<Options> = { readonly [K in Written<Options>]: Schema.optionalKey<SchemaOf<Options[K]>> }

const schemas: { readonly [kind: string]: (option: Option<string, any, any>) => Schema.Top } = {
  amount: () => Amount,
  positive: () => Above,
  duration: () => Time,
  positiveDuration: () => Time,
  between: ({ least, most }) => atLeast(least!, most!),
  fraction: () => between({ ...upToOne, exclusiveMaximum: true }, "a number above 0 and below 1"),
  weight: () => between(upToOne, "a number above 0, at most 1"),
  whole: ({ least, most }) => whole(least!, most!),
  count: ({ least }) => count(least!),
  word: ({ of }) => Schema.Literals(of!)
}

const units = [["hour", 3_600_000], ["minute", 60_000], ["second", 1000]] as const

const inWords = (millis: number): string => {
  const [unit, size] = units.find(([, size]) => millis >= size && millis % size === 0) ?? ["millisecond", 1]
  return `${millis / size} ${unit}${millis === size ? "" : "s"}`
}

/** What a key is for, and its default, if that does not depend on anything. */
const explained = (text: string, option: Option<string, any, any>) => {
  const value: any = option.otherwise
  if (value === undefined || value === Infinity) return { description: text }
  const shown = isTime(option) ? inWords(value) : typeof value === "string" ? `"${value}"` : value.toLocaleString("en")
  return { description: `${text} Default ${shown}.`, default: value }
}

/** What each option is for. */
type Texts<Options> = { readonly [K in Written<Options>]: string }

/** The keys of options in a document, by what each is for. */
export const fieldsOf = <Options extends OptionRecord>(options: Options, texts: Texts<Options>): Keys<Options> =>
  Object.fromEntries(
    Object.entries<string>(texts).map(([name, text]) => {
      const option = options[name]!
      return [name, Schema.optionalKey(schemas[option.kind]!(option)).annotateKey(explained(text, option))]
    })
  ) as any

/** An optional key with options. */
export const sectionOf = <Options extends OptionRecord>(description: string, options: Options, texts: Texts<Options>) =>
  nested(description, fieldsOf(options, texts))

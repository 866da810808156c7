import * as Data from "effect/Data"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaParser from "effect/SchemaParser"
import { render } from "../../internal/format.ts"
import { isObject } from "../../internal/invalidField.ts"

type Path = ReadonlyArray<PropertyKey>

/**
 * An invalid document: the path, the value found there, and what is wrong with it.
 *
 * @category errors
 * @since 0.1.0
 */
export class BotocoreLegacyError extends Data.TaggedError("BotocoreLegacyError")<{
  /** The keys and indices that lead to the value, such as `["retry", "__default__", "delay", "base"]`. */
  readonly path: ReadonlyArray<PropertyKey>
  /** The value found there; `undefined` if there is none, a short summary if it is too large to keep. */
  readonly value: unknown
  /** What is wrong with it, such as `"Expected an integer"`, `"Missing key"` or `"Unexpected key"`. */
  readonly problem: string
}> {
  override get message(): string {
    const path = this.path.length === 0 ? "the document" : shorten(this.path.map(String).join("."), 400)
    return `${path}: ${this.problem}, got ${render(this.value)}`
  }
}

const shorten = (text: string, length: number) => text.length > length ? `${text.slice(0, length)}...` : text

const refuse = (path: Path, value: unknown, problem: string): never => {
  throw new BotocoreLegacyError({ path, value, problem })
}

/** Keeps only a summary of a value that may be huge, or have side effects when read. */
const refuseUnread = (path: Path, value: unknown, problem: string): never => {
  if (typeof value === "string") return refuse(path, shorten(value, 100), problem)
  return refuse(path, typeof value === "object" && value !== null ? "an object" : value, problem)
}

/** The maximum levels of a document: the format has eight. */
const maxDepth = 16
/** The maximum number of values in a document: botocore's has about three hundred. */
const maxValues = 10_000
/** The maximum length of a key or a value. */
const maxLength = 256

/**
 * The own data of a value, without prototypes. Anything too deep, too large, or named like an inherited property is
 * rejected before other code reads it.
 */
const copy = (value: unknown, path: Path, seen: { values: number }): unknown => {
  if (++seen.values > maxValues) refuseUnread(path, value, `Expected at most ${maxValues} values in all`)
  if (typeof value === "string" && value.length > maxLength) {
    refuseUnread(path, value, `Expected at most ${maxLength} characters`)
  }
  if (typeof value !== "object" || value === null) return value
  if (path.length >= maxDepth) refuseUnread(path, value, `Expected at most ${maxDepth} levels`)
  return Array.isArray(value)
    ? Array.from({ length: value.length }, (_, index) => copy(value[index], [...path, index], seen))
    : copyObject(value, path, seen)
}

const copyObject = (object: object, path: Path, seen: { values: number }): object => {
  const prototype = Object.getPrototypeOf(object)
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null
  if (!isPlain) refuseUnread(path, object, "Expected a plain object")
  const copied = Object.keys(object).map((key) => {
    if (key.length > maxLength) refuseUnread(path, key, `Expected keys of at most ${maxLength} characters`)
    const value = (object as Record<string, unknown>)[key]
    const at = [...path, key]
    if (key in Object.prototype || key === "prototype") refuseUnread(at, value, "Unexpected prototype name")
    return [key, copy(value, at, seen)]
  })
  return Object.fromEntries(copied)
}

const Status = Schema.Int.check(Schema.isBetween({ minimum: 100, maximum: 599 }))

const Response = Schema.Struct({
  http_status_code: Schema.optionalKey(Status),
  service_error_code: Schema.optionalKey(Schema.NonEmptyString),
  crc32body: Schema.optionalKey(Schema.NonEmptyString)
})

const socket_errors = Schema.optionalKey(Schema.Array(Schema.Literal("GENERAL_CONNECTION_ERROR")))

/** A response that a policy retries: a body that can be checked, or a status. */
const RetriedResponse = Response.check(Schema.makeFilter(({ crc32body, http_status_code, service_error_code }) => {
  if (crc32body === undefined) {
    return http_status_code !== undefined || { path: ["http_status_code"], issue: "Missing key" }
  }
  return (http_status_code ?? service_error_code) === undefined || "Expected crc32body to stand alone"
}))

/** What a policy retries. */
const Condition = Schema.Struct({ response: Schema.optionalKey(RetriedResponse), socket_errors }).check(
  Schema.makeFilter(({ response, socket_errors: errors = [] }) =>
    response !== undefined || errors.length > 0 || "Expected response or socket_errors"
  )
)
export type Condition = typeof Condition.Type

const policiesOf = <S extends Schema.Constraint>(condition: S) =>
  Schema.Record(Schema.String, Schema.Struct({ applies_when: condition }))

const Policies = policiesOf(Condition)
type Policies = typeof Policies.Type

/** A section, once it is complete. */
const Section = Schema.Struct({
  max_attempts: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
  delay: Schema.Struct({
    type: Schema.Literal("exponential"),
    base: Schema.Union([Schema.Literal("rand"), Schema.Finite.check(Schema.isGreaterThan(0))]),
    growth_factor: Schema.Finite.check(Schema.isGreaterThanOrEqualTo(1))
  }),
  policies: Policies
})

/** A definition may lack what a policy that refers to it inherits. */
const Definitions = policiesOf(Schema.Struct({ response: Schema.optionalKey(Response), socket_errors }))

const Top = Schema.Struct({
  definitions: Schema.optionalKey(Definitions),
  retry: Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Unknown))
})

const firstIssue = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) => issue._tag === "UnexpectedKey" ? "Unexpected key" : SchemaIssue.defaultLeafHook(issue)
})

/** Decodes a part of the document: fails on the first problem, including unknown keys. */
const decoder = <S extends Schema.ConstraintDecoder<unknown>>(schema: S) => {
  const decode = SchemaParser.decodeUnknownResult(schema, { onExcessProperty: "error" })
  return (value: unknown, at: Path): S["Type"] => {
    const result = decode(value)
    if (Result.isSuccess(result)) return result.success
    const { message, path = [] } = firstIssue(result.failure).issues[0]!
    const keys = path as Path
    return refuse([...at, ...keys], keys.reduce((inner: any, key) => inner?.[key], value), message)
  }
}

const decodeTop = decoder(Top)
const decodeSection = decoder(Section)
const decodeOperation = decoder(Schema.Struct({ policies: Policies }))

/** How a service is retried. */
export interface Settings extends Schema.Schema.Type<typeof Section> {
  /** Additional policies of operations, by operation name. */
  readonly operations: ReadonlyMap<string, Policies>
}

/**
 * A decoded document: made by `decode`, read by `forService`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Document {
  /** How services that it does not name are retried. */
  readonly fallback: Settings
  /** How the others are, by name. */
  readonly services: ReadonlyMap<string, Settings>
}

const mapValues = <A, B>(record: { readonly [key: string]: A }, f: (value: A, key: string) => B): Map<string, B> =>
  new Map(Object.entries(record).map(([key, value]) => [key, f(value, key)]))

/** The keys of both. Of those in both, objects are merged, and of anything else the second counts. */
const merged = (first: unknown, second: unknown): unknown => {
  if (!isObject(first) || !isObject(second)) return second
  return { ...first, ...Object.fromEntries(mapValues(second, (value, key) => merged(first[key], value))) }
}

/** A policy, with the definition that it refers to in place of the reference. */
const resolved = (policy: unknown, definitions: ReadonlyMap<unknown, object>, path: Path): unknown => {
  if (!isObject(policy) || !("$ref" in policy)) return policy
  const { $ref, ...own } = policy
  if ("applies_when" in own) refuse(path, policy, "Expected $ref to stand alone")
  const definition = definitions.get($ref) ?? refuse([...path, "$ref"], $ref, "Expected the name of a definition")
  return { ...own, ...definition }
}

/** A section whose policies are resolved, each merged with the one of the same name that it inherits. */
const withPolicies = (
  section: unknown,
  inherited: Policies,
  definitions: ReadonlyMap<unknown, object>,
  path: Path
): unknown => {
  if (!isObject(section) || !isObject(section.policies)) return section
  const policies = mapValues(
    section.policies,
    (policy, name) => merged(inherited[name], resolved(policy, definitions, [...path, "policies", name]))
  )
  return { ...section, policies: Object.fromEntries(policies) }
}

/** Decodes a document, or throws a `BotocoreLegacyError`. Takes time linear in the document. */
export const decodeUnsafe = (document: unknown): Document => {
  const { definitions = {}, retry } = decodeTop(copy(document, [], { values: 0 }), [])
  const { __default__, ...services } = retry
  const named = new Map(Object.entries(definitions))
  const at = ["retry", "__default__"]
  const shared = decodeSection(withPolicies(__default__, {}, named, at), at)
  const operationOf = (section: unknown, path: Path): Policies =>
    decodeOperation(withPolicies(section, {}, named, path), path).policies
  return {
    fallback: { ...shared, operations: new Map() },
    services: mapValues(services, ({ __default__: own = {}, ...operations }, name) => {
      const path = ["retry", name, "__default__"]
      const section = merged({ ...shared, policies: {} }, withPolicies(own, shared.policies, named, path))
      return {
        ...decodeSection(section, path),
        operations: mapValues(operations, (operation, key) => operationOf(operation, ["retry", name, key]))
      }
    })
  }
}

const maxJsonLength = 1_000_000

/** Reads the text of a document, or throws a `BotocoreLegacyError`. */
export const parseUnsafe = (json: unknown): unknown => {
  if (typeof json !== "string") return refuseUnread([], json, "Expected a string")
  if (json.length > maxJsonLength) return refuseUnread([], json, `Expected at most ${maxJsonLength} characters`)
  try {
    return JSON.parse(json)
  } catch {
    return refuseUnread([], json, "Expected JSON")
  }
}

import * as Data from "effect/Data"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaParser from "effect/SchemaParser"
import * as Struct from "effect/Struct"

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

const render = (value: unknown): string => {
  if (typeof value === "string") return JSON.stringify(shorten(value, 100))
  if (typeof value === "function") return "a function"
  return typeof value === "object" && value !== null ? "an object" : String(value)
}

/** What to keep of a value that may be huge, or have side effects when read. */
export const summary = (value: unknown): unknown => {
  if (typeof value === "string") return shorten(value, 100)
  return typeof value === "object" && value !== null ? "an object" : value
}

const refuse = (path: Path, value: unknown, problem: string): never => {
  throw new BotocoreLegacyError({ path, value, problem })
}

/** The maximum levels of a document: the format has eight. */
const maxDepth = 16
/** The maximum number of values in a document: botocore's has about three hundred. */
const maxValues = 10_000
/** The maximum length of a key or a value. */
const maxLength = 256

interface Seen {
  values: number
}

/**
 * The own data of a value, without prototypes. Anything too deep, too large, or named like an inherited property is
 * rejected before other code reads it.
 */
const copy = (value: unknown, path: Path, seen: Seen): unknown => {
  if (++seen.values > maxValues) refuse(path, summary(value), `Expected at most ${maxValues} values in all`)
  if (typeof value === "string" && value.length > maxLength) {
    refuse(path, summary(value), `Expected at most ${maxLength} characters`)
  }
  if (typeof value !== "object" || value === null) return value
  if (path.length >= maxDepth) refuse(path, summary(value), `Expected at most ${maxDepth} levels`)
  return Array.isArray(value) ? copyArray(value, path, seen) : copyObject(value, path, seen)
}

const copyArray = (array: ReadonlyArray<unknown>, path: Path, seen: Seen): ReadonlyArray<unknown> => {
  const copied: Array<unknown> = []
  for (let index = 0; index < array.length; index++) copied.push(copy(array[index], [...path, index], seen))
  return copied
}

const isPlain = (object: object): boolean => {
  const prototype = Object.getPrototypeOf(object)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

const copyObject = (object: object, path: Path, seen: Seen): object => {
  if (!isPlain(object)) refuse(path, summary(object), "Expected a plain object")
  const copied: Record<string, unknown> = Object.create(null)
  for (const key of Object.keys(object)) {
    if (key.length > maxLength) refuse(path, summary(key), `Expected keys of at most ${maxLength} characters`)
    const value = (object as Record<string, unknown>)[key]
    if (key in Object.prototype || key === "prototype") {
      refuse([...path, key], summary(value), "Unexpected prototype name")
    }
    copied[key] = copy(value, [...path, key], seen)
  }
  return copied
}

const Status = Schema.Int.check(Schema.isBetween({ minimum: 100, maximum: 599 }))

const AppliesWhen = Schema.Struct({
  response: Schema.optionalKey(Schema.Struct({
    http_status_code: Schema.optionalKey(Status),
    service_error_code: Schema.optionalKey(Schema.NonEmptyString),
    crc32body: Schema.optionalKey(Schema.NonEmptyString)
  })),
  socket_errors: Schema.optionalKey(Schema.Array(Schema.Literal("GENERAL_CONNECTION_ERROR")))
})
type AppliesWhen = typeof AppliesWhen.Type

const Policies = Schema.Record(
  Schema.String,
  Schema.Struct({ $ref: Schema.optionalKey(Schema.String), applies_when: Schema.optionalKey(AppliesWhen) })
)

const Delay = Schema.Struct({
  type: Schema.Literal("exponential"),
  base: Schema.Union([Schema.Literal("rand"), Schema.Finite.check(Schema.isGreaterThan(0))]),
  growth_factor: Schema.Finite.check(Schema.isGreaterThanOrEqualTo(1))
})

const Default = Schema.Struct({
  max_attempts: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
  delay: Delay,
  policies: Policies
})

const optional = Struct.map(Schema.optionalKey)

const Override = Schema.Struct({ ...Default.fields, delay: Delay.mapFields(optional) }).mapFields(optional)

const Top = Schema.Struct({
  definitions: Schema.optionalKey(Schema.Record(Schema.String, Schema.Struct({ applies_when: AppliesWhen }))),
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
const decodeDefault = decoder(Default)
const decodeOverride = decoder(Override)
const decodeOperation = decoder(Schema.Struct({ policies: Policies }))

/** What one policy retries. */
export type Rule =
  | { readonly _tag: "Response"; readonly status: number; readonly code: string | undefined }
  | { readonly _tag: "Crc32"; readonly header: string }
  | { readonly _tag: "SocketErrors" }

type Rules = ReadonlyMap<string, ReadonlyArray<Rule>>

/** How one service is retried. */
export interface Settings {
  readonly maxAttempts: number
  /** Seconds, or `"rand"` for a new number in `[0, 1)` at every retry. */
  readonly base: number | "rand"
  readonly growthFactor: number
  /** By policy name: those of a service replace those of the default. */
  readonly policies: Rules
  /** Additional policies of operations, by operation name. */
  readonly operations: ReadonlyMap<string, Rules>
}

/**
 * A decoded document: made by `decode`, read by `forService`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Document {
  /** @internal */
  readonly fallback: Settings
  /** @internal */
  readonly services: ReadonlyMap<string, Settings>
}

/** The settings of a service: one that the document does not name gets the default. */
export const settingsOf = ({ fallback, services }: Document, service: string): Settings =>
  services.get(service) ?? fallback

const responseRule = (response: NonNullable<AppliesWhen["response"]>, path: Path): Rule => {
  const { crc32body: header, http_status_code: status, service_error_code: code } = response
  if (header !== undefined) {
    return status === undefined && code === undefined
      ? { _tag: "Crc32", header: header.toLowerCase() }
      : refuse(path, response, "Expected crc32body to stand alone")
  }
  return status === undefined
    ? refuse([...path, "http_status_code"], undefined, "Missing key")
    : { _tag: "Response", status, code }
}

const rulesOf = (condition: AppliesWhen, path: Path): ReadonlyArray<Rule> => {
  const { response, socket_errors: socketErrors } = condition
  const rules: Array<Rule> = response === undefined ? [] : [responseRule(response, [...path, "response"])]
  if (socketErrors !== undefined && socketErrors.length > 0) rules.push({ _tag: "SocketErrors" })
  return rules.length > 0 ? rules : refuse(path, condition, "Expected response or socket_errors")
}

type Conditions = ReadonlyMap<string, AppliesWhen>

const mapValues = <A, B>(record: { readonly [key: string]: A }, f: (value: A, key: string) => B): Map<string, B> =>
  new Map(Object.entries(record).map(([key, value]) => [key, f(value, key)]))

/** The condition of a policy itself, or of the definition it refers to. */
const ownCondition = (
  { $ref, applies_when: own }: (typeof Policies.Type)[string],
  definitions: Conditions,
  path: Path
): AppliesWhen => {
  if ($ref === undefined) return own ?? refuse([...path, "applies_when"], undefined, "Missing key")
  if (own !== undefined) refuse(path, { $ref, applies_when: own }, "Expected $ref to stand alone")
  return definitions.get($ref) ?? refuse([...path, "$ref"], $ref, "Expected the name of a definition")
}

const merged = (inherited: AppliesWhen, own: AppliesWhen): AppliesWhen => ({
  ...inherited,
  ...own,
  ...(own.response !== undefined && { response: { ...inherited.response, ...own.response } })
})

/** Policies with their references resolved, each overriding the policy of the same name that it inherits. */
const conditionsOf = (
  policies: typeof Policies.Type | undefined,
  definitions: Conditions,
  inherited: Conditions,
  path: Path
): Conditions =>
  mapValues(
    policies ?? {},
    (policy, name) => merged(inherited.get(name) ?? {}, ownCondition(policy, definitions, [...path, name]))
  )

const rulesByName = (conditions: Conditions, path: Path): Rules =>
  new Map(Array.from(conditions, ([name, when]) => [name, rulesOf(when, [...path, name, "applies_when"])]))

const none: Conditions = new Map()

/** What all services share. */
interface Common {
  readonly definitions: Conditions
  readonly fallback: Settings
  /** The policies of the default, before they became rules. */
  readonly inherited: Conditions
}

const commonOf = (section: unknown, definitions: Conditions): Common => {
  const path = ["retry", "__default__"]
  const { delay, max_attempts: maxAttempts, policies } = decodeDefault(section, path)
  const inherited = conditionsOf(policies, definitions, none, [...path, "policies"])
  const fallback: Settings = {
    maxAttempts,
    base: delay.base,
    growthFactor: delay.growth_factor,
    policies: rulesByName(inherited, [...path, "policies"]),
    operations: new Map()
  }
  return { definitions, fallback, inherited }
}

const operationOf = (section: unknown, definitions: Conditions, path: Path): Rules => {
  const { policies } = decodeOperation(section, path)
  const at = [...path, "policies"]
  return rulesByName(conditionsOf(policies, definitions, none, at), at)
}

const serviceOf = (
  { __default__: override = {}, ...operations }: { readonly [section: string]: unknown },
  { definitions, fallback, inherited }: Common,
  path: Path
): Settings => {
  const at = [...path, "__default__"]
  const { delay, max_attempts: maxAttempts = fallback.maxAttempts, policies } = decodeOverride(override, at)
  const conditions = conditionsOf(policies, definitions, inherited, [...at, "policies"])
  return {
    maxAttempts,
    base: delay?.base ?? fallback.base,
    growthFactor: delay?.growth_factor ?? fallback.growthFactor,
    policies: rulesByName(conditions, [...at, "policies"]),
    operations: mapValues(operations, (section, name) => operationOf(section, definitions, [...path, name]))
  }
}

/** Decodes a document, or throws a `BotocoreLegacyError`. Takes time linear in the document. */
export const decodeUnsafe = (document: unknown): Document => {
  const { definitions = {}, retry: { __default__, ...services } } = decodeTop(copy(document, [], { values: 0 }), [])
  const common = commonOf(__default__, mapValues(definitions, ({ applies_when: when }) => when))
  return {
    fallback: common.fallback,
    services: mapValues(services, (sections, name) => serviceOf(sections, common, ["retry", name]))
  }
}

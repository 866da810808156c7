import { backoff as javaScriptV2Backoff } from "../../aws/legacy/JavaScriptV2.ts"
import { equalJitterBackoff, exponentialBackoff, fullJitterBackoff } from "../../aws/legacy/JavaV1.ts"
import { exponentialBackoffWithJitter } from "../../aws/legacy/Kotlin.ts"
import * as Backoff from "../../Backoff.ts"
import { AdaptiveRateLimiter } from "../../gates/AdaptiveRateLimiter.ts"
import { honorPushback } from "../../grpc/RetryGrpc.ts"
import { type Fields, isObject, type Path, Refusal, refuse, rejectUnknownKeys } from "../../internal/invalidField.ts"
import { short } from "../../internal/tryGet.ts"
import { InvalidOption } from "../../InvalidOption.ts"
import * as RetryPolicy from "../../RetryPolicy.ts"

/** The units that people write, and Effect's names for them. */
const units: { readonly [short: string]: string } = {
  ns: "nanos",
  us: "micros",
  µs: "micros",
  ms: "millis",
  s: "seconds",
  m: "minutes",
  min: "minutes",
  h: "hours",
  d: "days",
  w: "weeks"
}

const written = /^(\d+(?:\.\d+)?) ?([a-zµ]+)$/

/** `500ms` as `500 millis`, which Effect's `Duration` reads. Other values stay unchanged. */
export const spelledOut = (value: unknown): unknown => {
  const [, amount, unit = ""] = written.exec(short(value)) ?? []
  return Object.hasOwn(units, unit) ? `${amount} ${units[unit]}` : value
}

/** Functions that JSON can name. */
export type Functions = { readonly [name: string]: (...args: Array<any>) => unknown }

/** The reader's position, and the functions it knows. */
interface Context {
  readonly functions: Functions
  readonly depth: number
}

type Reader = (input: unknown, path: Path, context: Context) => any

/** Makes something, and reports an invalid option with its place in the JSON. */
export const made = <A>(make: () => A, path: Path, value: unknown, only?: string): A => {
  try {
    return make()
  } catch (error) {
    if (!(error instanceof InvalidOption)) throw error
    const inside = error.field === "proportional" && only !== "jitter"
      ? ["jitter", "proportional"]
      : error.field.split(".")
    const at = error.field === only ? path : [...path, ...inside]
    return refuse(at, error.field === only ? value : error.value, error.expected)
  }
}

/** Values that JSON cannot express: no limit, and durations in short units. */
export const revived = (value: unknown): unknown => value === "Infinity" ? Infinity : spelledOut(value)

/** The options of a nested object with its own keys. */
export const below = (input: unknown, keys: ReadonlyArray<string>, path: Path): { readonly [key: string]: any } => {
  const fields: Fields = isObject(input) ? input : refuse(path, input, "an object")
  rejectUnknownKeys(fields, keys, path)
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, revived(value)]))
}

/** A constructor or combinator without arguments. */
const alone = (make: unknown): Reader => (input, path) =>
  input === undefined ? make : refuse(path, input, "written alone, as a string")

/** A combinator whose only option is a value. */
const value = (make: (value: any) => unknown, option: string): Reader => (input, path) => {
  if (option === "jitter" && isObject(input)) rejectUnknownKeys(input, ["proportional"], path)
  return made(() => make(revived(input)), path, input, option)
}

/** A constructor or combinator with options. */
export const options =
  (make: (options: any) => unknown, names: ReadonlyArray<string>): Reader => (input = {}, path, context) => {
    const values = below(input, names, path)
    const { customBackoff, jitter } = input as Fields
    if (isObject(jitter)) rejectUnknownKeys(jitter, ["proportional"], [...path, "jitter"])
    const functions = customBackoff === undefined
      ? {}
      : { customBackoff: functionOf(customBackoff, [...path, "customBackoff"], context) }
    return made(() => make({ ...values, ...functions }), path, input)
  }

const functionOf = (name: unknown, path: Path, { functions }: Context): any =>
  typeof name === "string" && Object.hasOwn(functions, name)
    ? functions[name]
    : refuse(path, name, "the name of one of the functions passed to fromJson")

/** Several policies as one. */
const several = (make: (policies: ReadonlyArray<any>) => unknown): Reader => (input, path, context) =>
  Array.isArray(input) && input.length > 0
    ? make(input.map((json, index) => policyOf(json, [...path, index], context)))
    : refuse(path, input, "an array of at least one policy")

/** A combinator with another policy. */
const another = (make: (that: any) => unknown): Reader => (input, path, context) => make(policyOf(input, path, context))

const paying = ["cost", "timeoutCost", "throttlingCost", "longPolling"]

const jittering = ["cap", "jitter"]

const sources: { readonly [name: string]: Reader } = {
  exponential: options(({ base, factor, ...others }) => Backoff.exponential(base, factor, others), [
    "base",
    "factor",
    ...jittering
  ]),
  linear: options(({ base, ...others }) => Backoff.linear(base, others), ["base", "increment", ...jittering]),
  fibonacci: options(({ base, ...others }) => Backoff.fibonacci(base, others), ["base", ...jittering]),
  fixed: options(({ delay, ...others }) => Backoff.fixed(delay, others), ["delay", "jitter"]),
  decorrelated: options(({ base, ...others }) => Backoff.decorrelated(base, others), ["base", "cap", "additive"]),
  fromDelay: (input, path, context) => RetryPolicy.fromDelay(functionOf(input, path, context)),
  choose: (input, path, context) => RetryPolicy.choose(functionOf(input, path, context)),
  fromSchedule: (input, path) => refuse(path, input, "left to code: a schedule has no JSON"),
  immediate: alone(RetryPolicy.immediate),
  max: several(RetryPolicy.max),
  min: several(RetryPolicy.min),
  never: alone(RetryPolicy.never),
  "JavaV1.exponentialBackoff": options(exponentialBackoff, ["baseDelay", "maxBackoff"]),
  "JavaV1.fullJitterBackoff": options(fullJitterBackoff, ["baseDelay", "maxBackoff"]),
  "JavaV1.equalJitterBackoff": options(equalJitterBackoff, ["baseDelay", "maxBackoff"]),
  "JavaScriptV2.backoff": options(javaScriptV2Backoff, ["base", "customBackoff", "maxRetryAfter", "addRetryAfter"]),
  "Kotlin.exponentialBackoffWithJitter": options(exponentialBackoffWithJitter, [
    "initialDelay",
    "scaleFactor",
    "jitter",
    "maxBackoff",
    "throttlingBaseDelay",
    "retryAfterMaxOvershoot",
    "useNewRetries"
  ])
}

const combinators: { readonly [name: string]: Reader } = {
  capped: value(RetryPolicy.capped, "cap"),
  jittered: value(RetryPolicy.jittered, "jitter"),
  provided: (input, path) => refuse(path, input, "left to code: a layer has no JSON"),
  mapDelay: (input, path, context) => RetryPolicy.mapDelay(functionOf(input, path, context)),
  honorRetryAfter: options(RetryPolicy.honorRetryAfter, ["atMost", "overshoot", "beyond"]),
  whenThrottled: another(RetryPolicy.whenThrottled),
  concat: another(RetryPolicy.concat),
  maxAttempts: value(RetryPolicy.maxAttempts, "maxAttempts"),
  withMaxAttempts: value(RetryPolicy.withMaxAttempts, "maxAttempts"),
  deadline: value(RetryPolicy.deadline, "deadline"),
  withDeadline: value(RetryPolicy.withDeadline, "deadline"),
  withoutDeadline: alone(RetryPolicy.withoutDeadline),
  while: (input, path, context) => RetryPolicy.while(functionOf(input, path, context)),
  whileRetryable: alone(RetryPolicy.whileRetryable),
  whileMaybeRetryable: alone(RetryPolicy.whileMaybeRetryable),
  withMaybeRetryable: alone(RetryPolicy.withMaybeRetryable),
  outermostOnly: alone(RetryPolicy.outermostOnly),
  quotaGated: options(RetryPolicy.quotaGated, paying),
  withQuota: options(RetryPolicy.withQuota, paying),
  requires: (input, path) =>
    input === "AdaptiveRateLimiter"
      ? RetryPolicy.requires(AdaptiveRateLimiter)
      : refuse(path, input, `"AdaptiveRateLimiter": other gates are left to code`),
  "RetryGrpc.honorPushback": options(honorPushback, ["atMost", "beyond"])
}

type Readers = typeof sources

/** Reads a step: its name, or its name and argument. */
const step = (json: unknown, isFirst: boolean, path: Path, context: Context): any => {
  const readers: Readers = isFirst ? sources : combinators
  const kind = isFirst ? "source" : "combinator"
  const entries = isObject(json) ? Object.entries(json) : [[json, undefined] as const]
  const [name, input] = entries[0] ?? []
  if (typeof name !== "string" || !Object.hasOwn(readers, name)) {
    return refuse(path, json, `a ${kind}: ${Object.keys(readers).join(", ")}`)
  }
  return entries.length > 1
    ? refuse(path, json, `one ${kind}, not ${entries.length}`)
    : readers[name]!(input, [...path, name], context)
}

const maxSteps = 1000
const maxDepth = 16

/** Where reading begins, without functions. */
export const plain: Context = { functions: {}, depth: 0 }

/** The policy from its steps, at its place in a document. Throws what is wrong with it. */
export const policyOf = (json: unknown, path: Path, outer: Context): any => {
  if (!isObject(json)) return refuse(path, json, "an object with steps")
  if (outer.depth > maxDepth) return refuse(path, json, `nested at most ${maxDepth} levels deep`)
  rejectUnknownKeys(json, ["steps"], path)
  const { steps } = json
  const at = [...path, "steps"]
  if (!Array.isArray(steps) || steps.length === 0) {
    return refuse(at, steps, "an array that begins with a source of delays")
  }
  if (steps.length > maxSteps) return refuse(at, steps, `an array of at most ${maxSteps} steps`)
  const context = { ...outer, depth: outer.depth + 1 }
  const [first, ...others] = steps.map((json, index) => step(json, index === 0, [...at, index], context))
  return others.reduce((policy, combinator) => combinator(policy), first)
}

/** The value read, or what is wrong with it. A value that throws when read is not valid JSON. */
export const reading = <A>(json: unknown, read: () => A): A | Refusal => {
  try {
    return read()
  } catch (error) {
    return error instanceof Refusal ? error : new Refusal([], json, "JSON")
  }
}

/** The policy from its JSON, or what is wrong with it. */
export const read = (json: unknown, functions: Functions): any =>
  reading(json, () => policyOf(json, [], { ...plain, functions }))

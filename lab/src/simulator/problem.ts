import * as Data from "effect/Data"
import type * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import { alternatives } from "./alternatives.ts"

/** What is wrong with a scenario, and where. */
export interface Problem {
  /** Where it is, such as `fleets[0].policy.maxAttempts`; empty for the scenario as a whole. */
  readonly path: string
  /** What is wrong there. */
  readonly problem: string
}

/**
 * A scenario that cannot be simulated.
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidScenario extends Data.TaggedError("InvalidScenario")<{
  /** What is wrong, in the order of the scenario: one problem for each place, at most 100. */
  readonly problems: ReadonlyArray<Problem>
}> {
  override get message(): string {
    return this.problems.map(({ path, problem }) => path === "" ? problem : `${path}: ${problem}`).join("\n")
  }
}

type Path = ReadonlyArray<PropertyKey>

/** `fleets[0].policy`; keys that are not plain words are quoted. */
export const renderPath = (path: Path): string =>
  path.reduce<string>((rendered, key) => {
    if (typeof key === "number") return `${rendered}[${key}]`
    const text = String(key)
    if (!/^[$A-Za-z_][\w$]*$/.test(text)) return `${rendered}[${JSON.stringify(text)}]`
    return rendered === "" ? text : `${rendered}.${text}`
  }, "")

const isKeyed = (value: unknown): value is Record<PropertyKey, unknown> => typeof value === "object" && value !== null

const valueAt = (input: unknown, path: Path): unknown =>
  path.reduce<unknown>((value, key) => isKeyed(value) ? value[key] : undefined, input)

/** A short form of any value: a hostile one may be deep, long or circular. */
const shown = (value: unknown): string => {
  if (typeof value === "string") return JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}...` : value)
  if (Array.isArray(value)) return "a list"
  return isKeyed(value) ? "an object" : String(value)
}

const describe = (message: string, value: unknown): string => {
  if (message === "Missing key") return "is missing"
  const text = message.charAt(0).toLowerCase() + message.slice(1)
  return `${text}, got ${shown(value)}`
}

const format = SchemaIssue.makeFormatterStandardSchemaV1()

const keyOf = (segment: PropertyKey | { readonly key: PropertyKey }): PropertyKey =>
  typeof segment === "object" ? segment.key : segment

interface Found {
  readonly path: Path
  readonly problem: string
}

/** The issues of a tree, one for each place, up to as many as anyone reads. */
function* leaves(issue: SchemaIssue.Issue, path: Path, input: unknown): Generator<Found> {
  if (issue._tag === "Pointer") return yield* leaves(issue.issue, [...path, ...issue.path], input)
  if (issue._tag === "Encoding") return yield* leaves(issue.issue, path, input)
  if (issue._tag === "Composite" || (issue._tag === "AnyOf" && issue.issues.length > 0)) {
    for (const inner of issue.issues) yield* leaves(inner, path, input)
    return
  }
  const explained = alternatives(issue, path, valueAt(input, path))
  if (explained !== undefined) return yield explained
  for (const { message, path: inner = [] } of format(issue).issues) {
    const keys = [...path, ...inner.map(keyOf)]
    yield { path: keys, problem: describe(message, valueAt(input, keys)) }
  }
}

/** More problems than anyone reads. */
const maxProblems = 100

/** The problems that a schema has found in an input: the first of each place. */
export const fromSchema = (error: Schema.SchemaError, input: unknown): InvalidScenario => {
  const problems = new Map<string, Problem>()
  for (const { path, problem } of leaves(error.issue, [], input)) {
    const rendered = renderPath(path)
    if (problems.has(rendered)) continue
    problems.set(rendered, { path: rendered, problem })
    if (problems.size === maxProblems) break
  }
  return new InvalidScenario({ problems: [...problems.values()] })
}

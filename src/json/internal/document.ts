import { partsOf } from "../../engine/policy/policy.ts"
import { type Fields, isObject, known, type Path, type Refusal, refuse } from "../../internal/refusal.ts"
import { limits } from "../../RetryPolicy.ts"
import type { Fleet } from "../../state/fleet.ts"
import type { StoreOptions } from "../../state/memoryStore.ts"
import type { Policy } from "../RetryPolicyJson.ts"
import type { Shareable } from "./fleet.ts"
import { made, reading, revived } from "./reading.ts"
import { sections } from "./sections.ts"
import { policyAt } from "./shortPolicy.ts"

/** What a document says about a resource. */
export interface Entry {
  /** Whether the document says nothing about it. */
  readonly isGuess: boolean
  readonly isOff: boolean
  readonly policy: Policy
  /** The checked options, and the JSON they were made from, by the key of a section. */
  readonly parts: { readonly [section: string]: { readonly options: unknown; readonly json: string } | undefined }
}

/** A whole document. */
export interface Document {
  readonly others: Entry
  readonly resources: ReadonlyMap<string, Entry>
}

const maxResources = 10_000

const isOff = (given: unknown, path: Path): boolean =>
  given === undefined || given === "on" || given === "off"
    ? given === "off"
    : refuse(path, given, `"on" or "off"`)

const object = (given: unknown, path: Path, expected = "an object"): Fields =>
  given === undefined ? {} : isObject(given) ? given : refuse(path, given, expected)

const part = (key: string, given: unknown, path: Path, fleet: Fleet | undefined) => {
  if (given === undefined) return undefined
  const section = sections[key]!
  const fields = object(given, path)
  known(fields, section.keys, path)
  const values = Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, revived(value)]))
  return { options: made(() => section.check(values, path, fleet), path, given), json: JSON.stringify(fields) }
}

const entry = (given: unknown, path: Path, offForAll: boolean, fleet: Fleet | undefined): Entry => {
  const fields = object(given, path)
  known(fields, ["retries", "policy", ...Object.keys(sections)], path)
  const policy = policyAt(fields["policy"] ?? {}, [...path, "policy"])
  const needed = { ...fields, limiter: fields["limiter"] ?? (partsOf(policy).adaptive ? {} : undefined) }
  const parts = Object.fromEntries(
    Object.keys(sections).map((key) => [key, part(key, (needed as Fields)[key], [...path, key], fleet)])
  )
  affordable(policy, (parts["quota"]?.options as Shareable<StoreOptions> | undefined)?.options, path)
  return {
    isGuess: given === undefined,
    isOff: isOff(fields["retries"], [...path, "retries"]) || offForAll,
    policy,
    parts
  }
}

/** A quota that cannot pay for a single retry would silently switch retries off. */
const affordable = (policy: Policy, quota: { readonly capacity: number } | undefined, path: Path): void => {
  const cost = limits(policy).quota?.cost ?? 0
  const capacity = quota?.capacity ?? 500
  if (cost > capacity) refuse([...path, "quota", "capacity"], capacity, `at least ${cost}, the cost of a retry`)
}

const document = (json: unknown, fleet: Fleet | undefined): Document => {
  if (!isObject(json)) return refuse([], json, "an object with resources")
  known(json, ["$schema", "retries", "default", "resources"], [])
  const offForAll = isOff(json["retries"], ["retries"])
  const resources = Object.entries(object(json["resources"], ["resources"], "an object with a key for each resource"))
  if (resources.length > maxResources) refuse(["resources"], resources.length, `at most ${maxResources} resources`)
  return {
    others: entry(json["default"], ["default"], offForAll, fleet),
    resources: new Map(resources.map(([name, given]) => [name, entry(given, ["resources", name], offForAll, fleet)]))
  }
}

/** The document from its JSON, or what is wrong with it. */
export const documentOf = (json: unknown, fleet: Fleet | undefined): Document | Refusal =>
  reading(json, () => document(json, fleet))

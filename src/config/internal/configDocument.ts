import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import { compiledOf } from "../../engine/policy/policy.ts"
import * as Invalid from "../../internal/invalidField.ts"
import type { AnyContext } from "../../internal/shared.ts"
import type { StoreOptions } from "../../quota/internal/memoryStore.ts"
import * as RetryPolicy from "../../RetryPolicy.ts"
import type { Policy } from "../RetryPolicyJson.ts"
import type { Shareable } from "./fleetQuota.ts"
import { type HedgeSection, sections } from "./gateSections.ts"
import { below, made, reading } from "./policyReader.ts"
import { type Ceiling, CurrentCeiling } from "./resourcePart.ts"
import { policyAt } from "./shortPolicy.ts"

/** What a document says about a resource. */
export interface Entry {
  /** Whether the document says nothing about it. */
  readonly isGuess: boolean
  readonly isOff: boolean
  readonly policy: Policy
  /** The place of a quota that nothing in the policy pays from, so that it does nothing. */
  readonly unpaid: string | undefined
  /** The checked options, and the JSON they were made from, by the key of a section. */
  readonly parts: { readonly [section: string]: { readonly options: unknown; readonly json: string } | undefined }
}

/** A whole document. */
export interface Document {
  readonly others: Entry
  readonly resources: ReadonlyMap<string, Entry>
}

const maxResources = 10_000

const isOff = (input: unknown, path: Invalid.Path): boolean =>
  input === undefined || input === "on" || input === "off"
    ? input === "off"
    : Invalid.refuse(path, input, `"on" or "off"`)

const object = (input: unknown, path: Invalid.Path, expected = "an object"): Invalid.Fields =>
  input === undefined ? {} : Invalid.isObject(input) ? input : Invalid.refuse(path, input, expected)

const part = (key: string, input: unknown, path: Invalid.Path, context: AnyContext) => {
  if (input === undefined) return undefined
  const { check, keys } = sections[key]!
  const fields = below(input, keys, path)
  return { options: made(() => check(fields, path, context), path, input), json: JSON.stringify(input) }
}

const entry = (input: unknown, path: Invalid.Path, offForAll: boolean, context: AnyContext): Entry => {
  const fields = object(input, path)
  Invalid.rejectUnknownKeys(fields, ["retries", "policy", ...Object.keys(sections)], path)
  const asked = policyAt(fields["policy"] ?? {}, [...path, "policy"])
  const needed = { ...fields, limiter: fields["limiter"] ?? (compiledOf(asked).adaptive ? {} : undefined) }
  const parts = Object.fromEntries(
    Object.keys(sections).map((key) => [key, part(key, (needed as Invalid.Fields)[key], [...path, key], context)])
  )
  const hedge = parts["hedge"]?.options as HedgeSection | undefined
  const policy = bounded(
    Context.get(context, CurrentCeiling),
    asked,
    { isOpen: isOpen(fields["policy"]), hedges: hedge?.call.atMost ?? 0 },
    path
  )
  const quota = (parts["quota"]?.options as Shareable<StoreOptions> | undefined)?.options
  affordable(policy, quota, path)
  return {
    isGuess: input === undefined,
    isOff: isOff(fields["retries"], [...path, "retries"]) || offForAll,
    policy,
    unpaid: unpaidAt([...path, "quota"], quota, policy, fields["policy"]),
    parts
  }
}

/** Whether a document says nothing of attempts: those of a default are no request. */
const isOpen = (input: unknown): boolean =>
  input === undefined || (Invalid.isObject(input) && !("maxAttempts" in input) && !("steps" in input))

/** The policy, at most as much as code allows. One that asks for more by number is refused, not cut. */
const bounded = (
  { attempts, leastMillis, unsafe }: Ceiling,
  policy: Policy,
  { hedges, isOpen }: { readonly hedges: number; readonly isOpen: boolean },
  path: Invalid.Path
): Policy => {
  const { maxAttempts } = RetryPolicy.limits(policy)
  const asked = isOpen || maxAttempts === Infinity ? 1 : maxAttempts
  if (asked > attempts) {
    Invalid.refuse(
      [...path, "policy"],
      maxAttempts,
      `a policy of at most ${attempts} attempts, which RetryConfig.atMost changes`
    )
  }
  if (asked * (1 + hedges) > attempts) {
    const expected = `at most ${Math.floor(attempts / asked) - 1}, so that a call has at most ${attempts} sends`
    Invalid.refuse([...path, "hedge", "atMost"], hedges, `${expected}, which RetryConfig.atMost changes`)
  }
  const most = Math.floor(attempts / (1 + hedges))
  const limited = maxAttempts > most ? RetryPolicy.maxAttempts(policy, most) : policy
  const paced = leastMillis === 0
    ? limited
    : RetryPolicy.mapDelay(limited, (delay) => Duration.max(delay, Duration.millis(leastMillis)))
  return unsafe ? paced : RetryPolicy.whileRetryable(paced)
}

/** A quota that cannot pay for a single retry would silently switch retries off. */
const affordable = (policy: Policy, quota: { readonly capacity: number } | undefined, path: Invalid.Path): void => {
  const cost = RetryPolicy.limits(policy).quota?.cost ?? 0
  const capacity = quota?.capacity ?? 500
  if (cost > capacity) Invalid.refuse([...path, "quota", "capacity"], capacity, `at least ${cost}, the cost of a retry`)
}

/** A step that pays, perhaps of a policy inside another, whose limits do not show it. */
const paying = /"(?:quotaGated|withQuota)"/

/** The place of the quota, if nothing is taken from it. */
const unpaidAt = (
  path: Invalid.Path,
  quota: StoreOptions | undefined,
  policy: Policy,
  input: unknown
): string | undefined => {
  if (quota === undefined || quota.firstAttemptCost > 0 || RetryPolicy.limits(policy).quota !== undefined) {
    return undefined
  }
  return paying.test(JSON.stringify(input)) ? undefined : path.reduce(Invalid.pathText, "")
}

const document = (json: unknown, context: AnyContext): Document => {
  if (!Invalid.isObject(json)) return Invalid.refuse([], json, "an object with resources")
  Invalid.rejectUnknownKeys(json, ["$schema", "retries", "default", "resources"], [])
  const offForAll = isOff(json["retries"], ["retries"])
  const resources = Object.entries(object(json["resources"], ["resources"], "an object with a key for each resource"))
  if (resources.length > maxResources) {
    Invalid.refuse(["resources"], resources.length, `at most ${maxResources} resources`)
  }
  return {
    others: entry(json["default"], ["default"], offForAll, context),
    resources: new Map(resources.map(([name, input]) => [name, entry(input, ["resources", name], offForAll, context)]))
  }
}

/** The document from its JSON, or what is wrong with it. */
export const documentOf = (json: unknown, context: AnyContext): Document | Invalid.Refusal =>
  reading(json, () => document(json, context))

import * as RetryPolicyJson from "effect-retry/RetryPolicyJson"
import { toMillis } from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Time } from "./fields.ts"
import { settingsOf } from "./policy.ts"
import { type PolicyName, policyNames } from "./policyNames.ts"
import { InvalidScenario } from "./problem.ts"
import type { Scenario } from "./scenario.ts"
import { millis } from "./units.ts"

/** `fleets.0.rate` or `fleets[0].rate`, as keys. */
const keysOf = (path: string): ReadonlyArray<string> => path.replaceAll(/\[(\d+)\]/g, ".$1").split(".")

type Node = { readonly [key: string]: unknown } | ReadonlyArray<unknown>

const isNode = (value: unknown): value is Node => typeof value === "object" && value !== null

const refuse = (path: string, problem: string): never => {
  throw new InvalidScenario({ problems: [{ path, problem }] })
}

const isOutage = (node: Node): node is { readonly from: Time; readonly to: Time } => "from" in node && "to" in node

const putIn = (list: ReadonlyArray<unknown>, place: number, put: (node: unknown) => unknown): ReadonlyArray<unknown> =>
  list.map((one, n) => n === place ? put(one) : one)

const isPolicyName = (value: unknown): value is PolicyName => policyNames.some((name) => name === value)

/** The value of a key, to be changed: for a policy by name, the settings that the name stands for. */
const insideOf = (key: string, value: unknown, path: string): unknown => {
  if (key !== "policy" || !isPolicyName(value)) return value ?? {}
  return settingsOf(value) ?? refuse(path, `the policy ${JSON.stringify(value)} has no settings`)
}

const put = (node: unknown, [key, ...rest]: ReadonlyArray<string>, value: unknown, path: string): unknown => {
  if (key === undefined) return value
  if (!isNode(node)) return refuse(path, `there is no ${JSON.stringify(key)} to set`)
  if (Array.isArray(node)) {
    if (!(Number(key) in node)) return refuse(path, `the list has no item ${key}`)
    return putIn(node, Number(key), (one) => put(one, rest, value, path))
  }
  // The length of an outage, in milliseconds: it begins when it does.
  if (key === "length" && isOutage(node)) return { ...node, to: millis(node.from) + Number(value) }
  const record = node as { readonly [key: string]: unknown }
  return { ...record, [key]: rest.length === 0 ? value : put(insideOf(key, record[key], path), rest, value, path) }
}

/**
 * The scenario with another value at a path, such as `fleets.0.rate` or `services.0.outages.0.length`. The result must
 * be decoded again: see `decode`.
 */
export const withValue = (scenario: Scenario, path: string, value: unknown): Effect.Effect<unknown, InvalidScenario> =>
  Effect.try({
    try: () => put(scenario, keysOf(path), value, path),
    catch: (error) => {
      if (error instanceof InvalidScenario) return error
      throw error
    }
  })

const childOf = (node: unknown, key: string): unknown => {
  if (!isNode(node)) return undefined
  if (key === "length" && isOutage(node)) return millis(node.to) - millis(node.from)
  return (node as { readonly [key: string]: unknown })[key]
}

/** The number that a scenario has at a path, of a duration its milliseconds; `undefined` where there is none. */
export const numberAt = (scenario: Scenario, path: string): number | undefined => {
  const value = keysOf(path).reduce(childOf, scenario as unknown)
  if (typeof value === "number") return value
  return typeof value === "string"
    ? Option.getOrUndefined(Option.map(RetryPolicyJson.duration(value), toMillis))
    : undefined
}

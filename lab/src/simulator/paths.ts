import * as Effect from "effect/Effect"
import type { Time } from "./fields.ts"
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

const put = (node: unknown, [key, ...rest]: ReadonlyArray<string>, value: unknown, path: string): unknown => {
  if (key === undefined) return value
  if (!isNode(node)) return refuse(path, `there is no ${JSON.stringify(key)} to set`)
  if (Array.isArray(node)) {
    if (!(Number(key) in node)) return refuse(path, `the list has no place ${key}`)
    return putIn(node, Number(key), (one) => put(one, rest, value, path))
  }
  // The length of an outage, in milliseconds: it begins when it does.
  if (key === "length" && isOutage(node)) return { ...node, to: millis(node.from) + Number(value) }
  const record = node as { readonly [key: string]: unknown }
  return { ...record, [key]: rest.length === 0 ? value : put(record[key] ?? {}, rest, value, path) }
}

/**
 * The scenario with another value at a path, such as `fleets.0.rate` or `services.0.outages.0.length`. What it then is has to
 * be read again: see `decode`.
 */
export const withValue = (scenario: Scenario, path: string, value: unknown): Effect.Effect<unknown, InvalidScenario> =>
  Effect.try({
    try: () => put(scenario, keysOf(path), value, path),
    catch: (error) => {
      if (error instanceof InvalidScenario) return error
      throw error
    }
  })

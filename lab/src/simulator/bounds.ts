import * as Effect from "effect/Effect"
import { overTime } from "./overTime.ts"
import { InvalidScenario } from "./problem.ts"
import type { Scenario, ServiceSettings } from "./scenario.ts"
import { millis } from "./units.ts"

/** Something at each time, for times that only grow; `undefined` where there is no such thing. */
export type AtTime = (nowMillis: number) => number | undefined

/** The pace of one queue, per second, at each time. */
export const paceOf = (capacity: NonNullable<ServiceSettings["capacity"]>): (nowMillis: number) => number =>
  typeof capacity === "number"
    ? () => capacity
    : overTime(capacity.map((point) => ({ atMillis: millis(point.at), value: point.capacity, ramp: point.ramp })))

/** The capacity of all instances of a service, per second; `undefined` without one. */
export const capacityOf = ({ capacity, instances }: ServiceSettings): ((nowMillis: number) => number) | undefined => {
  if (capacity === undefined) return undefined
  const pace = paceOf(capacity)
  return (nowMillis) => instances * pace(nowMillis)
}

/** What the limit of a service admits, per second. */
export const limitOf = ({ limit }: ServiceSettings): AtTime | undefined => {
  if (limit === undefined) return undefined
  const rules = "requests" in limit ? [{ at: 0, ...limit }] : limit
  return (nowMillis) => {
    const rule = rules.filter(({ at }) => millis(at) <= nowMillis).at(-1)
    return rule === undefined || millis(rule.per) === 0 ? undefined : rule.requests * 1000 / millis(rule.per)
  }
}

/** Whether anything bounds what a service can handle: without that nothing overloads it, and nothing has to recover. */
export const isBounded = ({ services }: Scenario): boolean =>
  services.some(({ capacity, connections, limit, slowdown, workers }) =>
    (capacity ?? connections ?? limit ?? workers) !== undefined || millis(slowdown) > 0
  )

/** Why nothing can be said of a recovery where nothing bounds a service. */
export const unbounded = "not known: no service has a capacity, workers, connections, a limit or a slowdown"

/** Refuses such scenarios where a recovery decides. */
export const bounded = (scenarios: ReadonlyArray<Scenario>): Effect.Effect<void, InvalidScenario> =>
  scenarios.every(isBounded)
    ? Effect.void
    : Effect.fail(new InvalidScenario({ problems: [{ path: "", problem: `whether calls recover is ${unbounded}` }] }))

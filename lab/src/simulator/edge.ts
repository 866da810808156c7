import * as Effect from "effect/Effect"
import { Executor } from "./executor.ts"
import { inOrder } from "./inOrder.ts"
import { type Verdict, verdictOf } from "./judge.ts"
import type { Scenario, ServiceSettings } from "./scenario.ts"
import { millis, scaled } from "./units.ts"

/**
 * What becomes of the calls after the outage with the capacity as written, a tenth less and a tenth more.
 *
 * @category models
 * @since 0.1.0
 */
export interface Edge {
  readonly less: Verdict
  readonly written: Verdict
  readonly more: Verdict
  /** Whether the three differ. */
  readonly isNear: boolean
}

/** How exact a measured capacity is, at best. */
const tenth = 0.1

/** A service with this many times the capacity; `undefined` where nothing bounds it. */
const bearing = (service: ServiceSettings, times: number): ServiceSettings | undefined => {
  const { capacity, latency, slowdown, workers } = service
  if (capacity !== undefined) {
    const more = typeof capacity === "number"
      ? capacity * times
      : [
        { ...capacity[0], capacity: capacity[0].capacity * times },
        ...capacity.slice(1).map((point) => ({ ...point, capacity: point.capacity * times }))
      ] as const
    return { ...service, capacity: more, slowdown: millis(slowdown) * (1 / times) }
  }
  if (workers === undefined && millis(slowdown) === 0) return undefined
  return { ...service, latency: scaled(latency, 1 / times), slowdown: millis(slowdown) * (1 / times) }
}

/** The scenario with this many times the capacity in all services; `undefined` where none has a bound. */
export const bearingTimes = (scenario: Scenario, times: number): Scenario | undefined => {
  const bearers = scenario.services.map((service) => bearing(service, times))
  if (bearers.every((service) => service === undefined)) return undefined
  const [first, ...others] = scenario.services.map((service, index) => bearers[index] ?? service)
  return { ...scenario, services: [first!, ...others] }
}

export const edgeOf = Effect.fnUntraced(function*(scenario: Scenario, runs: number) {
  const [weaker, stronger] = [bearingTimes(scenario, 1 - tenth), bearingTimes(scenario, 1 + tenth)]
  const hasOutage = scenario.services.some(({ outages }) => outages.length > 0)
  if (!hasOutage || weaker === undefined || stronger === undefined) return undefined
  const executor = yield* Executor
  const [written, less, more] = yield* inOrder(
    [scenario, weaker, stronger],
    (changed) => verdictOf(changed, runs),
    executor.concurrency
  )
  const edge: Edge = { less: less!, written: written!, more: more!, isNear: less !== written || more !== written }
  return edge
})

import type { Scenario } from "../../Simulator.ts"
import { type AtTime, capacityOf, limitOf } from "../../simulator/bounds.ts"
import { Chance } from "../../simulator/chance.ts"
import { millis, sampler } from "../../simulator/units.ts"

/** An upper bound of what a service can handle, in requests per second. */
export interface Bound {
  readonly label: "capacity" | "limit"
  readonly at: AtTime
  /** It follows from what the work takes on average. */
  readonly isEstimated: boolean
}

type Service = Scenario["services"][number]

/** Draws enough for the mean of a distribution to two digits. */
const draws = 10_000

/** How long the work on a request takes on average, alone at its service. */
const meanMillis = ({ latency, name, slowdown }: Service): number => {
  const sample = sampler(latency)
  if (sample === undefined) return millis(slowdown)
  const chance = new Chance(1, name)
  let sum = 0
  for (let n = 0; n < draws; n++) sum += sample(chance)
  return sum / draws + millis(slowdown)
}

/** The throughput of workers that are never idle. */
const ofWorkers = (service: Service): ReadonlyArray<Bound> => {
  const { calls, instances, workers } = service
  const mean = meanMillis(service)
  // Workers wait for the services that they call: how long is unknown here.
  if (workers === undefined || mean === 0 || calls.length > 0) return []
  const perSecond = Number((instances * workers * 1000 / mean).toPrecision(2))
  return [{ label: "capacity", at: () => perSecond, isEstimated: true }]
}

/** What the scenario says a service can handle: its capacity or that of its workers, and its limit. */
export const boundsOf = ({ services }: Scenario, name: string): ReadonlyArray<Bound> => {
  const service = services.find((one) => one.name === name)
  if (service === undefined) return []
  const [capacity, limit] = [capacityOf(service), limitOf(service)]
  return [
    ...capacity === undefined ? ofWorkers(service) : [{ label: "capacity" as const, at: capacity, isEstimated: false }],
    ...limit === undefined ? [] : [{ label: "limit" as const, at: limit, isEstimated: false }]
  ]
}

/** The lowest bound of a service at a time; `Infinity` without any. */
export const leastBound = (scenario: Scenario, name: string, atMillis: number): number =>
  Math.min(...boundsOf(scenario, name).map(({ at }) => at(atMillis) ?? Infinity))

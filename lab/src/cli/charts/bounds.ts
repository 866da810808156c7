import type { Scenario } from "../../Simulator.ts"
import { type AtTime, capacityOf, limitOf } from "../../simulator/bounds.ts"
import { Chance } from "../../simulator/chance.ts"
import { millis, sampler } from "../../simulator/units.ts"

/** Something that a service bears no more than, in requests per second. */
export interface Bound {
  readonly label: "capacity" | "limit"
  readonly at: AtTime
  /** It follows from what the work takes on average. */
  readonly isEstimated: boolean
}

type Service = Scenario["services"][number]

/** Draws that tell the mean of a distribution to two digits. */
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

/** What workers get done who never rest. */
const ofWorkers = (service: Service): ReadonlyArray<Bound> => {
  const { calls, instances, workers } = service
  const mean = meanMillis(service)
  // Workers wait for the services that they call, and nobody knows how long that takes.
  if (workers === undefined || mean === 0 || calls.length > 0) return []
  const perSecond = Number((instances * workers * 1000 / mean).toPrecision(2))
  return [{ label: "capacity", at: () => perSecond, isEstimated: true }]
}

/** What the scenario says a service bears: its capacity or that of its workers, and its limit. */
export const boundsOf = ({ services }: Scenario, name: string): ReadonlyArray<Bound> => {
  const service = services.find((one) => one.name === name)
  if (service === undefined) return []
  const [capacity, limit] = [capacityOf(service), limitOf(service)]
  return [
    ...capacity === undefined ? ofWorkers(service) : [{ label: "capacity" as const, at: capacity, isEstimated: false }],
    ...limit === undefined ? [] : [{ label: "limit" as const, at: limit, isEstimated: false }]
  ]
}

/** The least that a service bears no more than at a time; `Infinity` where nothing is said. */
export const leastBound = (scenario: Scenario, name: string, atMillis: number): number =>
  Math.min(...boundsOf(scenario, name).map(({ at }) => at(atMillis) ?? Infinity))

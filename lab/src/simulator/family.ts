import { lasting } from "./lasting.ts"
import type { Outage, Scenario } from "./scenario.ts"
import { millis } from "./units.ts"

/** A member of a family: a scenario, and its name among the others. */
export interface Member {
  readonly name: string
  readonly scenario: Scenario
}

/** Every outage changed, and the run extended to match, so that calls have the same time to recover. */
const changed = (scenario: Scenario, change: (outage: Outage) => Outage): Scenario => {
  const [first, ...others] = scenario.services.map((service) => ({ ...service, outages: service.outages.map(change) }))
  const endOf = ({ services }: Scenario) =>
    Math.max(...services.flatMap(({ outages }) => outages.map(({ to }) => millis(to))))
  const one: Scenario = { ...scenario, services: [first!, ...others] }
  const later = endOf(one) - endOf(scenario)
  return later <= 0 ? one : { ...one, duration: millis(scenario.duration) + later }
}

const failing = ({ from, to }: Outage): Outage => ({ kind: "fail", from, to, share: 0.5, behindLimit: false })
const slow = ({ from, to }: Outage): Outage => ({ kind: "slow", from, to, factor: 10 })

const hasWork = ({ services }: Scenario): boolean =>
  services.some(({ capacity, latency, outages }) => outages.length > 0 && (capacity !== undefined || latency !== 0))

/** Outages like those of a scenario: shorter, longer, and of the other kinds. None if it has none. */
export const familyOf = (scenario: Scenario): ReadonlyArray<Member> => {
  const kinds = new Set(scenario.services.flatMap(({ outages }) => outages.map(({ kind }) => kind)))
  if (kinds.size === 0) return []
  return [
    { name: "as written", scenario },
    { name: "half as long", scenario: changed(scenario, (outage) => lasting(outage, 0.5)) },
    { name: "twice as long", scenario: changed(scenario, (outage) => lasting(outage, 2)) },
    ...kinds.has("fail") ? [] : [{ name: "half of the requests fail", scenario: changed(scenario, failing) }],
    ...kinds.has("slow") || !hasWork(scenario)
      ? []
      : [{ name: "ten times as slow", scenario: changed(scenario, slow) }]
  ]
}

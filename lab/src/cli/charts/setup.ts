import type { Scenario } from "../../Simulator.ts"
import { peakOf } from "../../simulator/arrivals.ts"
import { millis as millisOf } from "../../simulator/units.ts"
import { boundsOf, leastBound } from "./bounds.ts"
import { counted, millis, moment, rounded } from "./format.ts"
import { type Html, html, name } from "./html.ts"
import type { Runs } from "./run.ts"

/** Fleets, services and outages that are named: all are in the scenario at the end of the page. */
const most = 3

type Fleet = Scenario["fleets"][number]

/** The highest rate of a fleet's calls, in an open loop. */
const rateOf = ({ arrivals, rate }: Fleet): number | undefined => {
  if (typeof arrivals === "object") return peakOf(arrivals)
  return rate === undefined || typeof rate === "number" ? rate : Math.max(...rate.map((point) => point.rate))
}

const loadOf = (fleet: Fleet): string => {
  const { clients, processes, rate, timeout } = fleet
  const most = rateOf(fleet)
  const calls = most === undefined
    ? `${(clients ?? 1) === 1 ? "one client" : `${counted(clients ?? 1)} clients`}, one call after the other`
    : `${typeof rate === "number" ? "" : "up to "}${rounded(most)} calls per second${
      rate === undefined ? ", as recorded" : ""
    }`
  return [
    calls,
    ...processes === 1 ? ["one process"] : [`${counted(processes)} processes`],
    ...timeout === undefined ? ["no timeout"] : [`timeout ${millis(millisOf(timeout))}`]
  ].join(", ")
}

const bearsOf = (scenario: Scenario, service: Scenario["services"][number]): string => {
  const until = millisOf(scenario.duration)
  const bounds = boundsOf(scenario, service.name).flatMap(({ at, isEstimated, label }) => {
    const [first, last] = [at(0), at(until)]
    if (first === undefined) return []
    return [
      `${label} ${isEstimated ? "about " : ""}${rounded(first)} requests per second${
        last === undefined || last === first ? "" : `, at the end ${rounded(last)}`
      }`
    ]
  })
  const workers = service.workers === undefined ? [] : [`${counted(service.workers)} workers`]
  const connections = service.connections === undefined ? [] : [`${counted(service.connections)} connections`]
  const instances = service.instances === 1 ? [] : [`${counted(service.instances)} instances`]
  return [...connections, ...instances, ...workers, ...bounds].join(", ") || "no bound"
}

const kinds = {
  fail: "requests fail",
  drop: "requests get no answer",
  hold: "requests are held and delivered at its end",
  slow: "work is slow"
} as const

const troubles = ({ duration, services }: Scenario): ReadonlyArray<Html> =>
  services.flatMap(({ name: service, outages }) =>
    outages.map((outage) => {
      const until = millisOf(duration)
      const [from, to] = [millisOf(outage.from), millisOf(outage.to)]
      const part = "share" in outage && outage.share < 1 ? `${counted(outage.share * 100)} % of ` : ""
      const factor = outage.kind === "slow" ? `, ${counted(outage.factor)} times as long` : ""
      return html`${moment(to - from, until)} at ${name(service)}, from ${moment(from, until)} to ${
        moment(to, until)
      }: ${part}${kinds[outage.kind]}${factor}`
    })
  )

/** The capacity that the fleets' calls leave unused: of the service with the least of it. */
const headroom = (scenario: Scenario): ReadonlyArray<Html> => {
  const found = scenario.services.flatMap(({ name: service }) => {
    const capacity = leastBound(scenario, service, 0)
    const rates = scenario.fleets.filter(({ to }) => to === service).map(rateOf)
    const defined = rates.filter((rate) => rate !== undefined)
    if (capacity === Infinity || defined.length === 0 || defined.length < rates.length) return []
    return [{ service, capacity, calls: defined.reduce((sum, rate) => sum + rate, 0) }]
  }).sort((a, b) => b.calls / b.capacity - a.calls / a.capacity)
  return found.slice(0, 1).map(({ capacity, calls, service }) =>
    html`<strong>${counted(Math.round(100 * (1 - calls / capacity)))} %</strong>: ${rounded(calls)} of ${
      rounded(capacity)
    } per second at ${name(service)} before any retry`
  )
}

const some = <A>(list: ReadonlyArray<A>, write: (one: A) => Html): ReadonlyArray<Html> => [
  ...list.slice(0, most).map(write),
  ...list.length > most ? [html`and ${counted(list.length - most)} more`] : []
]

const entry = (term: string, parts: ReadonlyArray<Html>): Html =>
  parts.length === 0 ? html`` : html`<div><dt>${term}</dt>${parts.map((part) => html`<dd>${part}</dd>`)}</div>
`

/** The numbers of the scenario that matter. */
export const setup = (runs: Runs): Html => {
  const { results, result: { scenario } } = runs[0]
  const seeds = results.map((result) => result.scenario.seed)
  const of = runs.length === 1 ? "," : " of each policy, with the same"
  return html`<dl class="setup">${
    entry("Load", some(scenario.fleets, (fleet) => html`${name(fleet.name)} to ${name(fleet.to)}: ${loadOf(fleet)}`))
  }${
    entry("Service", some(scenario.services, (service) => html`${name(service.name)}: ${bearsOf(scenario, service)}`))
  }${entry("Headroom", headroom(scenario))}${entry("Trouble", some(troubles(scenario), (trouble) => trouble))}${
    entry("Runs", [
      results.length === 1
        ? html`one${of} seed ${`${seeds[0]}`}: one random sample, which shows no range`
        : html`${counted(results.length)}${of} seeds ${`${seeds[0]}`} to ${`${
          seeds.at(-1)
        }`}: means, and from 5 to 95 % of the runs`
    ])
  }</dl>`
}

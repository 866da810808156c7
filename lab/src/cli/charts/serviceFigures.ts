import type { ServiceBucket } from "../../Simulator.ts"
import { millis } from "../../simulator/units.ts"
import { across, highest, perSecond, read } from "./buckets.ts"
import { type Figure, greatest, type Line } from "./figure.ts"
import { lookOf, reference } from "./palette.ts"
import { over, type Plan } from "./plan.ts"

/** What a service bears is drawn unless it is so many times what it is given that nothing else were to see. */
const farAway = 4

/** A line of the same height all along, where the scenario says what the service bears. */
const boundOf = ({ raster, runs: [{ result }] }: Plan, name: string): ReadonlyArray<Line> => {
  const settings = result.scenario.services.find((service) => service.name === name)
  const line = (label: string, value: number, place: number): Line => ({
    label,
    look: reference(place),
    values: Array.from({ length: raster.points }, () => value)
  })
  const limit = settings?.limit
  return [
    ...settings?.capacity === undefined ? [] : [line("capacity", settings.capacity, 1)],
    ...limit === undefined || millis(limit.per) === 0
      ? []
      : [line("limit", limit.requests * 1000 / millis(limit.per), 2)]
  ]
}

/** Calls that began, of all who call the service. With several runs only where all make the same. */
const offeredTo = ({ raster, runs }: Plan, name: string): ReadonlyArray<Line> => {
  const [{ result }] = runs
  const callers = result.clients.filter(({ to }) => to === name)
  const open = new Set(result.scenario.fleets.filter(({ rate }) => rate !== undefined).map((fleet) => fleet.name))
  const same = callers.every((caller) => caller.kind === "fleet" && open.has(caller.name))
  if (callers.length === 0 || (runs.length > 1 && !same)) return []
  const lines = callers.map(({ series }) => read(raster, series, result.untilMillis, perSecond(({ calls }) => calls)))
  return [{
    label: "calls, without their retries",
    look: reference(0),
    values: lines[0]!.map((_, n) =>
      lines.reduce<number | null>((sum, line) => sum === null ? null : sum + (line[n] ?? 0), 0)
    )
  }]
}

const received = perSecond<ServiceBucket>((bucket) => bucket.received)
const succeeded = perSecond<ServiceBucket>((bucket) => bucket.succeeded)
const waiting = highest<ServiceBucket>(({ queued }) => queued)

const linesOf = (plan: Plan, name: string, reading: typeof received): ReadonlyArray<Line> =>
  plan.runs.map(({ label, results }, place) => ({
    label,
    look: lookOf(place),
    ...across(
      results.flatMap(({ services, untilMillis }) =>
        services.filter((one) => one.name === name).map(({ series }) => read(plan.raster, series, untilMillis, reading))
      )
    )
  }))

const loadOf = (plan: Plan, name: string): Figure => {
  const several = plan.runs.length > 1
  const received_ = linesOf(plan, name, received)
  const lines = several ? received_ : [
    ...received_.map((line) => ({ ...line, label: "requests" })),
    ...linesOf(plan, name, succeeded).map((line) => ({ ...line, label: "answered well", look: lookOf(2) }))
  ]
  const against = offeredTo(plan, name)
  const most = greatest([...lines, ...against].flatMap(({ values }) => values))
  return over(plan, {
    title: `Load on ${name}`,
    what: several
      ? "Requests that reach the service, by policy, against the calls that are made and what it bears."
      : "Requests that reach the service, against the calls that are made and what it bears.",
    axis: "per second",
    unit: "per second",
    lines: [...lines, ...against, ...boundOf(plan, name).filter(({ values }) => values[0]! <= farAway * most)]
  })
}

const queueOf = (plan: Plan, name: string): Figure =>
  over(plan, {
    title: `Waiting at ${name}`,
    what: "Requests in the queue of the service.",
    axis: "requests",
    unit: "number",
    lines: plan.runs.length > 1
      ? linesOf(plan, name, waiting)
      : linesOf(plan, name, waiting).map((line) => ({ ...line, label: "waiting" }))
  })

/** What is drawn of a service: its load, and its queue if there ever was one. */
export const serviceFigures = (plan: Plan, name: string): ReadonlyArray<Figure> => {
  const queue = queueOf(plan, name)
  return greatest(queue.lines.flatMap(({ values }) => values)) > 0 ? [loadOf(plan, name), queue] : [loadOf(plan, name)]
}

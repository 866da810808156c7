import type { ServiceBucket } from "../../Simulator.ts"
import { boundsOf } from "./bounds.ts"
import { across, highest, perSecond, read, type Reading, timesOf } from "./buckets.ts"
import { type Figure, greatest, type Line } from "./figure.ts"
import { lookOf, reference } from "./palette.ts"
import { panelsOf } from "./panels.ts"
import { over, type Plan } from "./plan.ts"
import type { Run } from "./run.ts"

/** A service's bound is drawn unless it is so far above the load that it would flatten everything else. */
const farAway = 4

/** Lines for the bounds of the service in the scenario. */
const boundLines = ({ raster, runs: [{ result }] }: Plan, name: string): ReadonlyArray<Line> =>
  boundsOf(result.scenario, name).map(({ at, label }, n) => ({
    label,
    look: reference(n + 1),
    values: timesOf(raster, "middle").map((time) => at(time) ?? null)
  }))

/** Calls that began, of all clients of the service. With several runs only where all make the same. */
const offeredTo = ({ raster, runs }: Plan, name: string): ReadonlyArray<Line> => {
  const [{ result }] = runs
  const callers = result.clients.filter(({ to }) => to === name)
  const open = new Set(result.scenario.fleets.filter(({ rate }) => rate !== undefined).map((fleet) => fleet.name))
  const same = callers.every((caller) => caller.kind === "fleet" && open.has(caller.name))
  if (callers.length === 0 || (runs.length > 1 && !same)) return []
  const { values } = across(runs[0].results.map(({ clients, untilMillis }) => {
    const lines = clients.filter(({ to }) => to === name).map(({ series }) =>
      read(raster, series, untilMillis, perSecond(({ calls }) => calls))
    )
    return lines[0]!.map((_, n) => lines.reduce((sum, line) => sum + (line[n] ?? 0), 0))
  }))
  return [{ label: "", look: reference(0), values }]
}

const received = perSecond<ServiceBucket>((bucket) => bucket.received)
const succeeded = perSecond<ServiceBucket>((bucket) => bucket.succeeded)
const wasted = perSecond<ServiceBucket>((bucket) => bucket.wasted)
const waiting = highest<ServiceBucket>(({ queued }) => queued)

/** What is read of a service, and how it is drawn. */
interface Reads {
  readonly service: string
  readonly reading: Reading<ServiceBucket>
  readonly label: string
  readonly place: number
}

const lineOf = ({ raster }: Plan, { results }: Run, { label, place, reading, service }: Reads): Line => ({
  label,
  look: lookOf(place),
  ...across(
    results.flatMap(({ services, untilMillis }) =>
      services.filter(({ name }) => name === service).map(({ series }) => read(raster, series, untilMillis, reading))
    )
  )
})

const loadOf = (plan: Plan, name: string): Figure => {
  const several = plan.runs.length > 1
  const title = `Load on ${name}`
  const linesOf = (run: Run, place: number) => [
    lineOf(plan, run, { service: name, reading: received, label: "requests", place }),
    ...several ? [] : [lineOf(plan, run, { service: name, reading: succeeded, label: "succeeded", place: 2 })]
  ]
  const offered = offeredTo(plan, name)
  const panels = panelsOf(plan, title, linesOf)
  const most = greatest(panels.flatMap(({ lines }) => lines.flatMap(({ values }) => values)))
  const bounds = boundLines(plan, name).filter(({ values }) => greatest(values) <= farAway * most)
  return over(plan, {
    title,
    what: `Requests that reach the service${several ? ", retries included" : ""}${
      offered.length === 0 ? "" : "; thin gray line: calls, without their retries"
    }.`,
    axis: "requests per second",
    unit: "per second",
    panels: panelsOf(plan, title, linesOf, [...offered, ...bounds])
  })
}

const ofService = (
  plan: Plan,
  name: string,
  reading: Reading<ServiceBucket>,
  figure: Pick<Figure, "title" | "what" | "axis" | "unit">
): ReadonlyArray<Figure> => {
  const panels = panelsOf(
    plan,
    figure.title,
    (run, place) => [lineOf(plan, run, { service: name, reading, label: figure.axis, place })]
  )
  const most = greatest(panels.flatMap(({ lines }) => lines.flatMap(({ values }) => values)))
  return most === 0 ? [] : [over(plan, { ...figure, panels })]
}

/** What is drawn of a service first: its load. */
export const loadFigure = loadOf

/** What else is drawn of a service, if there was any: wasted work, and the queue. */
export const serviceFigures = (plan: Plan, name: string): ReadonlyArray<Figure> => [
  ...ofService(plan, name, wasted, {
    title: `Wasted work at ${name}`,
    what: "Requests finished after their client had given up.",
    axis: "requests per second",
    unit: "per second"
  }),
  ...ofService(plan, name, waiting, {
    title: `Waiting at ${name}`,
    what: "Requests in the queue of the service.",
    axis: "requests",
    unit: "number"
  })
]

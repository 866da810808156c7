import type { ClientBucket, ClientResult, Gauges } from "../../Simulator.ts"
import { across, highest, last, read, type Reading, successShare } from "./buckets.ts"
import type { Figure, Line } from "./figure.ts"
import { lookOf } from "./palette.ts"
import { over, type Plan } from "./plan.ts"
import type { Run } from "./run.ts"

/** Lines that a figure has at most when they are clients, not policies. */
const mostClients = 6

/** Lines by client of the one run, or by policy of one client of several. */
type Lines = (reading: Reading<ClientBucket>) => ReadonlyArray<Line>

const hasValues = ({ values }: Line): boolean => values.some((value) => value !== null)

/** The clients of the first run that answer for the page: those with most attempts. */
export const busiest = (clients: ReadonlyArray<ClientResult>, most: number): ReadonlyArray<ClientResult> =>
  [...clients].sort((a, b) => b.totals.attempts - a.totals.attempts).slice(0, most)

/** What the runs read of a client. */
const readingsOf = ({ raster }: Plan, { results }: Run, name: string, reading: Reading<ClientBucket>) =>
  across(
    results.flatMap(({ clients, untilMillis }) =>
      clients.filter((one) => one.name === name).map(({ series }) => read(raster, series, untilMillis, reading))
    )
  )

const byClient = (plan: Plan, clients: ReadonlyArray<ClientResult>): Lines => (reading) =>
  clients
    .map(({ name }) => ({ label: name, ...readingsOf(plan, plan.runs[0], name, reading) }))
    .filter(({ values }) => values.some((value) => value !== null))
    .map((line, place) => ({ ...line, look: lookOf(place) }))

const byPolicy = (plan: Plan, name: string): Lines => (reading) =>
  plan.runs
    .map((run, place) => ({ label: run.label, look: lookOf(place), ...readingsOf(plan, run, name, reading) }))
    .filter(hasValues)

const percentiles = [
  { label: "p50", of: highest<ClientBucket>(({ latency }) => latency.p50Millis), place: 0 },
  { label: "p90", of: highest<ClientBucket>(({ latency }) => latency.p90Millis), place: 2 },
  { label: "p99", of: highest<ClientBucket>(({ latency }) => latency.p99Millis), place: 1 }
]

const howLong = "How long calls took that ended well, retries and waiting between them included"

const latencyOf = (plan: Plan, { name }: ClientResult): Figure =>
  over(plan, {
    title: `Latency of ${name}`,
    what: `${howLong}.`,
    axis: "latency",
    unit: "duration",
    lines: percentiles.map(({ label, of, place }) => ({
      label,
      look: lookOf(place),
      ...readingsOf(plan, plan.runs[0], name, of)
    }))
  })

const latenciesOf = (plan: Plan, name: string, lines: Lines): ReadonlyArray<Figure> =>
  percentiles.filter(({ label }) => label !== "p90").map(({ label, of }) =>
    over(plan, {
      title: `Latency of ${name}, ${label}`,
      what: `${howLong}: the ${label === "p50" ? "median" : "99th percentile"}.`,
      axis: "latency",
      unit: "duration",
      lines: lines(of)
    })
  )

const success = (plan: Plan, title: string, lines: Lines): Figure =>
  over(plan, {
    title,
    what: "Of the calls that ended at the time, the share that ended well.",
    axis: "share of calls",
    unit: "share",
    lines: lines(successShare)
  })

const gauges: ReadonlyArray<
  { readonly gauge: keyof Gauges; readonly title: string; readonly what: string; readonly axis: string }
> = [
  {
    gauge: "balance",
    title: "Balance of the retry quota",
    what: "Tokens left in the quota of a process, on average: what retries are paid with.",
    axis: "tokens"
  },
  {
    gauge: "budget",
    title: "Retry budget left",
    what: "What is left of the retry budget of a process, on average.",
    axis: "retries"
  },
  {
    gauge: "fillRate",
    title: "Fill rate of the rate limiter",
    what: "What the limiters let through, all processes together, from the first throttle on.",
    axis: "requests per second"
  }
]

const gaugesOf = (plan: Plan, lines: Lines, whose: string): ReadonlyArray<Figure> =>
  gauges.map(({ axis, gauge, title, what }) =>
    over(
      plan,
      { title: `${title}${whose}`, what, axis, unit: "number", lines: lines(last((bucket) => bucket.gauges[gauge])) },
      "end"
    )
  )

/** What is drawn of the clients of one run: those of some fleets, and what services as clients hold. */
const ofOne = (plan: Plan, fleets: ReadonlyArray<ClientResult>): ReadonlyArray<Figure> => {
  const { clients } = plan.runs[0].result
  const services = busiest(clients.filter(({ kind }) => kind === "service"), mostClients - 1)
  return [
    success(plan, "Success rate", byClient(plan, fleets)),
    ...fleets.map((fleet) => latencyOf(plan, fleet)),
    ...gaugesOf(plan, byClient(plan, [...fleets, ...services].slice(0, mostClients)), "")
  ]
}

const ofSeveral = (plan: Plan, fleets: ReadonlyArray<ClientResult>): ReadonlyArray<Figure> =>
  fleets.flatMap(({ name }) => {
    const lines = byPolicy(plan, name)
    return [
      success(plan, `Success rate of ${name}`, lines),
      ...latenciesOf(plan, name, lines),
      ...gaugesOf(plan, lines, `, ${name}`)
    ]
  })

/** What is drawn of clients: nothing of what they do not have. */
export const clientFigures = (plan: Plan, fleets: ReadonlyArray<ClientResult>): ReadonlyArray<Figure> =>
  (plan.runs.length === 1 ? ofOne(plan, fleets) : ofSeveral(plan, fleets))
    .filter(({ lines }) => lines.some(hasValues))

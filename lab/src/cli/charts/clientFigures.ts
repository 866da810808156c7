import type { ClientBucket, ClientResult, Gauges } from "../../Simulator.ts"
import { across, highest, last, read, type Reading, successShare } from "./buckets.ts"
import { type Figure, greatest, type Line } from "./figure.ts"
import { type Look, lookOf } from "./palette.ts"
import { panelsOf } from "./panels.ts"
import { over, type Plan } from "./plan.ts"
import type { Run } from "./run.ts"

/** The clients of the first run that the page shows: those with the most attempts. */
export const busiest = (clients: ReadonlyArray<ClientResult>, most: number): ReadonlyArray<ClientResult> =>
  [...clients].sort((a, b) => b.totals.attempts - a.totals.attempts).slice(0, most)

/** What is read of a client, and how it is drawn. */
interface Reads {
  readonly client: string
  readonly reading: Reading<ClientBucket>
  readonly label: string
  readonly look: Look
}

const lineOf = ({ raster }: Plan, { results }: Run, { client, label, look, reading }: Reads): Line => ({
  label,
  look,
  ...across(
    results.flatMap(({ clients, untilMillis }) =>
      clients.filter(({ name }) => name === client).map(({ series }) => read(raster, series, untilMillis, reading))
    )
  )
})

type Words = Pick<Figure, "title" | "what" | "axis" | "unit" | "gap"> & {
  /** Where in their buckets the values are. */
  readonly at?: "end"
}

const figureOf = (
  plan: Plan,
  { at, ...words }: Words,
  linesOf: (run: Run, place: number) => ReadonlyArray<Line>
): ReadonlyArray<Figure> => {
  const panels = panelsOf(plan, words.title, linesOf)
  return panels.length === 0 ? [] : [over(plan, { ...words, panels }, at)]
}

const ofClient = (plan: Plan, client: string, words: Words, reading: Reading<ClientBucket>) =>
  figureOf(
    plan,
    words,
    (run, place) => [lineOf(plan, run, { client, reading, label: words.axis, look: lookOf(place) })]
  )

/** Requests for each call that began in the buckets; `null` when none did. */
const amplification: Reading<ClientBucket> = (buckets) => {
  const calls = buckets.reduce((sum, bucket) => sum + bucket.calls, 0)
  return calls === 0 ? null : buckets.reduce((sum, bucket) => sum + bucket.attempts, 0) / calls
}

/** No client sends more than this per call: nothing to see. */
const noAmplification = 1.02

/** What is drawn of clients first: how many of their calls succeed, and what they send for each. */
export const outcomeFigures = (plan: Plan, { name }: ClientResult): ReadonlyArray<Figure> => {
  const sends = ofClient(plan, name, {
    title: `Requests per call of ${name}`,
    what: "Requests sent per call that starts at that time: how much retries add to the load.",
    axis: "requests per call",
    unit: "ratio"
  }, amplification)
  const most = greatest(
    sends.flatMap(({ panels }) => panels.flatMap(({ lines }) => lines.flatMap((line) => line.values)))
  )
  return [
    ...ofClient(plan, name, {
      title: `Success rate of ${name}`,
      what: "Of the calls that ended at that time, the share that succeeded.",
      axis: "share of calls",
      unit: "share",
      gap: "no call ended"
    }, successShare),
    ...most > noAmplification ? sends : []
  ]
}

const p50 = highest<ClientBucket>(({ latency }) => latency.p50Millis)
const p99 = highest<ClientBucket>(({ latency }) => latency.p99Millis)

const latency = (plan: Plan, name: string): ReadonlyArray<Figure> =>
  figureOf(plan, {
    title: `Latency of ${name}`,
    what: "How long successful calls took, including retries and the waits between them: median and 99th percentile.",
    axis: "latency",
    unit: "duration",
    gap: "no call succeeded"
  }, (run, place) => [
    lineOf(plan, run, { client: name, reading: p50, label: "p50", look: lookOf(place) }),
    lineOf(plan, run, {
      client: name,
      reading: p99,
      label: "p99",
      look: { ...lookOf(place), dash: [4, 2], width: 1.3 }
    })
  ])

const gauges: ReadonlyArray<
  { readonly gauge: keyof Gauges; readonly title: string; readonly what: string; readonly axis: string }
> = [
  {
    gauge: "balance",
    title: "Balance of the retry quota",
    what: "Tokens left in the quota of a process, on average: they pay for retries.",
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
    what: "What the limiters admit, all processes together, from the first throttle on.",
    axis: "requests per second"
  }
]

const gaugesOf = (plan: Plan, name: string, isOnly: boolean): ReadonlyArray<Figure> =>
  gauges.flatMap(({ axis, gauge, title, what }) =>
    ofClient(
      plan,
      name,
      { title: isOnly ? title : `${title}, ${name}`, what, axis, unit: "number", at: "end" },
      last((bucket) => bucket.gauges[gauge])
    )
  )

/** What else is drawn of clients, if they have it. */
export const clientFigures = (plan: Plan, { name }: ClientResult, isOnly: boolean): ReadonlyArray<Figure> => [
  ...latency(plan, name),
  ...gaugesOf(plan, name, isOnly)
]

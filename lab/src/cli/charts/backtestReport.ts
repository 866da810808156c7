import type { Backtest, Compared, ComparedBucket, Measured, Scenario } from "../../Simulator.ts"
import { millis } from "../../simulator/units.ts"
import { panelOf, what } from "./backtestChart.ts"
import { boundsOf } from "./bounds.ts"
import type { Figure, Line } from "./figure.ts"
import { figureHtml } from "./figureHtml.ts"
import { cell } from "./format.ts"
import { type Html, html, name, table } from "./html.ts"
import { page } from "./page.ts"
import { reference } from "./palette.ts"
import { shadesOf } from "./shades.ts"

/** A measured series, and its prediction. */
export interface Series {
  readonly name: string
  readonly scenario: Scenario
  readonly measured: Measured
  readonly found: Backtest
}

export type AllSeries = readonly [Series, ...Array<Series>]

/** The axes end with the longest series. */
const longest = (all: AllSeries): Backtest =>
  all.map(({ found }) => found).reduce((a, b) =>
    b.series.length * b.bucketMillis > a.series.length * a.bucketMillis ? b : a
  )

const callsOf = ({ measured: { bucket, series } }: Series): Line => ({
  label: "",
  look: reference(0),
  values: series.map(({ calls }) => calls * 1000 / millis(bucket))
})

const boundsIn = (times: ReadonlyArray<number>, { scenario }: Series): ReadonlyArray<Line> =>
  boundsOf(scenario, scenario.fleets[0].to).map(({ at, label }, n) => ({
    label,
    look: reference(n + 1),
    values: times.map((time) => at(time) ?? null)
  }))

interface Drawn extends Pick<Figure, "title" | "what" | "axis"> {
  readonly of: (bucket: ComparedBucket) => ComparedBucket["succeeded"]
  readonly isBounded: boolean
}

const figureOf = (all: AllSeries, { axis, isBounded, of, title, what }: Drawn): Figure => {
  const { bucketMillis, series } = longest(all)
  const untilMillis = series.length * bucketMillis
  const times = series.map(({ fromMillis }) => fromMillis + bucketMillis / 2)
  return {
    title,
    what,
    axis,
    unit: "per second",
    times,
    untilMillis,
    shades: shadesOf(all[0].scenario, untilMillis),
    panels: all.map((one) => ({
      ...panelOf(one.name, one.found.series.map(of)),
      references: [callsOf(one), ...isBounded ? boundsIn(times, one) : []]
    }))
  }
}

const figuresOf = (all: AllSeries): ReadonlyArray<Figure> => [
  figureOf(all, {
    title: "Calls that succeed",
    what: "Thin and gray: the calls that began.",
    axis: "calls per second",
    of: ({ succeeded }) => succeeded,
    isBounded: false
  }),
  figureOf(all, {
    title: "Load on the service",
    what: "Requests, retries included. Thin and gray: the calls that began; dashed: what the service can handle.",
    axis: "requests per second",
    of: ({ attempts }) => attempts,
    isBounded: true
  })
]

const figures = ({ predicted, measured }: Compared, unit: Figure["unit"]): ReadonlyArray<string> => [
  cell(unit, measured ?? null),
  cell(unit, predicted?.mean ?? null)
]

const summary = (all: AllSeries): Html =>
  table({
    caption: "Over the whole time: measured, then the mean of the runs",
    head: ["", "succeed", "predicted", "requests per call", "predicted", "p99", "predicted"],
    rows: all.map(({ found, name }) => [
      name,
      ...figures(found.succeeded, "share"),
      ...figures(found.sendsPerCall, "ratio"),
      ...figures(found.p99Millis, "duration")
    ])
  })

/** One page of one measured series or of several, each next to its prediction. */
export const backtestReport = (all: AllSeries): string => {
  const [{ scenario }] = all
  const title = `${scenario.name}: measured and predicted`
  return page(
    title,
    html`<main>
<header><h1>${name(title)}</h1>
${scenario.description === "" ? [] : [html`<p class="text description">${scenario.description}</p>`]}
${summary(all)}</header>
<section aria-labelledby="charts"><h2 id="charts">Over time</h2>
<p class="soft">${what} All charts of a row have the same axes. Point at a chart for its numbers.</p>
<div class="figures ${all.length === 1 ? "one" : "many"}">
${figuresOf(all).map((figure) => figureHtml(figure, all.length))}</div></section>
</main>`
  )
}

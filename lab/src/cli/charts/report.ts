import { fleetsOf } from "../../simulator/facts.ts"
import type { Bars } from "./barChart.ts"
import { busiest, clientFigures } from "./clientFigures.ts"
import { barsHtml, figureHtml } from "./figureHtml.ts"
import { counted, millis, moment } from "./format.ts"
import { type Html, html, name, raw } from "./html.ts"
import { style, styleHash } from "./pageStyle.ts"
import { type Plan, planOf } from "./plan.ts"
import { again } from "./reproduce.ts"
import type { Runs } from "./run.ts"
import { serviceFigures } from "./serviceFigures.ts"
import { summary } from "./summary.ts"
import { tables } from "./tables.ts"

export type { Run } from "./run.ts"

/** What is drawn of so many; all are in the tables. */
const mostServices = 6
const mostFleets = 4
const mostBars = 24

const loads = (runs: Runs): ReadonlyArray<Bars> => {
  const bars = runs[0].result.services.flatMap(({ name: service }) =>
    runs.map(({ label, result }) => {
      const received = result.services.find((one) => one.name === service)?.totals.received ?? 0
      const calls = fleetsOf(result).reduce((sum, { totals }) => sum + totals.calls, 0)
      const each = calls === 0 ? "" : ` (${counted(Number((received / calls).toPrecision(3)))} per call)`
      return {
        label: runs.length === 1 ? service : `${service}, ${label}`,
        value: received,
        note: `${counted(received)}${each}`
      }
    })
  )
  return bars.length < 2 || bars.length > mostBars ? [] : [{
    title: "Requests that reached each service",
    what: "In all, and for each call of the fleets.",
    axis: "requests",
    bars
  }]
}

const timeFigures = (plan: Plan) => {
  if (plan.raster.points < 2) return []
  const { result } = plan.runs[0]
  const services = [...result.services].sort((a, b) => b.totals.received - a.totals.received).slice(0, mostServices)
  return [
    ...services.flatMap(({ name: service }) => serviceFigures(plan, service)),
    ...clientFigures(plan, busiest(fleetsOf(result), mostFleets))
  ]
}

/** What the charts leave out, in words. */
const selection = ({ raster, runs: [{ result }] }: Plan): Html => {
  const services = result.services.length - mostServices
  const fleets = fleetsOf(result).length - mostFleets
  return html`${
    raster.points < 2
      ? [html`<p>Everything happened within ${millis(raster.bucketMillis)}: there is no course of time to draw.</p>`]
      : []
  }${
    raster.points < 2 || raster.perPoint === 1
      ? []
      : [
        html`<p>Each point stands for ${
          millis(raster.perPoint * raster.bucketMillis)
        }: rates and shares are those of all of it, latencies and queues the highest in it.</p>`
      ]
  }${
    services <= 0
      ? []
      : [
        html`<p>Drawn are the ${counted(mostServices)} services with most requests; ${
          counted(services)
        } more are not.</p>`
      ]
  }${
    fleets <= 0
      ? []
      : [html`<p>Drawn are the ${counted(mostFleets)} fleets with most attempts; ${counted(fleets)} more are not.</p>`]
  }`
}

const partialMark = (runs: Runs): Html => {
  const partial = runs.filter(({ result }) => result.partial)
  if (partial.length === 0) return html``
  const which = runs.length === 1
    ? [html`This run was`]
    : partial.map(({ label }, n) => html`${n === 0 ? "" : ", "}${name(label)}`)
  const untilMillis = Math.max(...partial.map(({ result }) => result.untilMillis))
  return html`<p class="warn" role="note"><strong>Partial.</strong> ${which}${
    runs.length === 1 ? "" : ": these runs were"
  } stopped before the end, at ${
    moment(untilMillis, untilMillis)
  } of virtual time. All numbers are those until then.</p>`
}

const body = (runs: Runs, command: string): Html => {
  const plan = planOf(runs)
  const { scenario } = runs[0].result
  return html`<main>
<header><h1>${name(scenario.name)}</h1>
${scenario.description === "" ? [] : [html`<p class="text">${scenario.description}</p>`]}
${partialMark(runs)}</header>
<section aria-labelledby="summary"><h2 id="summary">In short</h2>
${summary(runs)}</section>
<section aria-labelledby="charts"><h2 id="charts">What happened</h2>
${selection(plan)}${
    runs[0].results.length === 1
      ? []
      : html`<p>A line is the median of ${
        counted(runs[0].results.length)
      } runs, its band the range from 5 to 95 % of them.</p>`
  }<div class="figures">
${timeFigures(plan).map((figure, n) => figureHtml(figure, `f${n}`))}${
    loads(runs).map((bars) => barsHtml(bars, "bars"))
  }</div></section>
<section aria-labelledby="numbers"><h2 id="numbers">The numbers</h2>
${
    runs[0].results.length === 1
      ? []
      : html`<p>Of the runs with the first seed, ${`${scenario.seed}`}: one draw of chance.</p>`
  }${tables(runs)}</section>
<section aria-labelledby="again"><h2 id="again">To run it again</h2>
${again(runs, command)}</section>
</main>`
}

/** One page of one run, or of several runs of one scenario with different policies. */
export const report = (runs: Runs, { command }: { readonly command: string }): string => {
  const { scenario } = runs[0].result
  const partial = runs.some(({ result }) => result.partial) ? " (partial)" : ""
  return html`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8" />
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '${
    raw(styleHash)
  }'; base-uri 'none'; form-action 'none'" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<meta name="color-scheme" content="light dark" />
<meta name="referrer" content="no-referrer" />
<title>${scenario.name}${partial} - effect-retry</title>
<style>${raw(style)}</style></head>
<body>${body(runs, command)}</body></html>
`.markup
}

import { fleetsOf } from "../../simulator/runSummary.ts"
import { barChart, type Bars } from "./barChart.ts"
import { busiest, clientFigures, outcomeFigures } from "./clientFigures.ts"
import { figureHtml } from "./figureHtml.ts"
import { counted, millis, moment } from "./format.ts"
import { type Html, html, name } from "./html.ts"
import { mapHtml, type Maps } from "./mapChart.ts"
import { numbers } from "./numbers.ts"
import { page } from "./page.ts"
import { type Plan, planOf } from "./plan.ts"
import { ranked } from "./ranking.ts"
import { rankTable } from "./rankTable.ts"
import { again } from "./reproduce.ts"
import type { Runs } from "./run.ts"
import { loadFigure, serviceFigures } from "./serviceFigures.ts"
import { setup } from "./setup.ts"
import { successIn } from "./success.ts"
import { headline, isOverlaid, narrow, type Success, successHtml } from "./successChart.ts"
import { verdict } from "./verdict.ts"

export type { Run } from "./run.ts"

/** The most that is drawn; the tables have all. */
const mostServices = 6
const mostFleets = 4
const mostBars = 24

const loads = (runs: Runs): ReadonlyArray<Bars> => {
  const bars = runs[0].result.services.flatMap(({ name: service }) =>
    runs.map(({ label, result }) => {
      const received = result.services.find((one) => one.name === service)?.totals.received ?? 0
      const calls = fleetsOf(result).reduce((sum, { totals }) => sum + totals.calls, 0)
      const each = calls === 0 ? "" : ` (${(received / calls).toFixed(2)} per call)`
      return {
        label: runs.length === 1 ? service : `${service}, ${label}`,
        value: received,
        note: `${counted(received)}${each}`
      }
    })
  )
  return bars.length < 2 || bars.length > mostBars ? [] : [{
    title: "Requests that reached each service",
    what: "In total, and per call of the fleets.",
    bars
  }]
}

/** All figures: how calls fare first, quotas and limiters last. How all calls fare may have a picture of its own. */
const timeFigures = (plan: Plan, isOverlaid: boolean) => {
  if (plan.raster.points < 2) return []
  const { result } = plan.runs[0]
  const services = [...result.services].sort((a, b) => b.totals.received - a.totals.received).slice(0, mostServices)
  const fleets = busiest(fleetsOf(result), mostFleets)
  return [
    ...fleets.flatMap((fleet) => outcomeFigures(plan, fleet)).filter(({ unit }) =>
      !isOverlaid || unit !== "share" || fleets.length > 1
    ),
    ...services.map(({ name: service }) => loadFigure(plan, service)),
    ...services.flatMap(({ name: service }) => serviceFigures(plan, service)),
    ...fleets.flatMap((fleet) => clientFigures(plan, fleet, fleets.length === 1))
  ]
}

const barsHtml = (bars: Bars): Html =>
  html`<figure><figcaption><h3>${bars.title}</h3><p>${bars.what}</p></figcaption>
${barChart(bars)}</figure>
`

/** What the charts leave out, in words. */
const selection = ({ raster, runs: [{ result }] }: Plan): Html => {
  const services = result.services.length - mostServices
  const fleets = fleetsOf(result).length - mostFleets
  return html`${
    raster.points < 2
      ? [html`<p>Everything happened within ${millis(raster.bucketMillis)}: there is nothing to plot over time.</p>`]
      : []
  }${
    raster.points < 2 || raster.perPoint === 1
      ? []
      : [
        html`<p>Each point covers ${
          millis(raster.perPoint * raster.bucketMillis)
        }: rates and shares are averages over it, latencies and queues the highest in it.</p>`
      ]
  }${
    services <= 0
      ? []
      : [
        html`<p>The charts show the ${counted(mostServices)} services with the most requests; ${
          counted(services)
        } more are left out.</p>`
      ]
  }${
    fleets <= 0
      ? []
      : [
        html`<p>The charts show the ${counted(mostFleets)} fleets with the most attempts; ${
          counted(fleets)
        } more are left out.</p>`
      ]
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
  } of virtual time. All numbers are up to that point.</p>`
}

const legend = (runs: Runs): string => {
  const count = runs[0].results.length
  const band = count === 1
    ? ""
    : `A line is the median of ${counted(count)} runs, its band the range from 5 to 95 % of them. `
  return `${band}${
    runs.length === 1 ? "" : "All charts in a row share the same axes. "
  }Point at a chart for its numbers.`
}

/** The maps in the order of the runs. */
const byLabel = (maps: Maps["maps"], runs: Runs): Maps["maps"] => {
  const place = ({ label }: { readonly label: string }) => runs.findIndex((run) => run.label === label)
  const [first, ...others] = [...maps].sort((a, b) => place(a) - place(b))
  return [first!, ...others]
}

/** How all calls fare, in a picture for wide screens and one for phones. */
const successFigure = (success: Success): Html => {
  const title = "Calls that succeed"
  return html`<figure class="success"><div class="wide">${
    successHtml(title, success, { width: 1200, height: 330, type: 16 })
  }</div><div class="narrow">${successHtml(title, success, narrow)}</div></figure>`
}

const body = (runs: Runs, command: string, maps: Maps | undefined): Html => {
  const { scenario } = runs[0].result
  const ranks = ranked(runs)
  const [first, ...others] = ranks.map(({ run }) => run)
  const byRank: Runs = [first!, ...others]
  const plan = planOf(byRank)
  const sorted = maps && { ...maps, maps: byLabel(maps.maps, byRank) }
  const success = successIn(plan)
  const isOne = isOverlaid(success)
  return html`<main>
<header><h1>${
    runs.length > 1 && isOne ? html`${headline(success)}<small>${name(scenario.name)}</small>` : name(scenario.name)
  }</h1>
${partialMark(runs)}${verdict(ranks)}
${isOne ? successFigure(success) : []}
${setup(runs)}
${rankTable(ranks)}${scenario.description === "" ? [] : [html`<p class="text description">${scenario.description}</p>`]}
</header>
${
    sorted === undefined ? [] : html`<section class="map" aria-label="Map">${mapHtml(sorted)}</section>
`
  }<section aria-labelledby="charts"><h2 id="charts">What happened</h2>
${selection(plan)}${plan.raster.points < 2 ? [] : html`<p class="soft">${legend(runs)}</p>`}<div class="figures ${
    runs.length === 1 ? "one" : "many"
  }">
${timeFigures(plan, isOne).map((figure) => figureHtml(figure, runs.length, runs[0].label))}${
    loads(byRank).map(barsHtml)
  }</div></section>
<section aria-labelledby="numbers"><h2 id="numbers">All numbers</h2>
${numbers(byRank)}</section>
<section aria-labelledby="again"><h2 id="again">Run it again</h2>
${again(runs, command)}</section>
</main>`
}

/** One page of one run, or of several runs of one scenario with different policies. */
export const report = (
  runs: Runs,
  { command, maps }: { readonly command: string; readonly maps?: Maps | undefined }
): string => {
  const { scenario } = runs[0].result
  const partial = runs.some(({ result }) => result.partial) ? " (partial)" : ""
  return page(`${scenario.name}${partial}`, body(runs, command, maps))
}

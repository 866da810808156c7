import { type ScaleLinear, scaleLinear } from "d3-scale"
import type { Axis, Scenario, Verdict } from "../../Simulator.ts"
import { numberAt } from "../../simulator/paths.ts"
import type { PolicyMap } from "../mapTable.ts"
import { columnsOf, panelsHtml } from "./figureHtml.ts"
import { counted, isTime, millis, rounded, runLength, ticks } from "./format.ts"
import { type Html, html, name, raw } from "./html.ts"
import { cells, grid, ink, soft } from "./palette.ts"
import { shortened } from "./shortened.ts"
import { at, below, box, document, fill, heading, inPage, type Size, stroke, text } from "./svg.ts"

/** The maps of several policies, in the order in which they are shown, and the scenario that they were made of. */
export interface Maps {
  readonly scenario: Scenario
  readonly maps: readonly [PolicyMap, ...Array<PolicyMap>]
}

const margin = { left: 52, top: 20, right: 12, bottom: 36 }

/** Where cells begin and end: halfway to their neighbors. */
const edgesOf = (values: ReadonlyArray<number>): ReadonlyArray<number> => {
  const inner = values.slice(1).map((value, n) => (values[n]! + value) / 2)
  const [first, last] = [values[0]!, values.at(-1)!]
  const half = values.length < 2 ? 0.5 : 0
  return [
    first - half - (inner.length === 0 ? 0 : inner[0]! - first),
    ...inner,
    last + half + (inner.length === 0 ? 0 : last - inner.at(-1)!)
  ]
}

/** What is across or up, in words where they are known. */
const nameOf = ({ fleets, services }: Scenario, { path }: Axis): string => {
  const [, fleet] = /^fleets[.[](\d+)\]?\.rate$/.exec(path) ?? []
  if (fleet !== undefined) return `calls per second of ${shortened(fleets[Number(fleet)]?.name ?? "", 24)}`
  const [, service] = /^services[.[](\d+)\]?\.outages[.[]\d+\]?\.length$/.exec(path) ?? []
  return service === undefined
    ? path
    : `length of the outage of ${shortened(services[Number(service)]?.name ?? "", 20)}`
}

const labelsOf = ({ path }: Axis, values: ReadonlyArray<number>): ReadonlyArray<string> =>
  isTime(path) ? values.map((value) => value === 0 ? "0" : millis(value)) : ticks("number", values)

/** Neighbors in a row that are alike. */
const stretches = (row: ReadonlyArray<Verdict>) => {
  const found: Array<{ readonly verdict: Verdict; readonly from: number; to: number }> = []
  row.forEach((verdict, n) => {
    const last = found.at(-1)
    if (last?.verdict === verdict) last.to = n + 1
    else found.push({ verdict, from: n, to: n + 1 })
  })
  return found
}

/** What a map is drawn with. */
interface Drawing {
  readonly map: PolicyMap
  readonly scenario: Scenario
  readonly across: ReadonlyArray<number>
  readonly up: ReadonlyArray<number>
  readonly right: number
  readonly bottom: number
  readonly toX: ScaleLinear<number, number>
  readonly toY: ScaleLinear<number, number>
}

const drawingOf = (scenario: Scenario, map: PolicyMap, { height, width }: Size): Drawing => {
  const [across, up] = [edgesOf(map.x.values), edgesOf(map.y.values)]
  const [right, bottom] = [width - margin.right, height - margin.bottom]
  return {
    map,
    scenario,
    across,
    up,
    right,
    bottom,
    toX: scaleLinear([across[0]!, across.at(-1)!], [margin.left, right]),
    toY: scaleLinear([up[0]!, up.at(-1)!], [bottom, margin.top])
  }
}

const areaOf = ({ across, map: { rows }, toX, toY, up }: Drawing): Html =>
  html`<g shape-rendering="crispEdges">${
    rows.flatMap((row, n) =>
      stretches(row).map(({ from, to, verdict }) => {
        const [left, top] = [toX(across[from]!), toY(up[n + 1]!)]
        return fill(box(left, top, toX(across[to]!) - left, toY(up[n]!) - top), cells[verdict].light)
      })
    )
  }</g>`

const axesOf = ({ bottom, map: { x, y }, right, scenario, toX, toY }: Drawing): ReadonlyArray<Html> => {
  const [xTicks, yTicks] = [toX.ticks(4), toY.ticks(4)]
  return [
    stroke(box(margin.left, margin.top, right - margin.left, bottom - margin.top), grid.light),
    ...below(bottom, labelsOf(x, xTicks).map((label, n) => ({ label, place: toX(xTicks[n]!) }))),
    ...labelsOf(y, yTicks).map((label, n) =>
      html`${stroke(`M${margin.left} ${at(toY(yTicks[n]!))}h-4`, soft.light)}${
        text(margin.left - 7, toY(yTicks[n]!) + 4, label, { anchor: "end" })
      }`
    ),
    text((margin.left + right) / 2, bottom + 31, nameOf(scenario, x), { anchor: "middle", fill: ink.light }),
    text(2, 11, nameOf(scenario, y), { fill: ink.light })
  ]
}

const isWithin = (value: number | undefined, edges: ReadonlyArray<number>): value is number =>
  value !== undefined && value >= edges[0]! && value <= edges.at(-1)!

/** Where theory puts the edge, if the x axis is the rate. */
const edgeOf = ({ across, bottom, map: { recoversBelow, x }, toX }: Drawing): ReadonlyArray<Html> =>
  x.path.endsWith("rate") && isWithin(recoversBelow, across)
    ? [stroke(`M${at(toX(recoversBelow))} ${margin.top}V${bottom}`, ink.light, { width: 1.5, dash: [5, 3] })]
    : []

/** Marks the scenario as written. */
const hereOf = ({ across, map: { x, y }, scenario, toX, toY, up }: Drawing): ReadonlyArray<Html> => {
  const [here, there] = [numberAt(scenario, x.path), numberAt(scenario, y.path)]
  if (!isWithin(here, across) || !isWithin(there, up)) return []
  const [left, top] = [at(toX(here)), at(toY(there))]
  const isOnLeft = left < margin.left + 90
  return [
    html`<circle cx="${left}" cy="${top}" r="5" fill="none" stroke="${ink.light}" stroke-width="2"/>`,
    text(left + (isOnLeft ? 9 : -9), top + 4, "this scenario", {
      anchor: isOnLeft ? "start" : "end",
      fill: ink.light,
      halo: true
    })
  ]
}

const draw = ({ scenario }: Maps, map: PolicyMap, size: Size): ReadonlyArray<Html> => {
  const drawing = drawingOf(scenario, map, size)
  return [areaOf(drawing), ...axesOf(drawing), ...edgeOf(drawing), ...hereOf(drawing)]
}

const described = ({ recoversBelow, rows }: PolicyMap): string => {
  const all = rows.flat()
  const count = (verdict: Verdict) => counted(all.filter((one) => one === verdict).length)
  return `Recovers in ${count("recovers")} of ${counted(all.length)} cells, limps in ${count("limps")}, collapses in ${
    count("collapses")
  }${
    recoversBelow === undefined ? "" : `; in theory it recovers below ${counted(Math.floor(recoversBelow))} per second`
  }.`
}

const wordsOf = (scenario: Scenario): { readonly [Of in Verdict]: string } => ({
  recovers: `recovers within the ${runLength(scenario)} of the run`,
  limps: "limps: not within the run",
  collapses: "collapses: in theory never"
})

const verdicts = ["recovers", "limps", "collapses"] as const

const theory = ({ recoversBelow }: PolicyMap): string =>
  recoversBelow === undefined
    ? "theory gives no bound"
    : `in theory below ${rounded(Math.floor(recoversBelow))} per second`

const size = { width: 300, height: 230 }

const key = (color: string): Html =>
  raw(`<svg class="key" viewBox="0 0 12 12" aria-hidden="true"><path d="M0 0h12v12H0z" fill="${color}"/></svg>`)

/** The maps as a figure of a page. */
export const mapHtml = (all: Maps): Html =>
  html`<figure><figcaption><h3>Where each policy recovers</h3>
<p>What becomes of the calls after an outage, for each load and each length of it; the dashed line is where theory puts the edge.</p>
<ul class="legend">${
    verdicts.map((one) => html`<li>${key(cells[one].light)}${wordsOf(all.scenario)[one]}</li>`)
  }</ul></figcaption>
${
    panelsHtml(
      "Where each policy recovers",
      columnsOf(all.maps.length),
      all.maps.map((map) =>
        html`<div><h4>${name(map.label)}<small>${theory(map)}</small></h4>${
          inPage(size, { title: `Where ${map.label} recovers`, description: described(map) }, draw(all, map, size))
        }</div>
`
      )
    )
  }</figure>
`

const gap = 16
const top = 66
const titleHeight = 20
const longestLabel = 20

/** The maps next to each other, as a picture of its own. */
export const mapSvg = (all: Maps): string => {
  const { maps, scenario } = all
  const columns = Math.min(4, columnsOf(maps.length), maps.length)
  const rows = Math.ceil(maps.length / columns)
  const width = Math.max(gap + columns * (size.width + gap), 800)
  const title = `Where ${scenario.name} recovers`
  const legend = verdicts.map((one, n) =>
    html`${fill(box(gap + n * 235, 36, 12, 12), cells[one].light)}${
      text(gap + n * 235 + 18, 46, wordsOf(scenario)[one])
    }`
  )
  const panels = maps.map((map, n) => {
    const [x, y] = [
      gap + (n % columns) * (size.width + gap),
      top + Math.floor(n / columns) * (size.height + titleHeight + gap)
    ]
    return html`<g transform="translate(${x} ${y})">${heading(2, 12, shortened(map.label, longestLabel), 12)}${
      text(size.width - margin.right, 12, theory(map), { anchor: "end" })
    }<g transform="translate(0 ${titleHeight})">${draw(all, map, size)}</g></g>`
  })
  return document(
    { width, height: top + rows * (size.height + titleHeight + gap) },
    { title, description: maps.map((map) => `${map.label}: ${described(map)}`).join(" ") },
    [
      heading(gap, 24, title, 15),
      ...legend,
      text(gap + 3 * 235 + 40, 46, "dashed: theory"),
      ...panels
    ]
  )
}

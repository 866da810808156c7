import { barChart, type Bars, heightOf } from "./barChart.ts"
import { ceilingOf, type Figure, type Line } from "./figure.ts"
import { cell, moment } from "./format.ts"
import { type Html, html, name, raw, table } from "./html.ts"
import { paper } from "./palette.ts"
import { timeChart } from "./timeChart.ts"

const mostRows = 40

const swatch = ({ look: { colour, dash, marker, width } }: Line): Html => {
  const mark = marker === undefined
    ? ""
    : `<path d="${marker}" transform="translate(22 7) scale(4.5)" fill="${colour.light}" stroke="${paper.light}" stroke-width="0.2"/>`
  const dashes = dash.length === 0 ? "" : ` stroke-dasharray="${dash.join(" ")}"`
  return raw(
    `<svg viewBox="0 0 44 14" aria-hidden="true"><path d="M1 7H43" fill="none" stroke="${colour.light}" stroke-width="${width}"${dashes}/>${mark}</svg>`
  )
}

const legend = ({ lines }: Figure): Html =>
  html`<ul class="legend">${lines.map((line) => html`<li>${swatch(line)}${name(line.label)}</li>`)}</ul>
`

const numbers = (figure: Figure): Html => {
  const { lines, times, title, unit, untilMillis } = figure
  const step = Math.max(1, Math.ceil(times.length / mostRows))
  const rows = times.flatMap((time, n) =>
    n % step === 0 ? [[moment(time, untilMillis), ...lines.map(({ values }) => cell(unit, values[n] ?? null))]] : []
  )
  const some = step === 1 ? "" : `, every ${step} points`
  return html`<details><summary>The numbers</summary>${
    table({ caption: `${title}, ${figure.axis}${some}`, head: ["time", ...lines.map(({ label }) => label)], rows })
  }</details>`
}

/** The same picture for wide and for narrow screens: text keeps its size. */
const pictures = (draw: (kind: "wide" | "narrow") => string): Html =>
  raw((["wide", "narrow"] as const).map((kind) => draw(kind).replace("<svg", `<svg class="${kind}"`)).join("\n"))

const width = { wide: 640, narrow: 350 }

const beyond = (figure: Figure): string =>
  ceilingOf(figure) === undefined ? "" : " A short peak goes on above the upper edge."

/** A figure with its legend and its numbers. `id` begins the ids in it. */
export const figureHtml = (figure: Figure, id: string): Html =>
  html`<figure><figcaption><h3>${figure.title}</h3><p>${figure.what}${beyond(figure)}</p></figcaption>
${legend(figure)}${
    pictures((kind) => timeChart(figure, { width: width[kind], height: kind === "wide" ? 280 : 250 }, `${id}${kind}`))
  }
${numbers(figure)}</figure>
`

/** Bars, which bear their numbers. */
export const barsHtml = (bars: Bars, id: string): Html =>
  html`<figure><figcaption><h3>${bars.title}</h3><p>${bars.what}</p></figcaption>
${pictures((kind) => barChart(bars, { width: width[kind], height: heightOf(bars) }, `${id}${kind}`))}</figure>
`

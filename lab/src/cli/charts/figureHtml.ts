import { ceilingOf, type Figure, type Panel } from "./figure.ts"
import { cell, moment } from "./format.ts"
import { type Html, html, name, raw, table } from "./html.ts"
import type { Look } from "./palette.ts"
import { timePanel } from "./timePanel.ts"

const mostRows = 25

/** The color of a policy, next to its name. */
export const swatch = ({ color }: Look): Html =>
  raw(`<svg class="key" viewBox="0 0 12 12" aria-hidden="true"><path d="M0 0h12v12H0z" fill="${color.light}"/></svg>`)

/** How many pictures stand next to each other on a wide screen. */
export const columnsOf = (count: number): number => {
  if (count <= 5) return Math.max(2, count)
  return count === 6 || count === 9 ? 3 : count === 10 ? 5 : 4
}

/** Pictures next to each other, which scroll by themselves on narrow screens. */
export const panelsHtml = (title: string, columns: number, panels: ReadonlyArray<Html>): Html =>
  html`<div class="panels c${columns}"${
    panels.length < 2 ? [] : html` role="group" tabindex="0" aria-label="${title}"`
  }>${panels}</div>
`

/** As wide as a column, up to a limit, so that text keeps its size. */
const widths: { readonly [columns: number]: number } = { 2: 520, 3: 390, 4: 295, 5: 238 }

const columnName = (panel: Panel, label: string, figure: Figure): string =>
  panel.lines.length === 1 ? panel.name : panel.name === figure.title ? label : `${panel.name}, ${label}`

/** The numbers of a figure, at some of its times. */
export const numbersOf = (figure: Figure): Html => {
  const { panels, times, title, unit, untilMillis } = figure
  const columns = panels.flatMap((panel) =>
    panel.lines.map((line) => ({ head: columnName(panel, line.label, figure), values: line.values }))
  )
  const step = Math.max(1, Math.ceil(times.length / mostRows))
  const rows = times.flatMap((time, n) =>
    n % step === 0
      ? [[moment(time, untilMillis), ...columns.map(({ values }) => cell(unit, values[n] ?? null))]]
      : []
  )
  const some = step === 1 ? "" : `, every ${step} points`
  return table({ caption: `${title}, ${figure.axis}${some}`, head: ["time", ...columns.map(({ head }) => head)], rows })
}

const beyond = (figure: Figure): string =>
  ceilingOf(figure) === undefined ? "" : " An arrow shows how high a short peak goes."

/**
 * Pictures of a figure next to each other, each under the name of its subject, and their numbers. `count` is how many a
 * figure of the page has at most; `first` has the subject that is shown first on narrow screens.
 */
export const figureHtml = (figure: Figure, count: number, first?: string): Html => {
  const columns = columnsOf(count)
  const size = { width: count === 1 ? 390 : widths[columns] ?? 295, height: columns < 4 ? 190 : 165 }
  return html`<figure><figcaption><h3>${figure.title}</h3><p>${figure.what}${beyond(figure)}</p></figcaption>
${
    panelsHtml(
      figure.title,
      columns,
      figure.panels.map((panel) =>
        html`<div${panel.name === first ? html` class="first"` : []}>${
          panel.name === figure.title ? [] : html`<h4>${swatch(panel.look)}${name(panel.name)}</h4>`
        }${timePanel(figure, panel, size)}</div>
`
      )
    )
  }<details><summary>The numbers</summary>${numbersOf(figure)}</details></figure>
`
}

import { escaped } from "./escape.ts"

/** Markup: what was escaped already. */
export interface Html {
  readonly markup: string
}

/** Markup as it is. */
export const raw = (markup: string): Html => ({ markup })

type Part = Html | string | number | ReadonlyArray<Html>

const markupOf = (part: Part): string => {
  if (typeof part === "string" || typeof part === "number") return escaped(`${part}`)
  return "markup" in part ? part.markup : part.map(({ markup }) => markup).join("")
}

/** Markup with parts in it: texts are escaped, markup is not. */
export const html = (strings: TemplateStringsArray, ...parts: ReadonlyArray<Part>): Html =>
  raw(strings.map((text, n) => n === 0 ? text : markupOf(parts[n - 1]!) + text).join(""))

/** A name that others chose, isolated so that it cannot reverse the text around it. */
export const name = (text: string): Html => html`<bdi>${text}</bdi>`

/** A table: the first column names its row. */
interface Table {
  readonly caption: string
  readonly head: ReadonlyArray<string>
  readonly rows: ReadonlyArray<ReadonlyArray<string>>
}

/** A table of numbers that scrolls by itself where it is wider than the page. */
export const table = ({ caption, head, rows }: Table): Html =>
  html`<div class="scroll" role="region" tabindex="0" aria-label="${caption}"><table><caption>${caption}</caption>
<thead><tr>${head.map((cell) => html`<th scope="col">${cell}</th>`)}</tr></thead>
<tbody>${
    rows.map(([first = "", ...cells]) =>
      html`<tr><th scope="row">${first}</th>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>
`
    )
  }</tbody></table></div>
`

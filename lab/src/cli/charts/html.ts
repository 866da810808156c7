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

/** A name that others chose: what it holds turns no text around it. */
export const name = (text: string): Html => html`<bdi>${text}</bdi>`

/** A cell of a table: names on the left, numbers on the right. */
export type Cell = string | Html

/** A table: the first column names its row. */
export interface Table {
  readonly caption: string
  readonly head: ReadonlyArray<string>
  readonly rows: ReadonlyArray<ReadonlyArray<Cell>>
}

/** Columns of words, not of numbers. */
const isWord = (cell: Cell): boolean => typeof cell !== "string"

/** A table that scrolls by itself where it is wider than the page. Cells that are markup are words, the others numbers. */
export const table = ({ caption, head, rows }: Table): Html => {
  const words = head.map((_, column) => rows.every((row) => isWord(row[column] ?? "")))
  const kind = (column: number): Html => raw(words[column] ? " class=\"word\"" : "")
  const row = (cells: ReadonlyArray<Cell>): Html =>
    html`<tr>${
      cells.map((cell, column) =>
        column === 0 ? html`<th scope="row"${kind(0)}>${cell}</th>` : html`<td${kind(column)}>${cell}</td>`
      )
    }</tr>
`
  return html`<div class="scroll" role="region" tabindex="0" aria-label="${caption}"><table><caption>${caption}</caption>
<thead><tr>${head.map((cell, column) => html`<th scope="col"${kind(column)}>${cell}</th>`)}</tr></thead>
<tbody>${rows.map(row)}</tbody></table></div>
`
}

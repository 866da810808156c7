import { area, line } from "d3-shape"
import { type Html, html, raw } from "./html.ts"
import { darkRules, grid, ink, paper, soft } from "./palette.ts"

/** How large a picture is, in CSS pixels. */
export interface Size {
  readonly width: number
  readonly height: number
}

/** A place in a picture: a tenth of a pixel is exact enough. */
export const at = (value: number): number => Math.round(value * 10) / 10

/** The size of letters where nothing else is said. */
const usualSize = 11

/** How a text is set. */
interface Type {
  readonly anchor?: "start" | "middle" | "end"
  readonly fill?: string
  readonly size?: number | undefined
  readonly bold?: boolean
  /** Paper around the letters, where lines may run under them. */
  readonly halo?: boolean
  /** Reads from bottom to top. */
  readonly upright?: boolean
}

/** An attribute that is left out where it says nothing. */
const attribute = (name: string, value: string | number | undefined): Html =>
  value === undefined ? html`` : html` ${name}="${value}"`

const halo = html` stroke="${paper.light}" stroke-width="3" stroke-linejoin="round" paint-order="stroke"`

/** Text whose base line begins, is centered, or ends at a place. */
export const text = (x: number, y: number, content: string | Html, type: Type = {}): Html => {
  const { anchor = "start", bold = false, fill = soft.light, size, upright = false } = type
  return html`<text x="${at(x)}" y="${at(y)}" fill="${fill}"${
    attribute("text-anchor", anchor === "start" ? undefined : anchor)
  }${attribute("font-size", size)}${attribute("font-weight", bold ? 600 : undefined)}${type.halo === true ? halo : []}${
    attribute("transform", upright ? `rotate(-90 ${at(x)} ${at(y)})` : undefined)
  }>${content}</text>`
}

/** A path, drawn and not filled. */
export const stroke = (
  d: string,
  color: string,
  { dash = [], width = 1 }: { readonly width?: number; readonly dash?: ReadonlyArray<number> } = {}
): Html =>
  html`<path d="${d}" fill="none" stroke="${color}" stroke-width="${width}"${
    dash.length === 0 ? [] : html` stroke-dasharray="${dash.join(" ")}"`
  }/>`

/** A path that is filled. */
export const fill = (d: string, color: string, opacity = 1): Html =>
  html`<path d="${d}" fill="${color}"${opacity === 1 ? [] : html` fill-opacity="${opacity}"`}/>`

/** A filled circle. */
export const dot = (x: number, y: number, radius: number, color: string): Html =>
  html`<circle cx="${at(x)}" cy="${at(y)}" r="${radius}" fill="${color}"/>`

/** A filled diamond, as far from its center to each corner. */
export const diamond = (x: number, y: number, radius: number, color: string): Html =>
  fill(`M${at(x)} ${at(y - radius)}l${radius} ${radius}l${-radius} ${radius}l${-radius} ${-radius}z`, color)

type Height = number | null

/** A line through places as a path, with a gap where there is none. */
export const lineThrough = (places: Iterable<readonly [x: number, y: Height]>): string =>
  line<readonly [number, Height]>()
    .defined(([, y]) => y !== null)
    .x(([x]) => x)
    .y(([, y]) => y!)
    .digits(1)(places) ?? ""

/** What lies between two lines as a path, with a gap where one of them has one. */
export const bandThrough = (places: Iterable<readonly [x: number, low: Height, high: Height]>): string =>
  area<readonly [number, Height, Height]>()
    .defined(([, low, high]) => low !== null && high !== null)
    .x(([x]) => x)
    .y0(([, low]) => low!)
    .y1(([, , high]) => high!)
    .digits(1)(places) ?? ""

/** A number at an axis, and where it is. */
interface Tick {
  readonly place: number
  readonly label: string
}

/** Lines across at the numbers of an axis, which stand at the left. */
export const levels = (left: number, right: number, all: ReadonlyArray<Tick>, size?: number): ReadonlyArray<Html> =>
  all.map(({ label, place }) =>
    html`${stroke(`M${at(left)} ${at(place)}H${at(right)}`, grid.light)}${
      text(left - 6, place + (size === undefined ? 4 : 0.36 * size), label, { anchor: "end", size })
    }`
  )

/** The numbers below an axis, each with a mark. */
export const below = (bottom: number, all: ReadonlyArray<Tick>, size?: number): ReadonlyArray<Html> =>
  all.map(({ label, place }) =>
    html`${stroke(`M${at(place)} ${at(bottom)}v4`, soft.light)}${
      text(place, bottom + 4 + (size ?? usualSize), label, { anchor: "middle", size })
    }`
  )

/** A sign and what it stands for. */
export const key = (x: number, y: number, sign: Html, words: string): Html => html`${sign}${text(x, y + 4, words)}`

/** A rectangle as a path: as wide and as high as the numbers after its corner. */
export const box = (x: number, y: number, width: number, height: number): string =>
  `M${at(x)} ${at(y)}h${at(width)}v${at(height)}h${at(-width)}z`

/** The picture in words, for readers who cannot see it. */
export interface Caption {
  readonly title: string
  readonly description: string
}

const font = html`font-family="system-ui, sans-serif" font-size="${usualSize}"`

/** A picture in a page. */
export const inPage = ({ height, width }: Size, { description, title }: Caption, content: ReadonlyArray<Html>): Html =>
  html`<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${title}. ${description}" ${font}>${content}</svg>`

/** A picture as a file of its own. It is dark where its reader's screen is. */
export const document = (
  { height, width }: Size,
  { description, title }: Caption,
  content: ReadonlyArray<Html>
): string =>
  html`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" ${font}><title>${title}</title><desc>${description}</desc><style>${
    raw(`@media (prefers-color-scheme:dark){${darkRules("svg")}}`)
  }</style>${fill(box(0, 0, width, height), paper.light)}${content}</svg>
`.markup

/** Moves labels apart so that none overlaps another, each as close as possible to its place. */
export const apart = (places: ReadonlyArray<number>, least: number, bottom: number): ReadonlyArray<number> => {
  const order = places.map((_, n) => n).sort((a, b) => places[a]! - places[b]!)
  const found = [...places]
  order.forEach((n, k) => {
    if (k > 0) found[n] = Math.max(found[n]!, found[order[k - 1]!]! + least)
  })
  for (let k = order.length - 1; k >= 0; k--) {
    const below = k === order.length - 1 ? bottom : found[order[k + 1]!]! - least
    found[order[k]!] = Math.min(found[order[k]!]!, below)
  }
  return found
}

/** The heading of a picture that is a file of its own. */
export const heading = (x: number, y: number, content: string, size: number): Html =>
  text(x, y, content, { fill: ink.light, bold: true, size })

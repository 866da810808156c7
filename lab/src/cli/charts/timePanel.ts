import { scaleLinear, scaleLog } from "d3-scale"
import { ceilingOf, domainOf, type Figure, greatest, isLogarithmic, type Line, type Panel } from "./figure.ts"
import { cell, moment, rounded, ticks, timeUnit } from "./format.ts"
import { type Html, html } from "./html.ts"
import { ink, shade, shadeInk, soft } from "./palette.ts"
import { shortened, widthOf } from "./shortened.ts"
import {
  apart,
  at,
  bandThrough,
  box,
  type Caption,
  fill,
  inPage,
  levels,
  lineThrough,
  type Size,
  stroke,
  text
} from "./svg.ts"

/** Stretches of time that show their numbers. */
const mostStops = 50
const margin = { left: 46, top: 22, right: 10, bottom: 20 }
/** The longest name at the end of a line. */
const longestName = 22

/** What a panel is drawn with. */
interface Drawing {
  readonly figure: Figure
  readonly panel: Panel
  readonly size: Size
  readonly right: number
  readonly x: (millis: number) => number
  readonly y: (value: number) => number
  readonly top: number
  readonly yTicks: ReadonlyArray<number>
}

/** Several lines have names; a single one is named by its panel. */
const isNamed = ({ lines }: Panel): boolean => lines.length > 1

const drawingOf = (figure: Figure, panel: Panel, size: Size): Drawing => {
  const [least, most] = domainOf(figure)
  const names = isNamed(panel) ? panel.lines.map(({ label }) => 8 + widthOf(shortened(label, longestName))) : []
  const right = size.width - Math.max(margin.right, ...names)
  const heights = [size.height - margin.bottom, margin.top]
  const logarithmic = isLogarithmic(figure)
  const x = scaleLinear([0, figure.untilMillis], [margin.left, right])
  const y = logarithmic
    ? scaleLog([least, most], heights).nice()
    : scaleLinear([least, most], heights)
  const all = y.ticks(figure.unit === "share" ? 2 : 4)
  return {
    figure,
    panel,
    size,
    right,
    x,
    y: (value) => Math.max(margin.top - 3, y(logarithmic ? Math.max(value, least) : value)),
    top: y.domain()[1]!,
    yTicks: logarithmic ? all.filter((value) => /^1(e|0|$)|^0\.0*1$/.test(`${value}`)) : all
  }
}

const yAxis = ({ figure, right, size, y, yTicks }: Drawing): ReadonlyArray<Html> => [
  ...levels(margin.left, right, ticks(figure.unit, yTicks).map((label, n) => ({ label, place: y(yTicks[n]!) }))),
  text(4, 11, isLogarithmic(figure) ? `${figure.axis}, logarithmic` : figure.axis),
  stroke(`M${margin.left} ${size.height - margin.bottom}H${at(right)}`, soft.light)
]

/** Labels of times this far apart can be read. */
const leastApart = 46

const xAxis = ({ figure, right, size, x }: Drawing): ReadonlyArray<Html> => {
  const unit = timeUnit(figure.untilMillis)
  const values = scaleLinear([0, figure.untilMillis / unit.millis], [0, 1]).ticks((right - margin.left) / leastApart)
  const bottom = size.height - margin.bottom
  return values.map((value) => {
    const place = x(value * unit.millis)
    const label = `${value} ${unit.name}`
    const anchor = place + 4 * label.length > size.width ? "end" : "middle"
    const isNear = values.length > 1 && x(values[1]! * unit.millis) - x(0) < leastApart
    return html`${stroke(`M${at(place)} ${bottom}v4`, soft.light)}${
      isNear && (value / values[1]!) % 2 === 1 ? [] : text(place, bottom + 15, label, { anchor })
    }`
  })
}

/** The names of shades: inside where they fit, along the shade where they do not. */
const shades = ({ figure, size, x }: Drawing): ReadonlyArray<Html> =>
  figure.shades.map(({ fromMillis, toMillis, what }) => {
    const [from, to] = [x(fromMillis), x(toMillis)]
    const height = size.height - margin.top - margin.bottom
    const area = fill(box(from, margin.top, to - from, height), shade.light)
    if (figure.shades.length > 3) return area
    const look = { fill: shadeInk.light, size: 10 }
    const middle = (from + to) / 2
    if (to - from > widthOf(what)) {
      return html`${area}${text(middle, margin.top + 11, what, { ...look, anchor: "middle" })}`
    }
    const place = to - from >= 9 ? middle + 3.5 : from - 3
    // At the top: the names of bounds are below.
    return html`${area}${text(place, margin.top + 4, what, { ...look, anchor: "end", upright: true })}`
  })

/** The height of a value, if there is one. */
const heightOf = ({ y }: Drawing, value: number | null | undefined): number | null =>
  value === null || value === undefined ? null : y(value)

const curve = (drawing: Drawing, { look, values }: Line): Html =>
  stroke(
    lineThrough(drawing.figure.times.map((millis, n) => [drawing.x(millis), heightOf(drawing, values[n])])),
    look.color.light,
    look
  )

const band = (drawing: Drawing, { band, look }: Line): ReadonlyArray<Html> => {
  if (band === undefined) return []
  const found = bandThrough(
    drawing.figure.times.map((millis, n) => [
      drawing.x(millis),
      heightOf(drawing, band.low[n]),
      heightOf(drawing, band.high[n])
    ])
  )
  return found === "" ? [] : [fill(found, look.color.light, 0.2)]
}

const lastOf = (values: ReadonlyArray<number | null>): number | undefined =>
  values.filter((value) => value !== null).at(-1)

/** The points of a line that its name stands next to: the end may be a fall to 0 when no more calls are made. */
const lastPart = 0.2

/** Where a line ends, and how high it is before that. */
const endOf = ({ figure: { times, untilMillis }, right, x, y }: Drawing, { values }: Line) => {
  const end = values.reduce<number>((last, value, n) => value === null ? last : n, -1)
  const part = values.slice(Math.floor((end + 1) * (1 - lastPart)), end + 1).filter((value) => value !== null)
  const middle = [...part].sort((a, b) => a - b)[Math.floor(part.length / 2)]
  if (middle === undefined) return undefined
  const isEarly = times[end]! < 0.8 * untilMillis
  return { isEarly, place: isEarly ? x(times[end]!) : right, height: y(middle) + 4 }
}

const names = (drawing: Drawing): ReadonlyArray<Html> => {
  const { panel, size } = drawing
  if (!isNamed(panel)) return []
  const ended = panel.lines.flatMap((line) => {
    const end = endOf(drawing, line)
    return end === undefined ? [] : [{ line, ...end }]
  })
  const places = apart(ended.map(({ height }) => height), 12, size.height - margin.bottom)
  return ended.map(({ isEarly, line: { label, look }, place }, n) =>
    text(place + 5, places[n]!, shortened(label, longestName), { fill: look.color.light, bold: true, halo: isEarly })
  )
}

/** Names of bounds keep clear of the line: above it where the values end below. */
const bounds = ({ figure, panel, right, y }: Drawing): ReadonlyArray<Html> => {
  const last = Math.max(...panel.lines.map(({ values }) => lastOf(values) ?? 0))
  return panel.references.flatMap(({ label, values }) => {
    const value = lastOf(values)
    if (label === "" || value === undefined) return []
    const height = y(value) + (last > value ? 12 : -5)
    const words = values.every((one) => one === value) ? `${label} ${cell(figure.unit, value)}` : label
    return [text(right - 4, height, words, { anchor: "end", halo: true, fill: ink.light })]
  })
}

/** Says how high a line that leaves the picture goes. */
const peak = ({ figure, panel, right, top, x }: Drawing): ReadonlyArray<Html> => {
  if (ceilingOf(figure) === undefined) return []
  const [highest] = [...panel.lines].sort((a, b) => greatest(b.values) - greatest(a.values))
  const most = greatest(highest?.values ?? [])
  if (highest === undefined || most <= top) return []
  const place = x(figure.times[highest.values.indexOf(most)] ?? 0)
  const onLeft = place > (margin.left + right) / 2
  return [
    text(place + (onLeft ? -6 : 6), margin.top + 10, onLeft ? `${rounded(most)} \u2191` : `\u2191 ${rounded(most)}`, {
      anchor: onLeft ? "end" : "start",
      fill: highest.look.color.light,
      bold: true,
      halo: true
    })
  ]
}

/** The longest stretch without any value. */
const gapOf = ({ figure, panel }: Drawing): readonly [from: number, to: number] => {
  let longest: readonly [number, number] = [0, 0]
  let from = 0
  figure.times.forEach((_, n) => {
    if (panel.lines.some(({ values }) => (values[n] ?? null) !== null)) from = n + 1
    else if (n + 1 - from > longest[1] - longest[0]) longest = [from, n + 1]
  })
  return longest
}

const gap = (drawing: Drawing): ReadonlyArray<Html> => {
  const { figure: { gap, times, untilMillis }, size, x } = drawing
  const [from, to] = gapOf(drawing)
  if (gap === undefined || to === from) return []
  const [left, right] = [x(times[from]!), x(times[to] ?? untilMillis)]
  return right - left < 0.8 * widthOf(gap)
    ? []
    : [text((left + right) / 2, (margin.top + size.height - margin.bottom) / 2 + 4, gap, { anchor: "middle" })]
}

/** A line at a point, with its range. */
const labelOf = (unit: Figure["unit"], { band, values }: Line, n: number): string | undefined => {
  const value = values[n] ?? null
  if (value === null) return undefined
  const [low, high] = [band?.low[n] ?? null, band?.high[n] ?? null].map((bound) => cell(unit, bound))
  return `${cell(unit, value)}${band === undefined || low === high ? "" : ` (${low} to ${high})`}`
}

/** All lines at a point, in words. */
const tooltipOf = ({ figure: { times, unit, untilMillis }, panel }: Drawing, n: number): string => {
  const labels = panel.lines.flatMap((line) => {
    const words = labelOf(unit, line, n)
    return words === undefined ? [] : [isNamed(panel) ? `${line.label} ${words}` : words]
  })
  return `${moment(times[n]!, untilMillis)}: ${labels.length === 0 ? "\u2013" : labels.join(", ")}`
}

/**
 * Where a pointer finds the numbers. Rules of the page show what has the class `t7` while the pointer is over anything of the
 * class `h7`, in this picture or another.
 */
const stops = (drawing: Drawing): ReadonlyArray<Html> => {
  const { figure: { times }, right, size, x } = drawing
  const count = Math.min(mostStops, times.length)
  const height = size.height - margin.bottom
  return Array.from({ length: count }, (_, n) => {
    const [from, to] = [n / count, (n + 1) / count].map((part) => margin.left + part * (right - margin.left))
    const point = Math.min(times.length - 1, Math.round((n + 0.5) * times.length / count - 0.5))
    return html`<path class="h h${n}" d="${box(from!, 0, to! - from!, size.height)}"/><g class="t t${n}"><path d="M${
      at(x(times[point]!))
    } ${margin.top}V${height}"/><text x="${size.width - 2}" y="11">${tooltipOf(drawing, point)}</text></g>`
  })
}

/** Rules for {@link stops}. */
export const stopRules = Array.from(
  { length: mostStops },
  (_, n) => `main:has(.h${n}:hover) .t${n}{visibility:visible}`
).join("") +
  ".h{fill:none;pointer-events:all}.t{visibility:hidden;pointer-events:none}.t path{stroke:var(--ink)}" +
  ".t text{fill:var(--ink);text-anchor:end;stroke:var(--paper);stroke-width:5px;paint-order:stroke}"

/** A line in words: the range of its values, and how it ends. */
const inWords = ({ unit }: Figure, { label, values }: Line): string => {
  const numbers = values.filter((value) => value !== null)
  if (numbers.length === 0) return `${label}: no values.`
  const least = numbers.reduce((a, b) => Math.min(a, b))
  const [low, high, last] = [least, greatest(numbers), numbers.at(-1)!].map((value) => cell(unit, value))
  return `${label}: from ${low} to ${high}, in the end ${last}.`
}

const captionOf = (figure: Figure, panel: Panel): Caption => ({
  title: panel.name === figure.title ? figure.title : `${figure.title}, ${panel.name}`,
  description: [`Over time, ${figure.axis}.`, ...panel.lines.map((line) => inWords(figure, line))].join(" ")
})

const marks = (drawing: Drawing): ReadonlyArray<Html> => {
  const { lines, references } = drawing.panel
  const back = [...lines].reverse()
  return [
    ...shades(drawing),
    ...yAxis(drawing),
    ...xAxis(drawing),
    ...references.map((line) => curve(drawing, line)),
    ...back.flatMap((line) => band(drawing, line)),
    ...back.map((line) => curve(drawing, line)),
    ...gap(drawing),
    ...bounds(drawing),
    ...peak(drawing),
    ...names(drawing)
  ]
}

/** Draws the lines of a panel over time, for a page. */
export const timePanel = (figure: Figure, panel: Panel, size: Size): Html => {
  const drawing = drawingOf(figure, panel, size)
  return inPage(size, captionOf(figure, panel), [...marks(drawing), ...stops(drawing)])
}

/** The lines of a panel over time as a part of a file, and in words. */
export const timeMarks = (
  figure: Figure,
  panel: Panel,
  size: Size
): { readonly caption: Caption; readonly content: ReadonlyArray<Html> } => ({
  caption: captionOf(figure, panel),
  content: marks(drawingOf(figure, panel, size))
})

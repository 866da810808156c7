import { type ScaleLinear, scaleLinear } from "d3-scale"
import { type Html, html } from "./html.ts"
import { type Color, colors, grid, ink, shade, soft } from "./palette.ts"
import { widthOf } from "./shortened.ts"
import { at, bandThrough, box, document, dot, fill, heading, lineThrough, type Size, stroke, text } from "./svg.ts"

/** A line, and the range of most runs. */
export interface Point {
  readonly x: number
  readonly mean: number
  readonly low: number
  readonly high: number
}

/** One small chart. */
interface Panel {
  readonly points: ReadonlyArray<Point>
  /** A stretch in which something was wrong. */
  readonly fault?: readonly [from: number, to: number] | undefined
}

/** An axis that all panels share. */
interface SharedAxis {
  readonly name: string
  readonly min: number
  readonly max: number
  /** A value with a line and a label. */
  readonly ticks: ReadonlyArray<number>
  readonly label: (value: number) => string
}

/** Small charts with the same axes, in rows and columns. */
export interface Multiples {
  readonly title: string
  readonly what: string
  readonly columns: ReadonlyArray<string>
  readonly rows: ReadonlyArray<string>
  readonly x: SharedAxis
  readonly y: SharedAxis
  /** Row by row; `undefined` where there is none. */
  readonly panels: ReadonlyArray<ReadonlyArray<Panel | undefined>>
  /** The column that the others are compared with. */
  readonly strong: string
  /** How large a panel is. Default 104 by 66. */
  readonly panel?: Size | undefined
}

const usualPanel: Size = { width: 104, height: 66 }
const gap = 12
const edge = 10
const top = 84
const bottom = 52
/** Room for the labels of the shared axis. */
const labelRoom = 36
const small = 10
const usual = 12
/** Lines of fewer points mark each of them. */
const marksBelow = 10

const sizeOf = ({ panel = usualPanel }: Multiples): Size => panel

const leftOf = ({ rows }: Multiples): number => edge + labelRoom + Math.ceil(0.85 * Math.max(...rows.map(widthOf)))

const placeOf = (all: Multiples, row: number, column: number) => {
  const { height, width } = sizeOf(all)
  return { left: leftOf(all) + column * (width + gap), top: top + row * (height + gap) }
}

/** What a panel is drawn with. What lies outside of the axes is drawn at their ends. */
interface Scales {
  readonly size: Size
  readonly toX: ScaleLinear<number, number>
  readonly toY: ScaleLinear<number, number>
}

const scalesOf = (all: Multiples): Scales => {
  const size = sizeOf(all)
  const { x, y } = all
  return {
    size,
    toX: scaleLinear([x.min, x.max], [0, size.width]).clamp(true),
    toY: scaleLinear([y.min, y.max], [size.height, 0]).clamp(true)
  }
}

const faultOf = ({ size, toX }: Scales, { fault }: Panel): ReadonlyArray<Html> => {
  if (fault === undefined) return []
  const [from, to] = [toX(fault[0]), toX(fault[1])]
  return [fill(box(from, 0, to - from, size.height), shade.light)]
}

const frameOf = ({ x, y }: Multiples, { size, toX, toY }: Scales): Html =>
  stroke(
    [
      box(0, 0, size.width, size.height),
      ...x.ticks.map((value) => `M${at(toX(value))} 0v${size.height}`),
      ...y.ticks.map((value) => `M0 ${at(toY(value))}h${size.width}`)
    ].join(""),
    grid.light
  )

const bandOf = ({ toX, toY }: Scales, { points }: Panel, { light }: Color): ReadonlyArray<Html> =>
  points.some(({ high, low }) => high > low)
    ? [fill(bandThrough(points.map(({ high, low, x }) => [toX(x), toY(low), toY(high)])), light, 0.25)]
    : []

const lineOf = ({ toX, toY }: Scales, { points }: Panel, { light }: Color): ReadonlyArray<Html> => [
  stroke(lineThrough(points.map(({ mean, x }) => [toX(x), toY(mean)])), light, { width: 2 }),
  ...points.length < marksBelow ? points.map(({ mean, x }) => dot(toX(x), toY(mean), 2.5, light)) : []
]

const cellsOf = (all: Multiples): ReadonlyArray<Html> => {
  const scales = scalesOf(all)
  return all.panels.flatMap((row, r) =>
    row.flatMap((panel, c) => {
      if (panel === undefined) return []
      const { left, top } = placeOf(all, r, c)
      const color = all.columns[c] === all.strong ? colors[0]! : soft
      return [
        html`<g transform="translate(${left} ${top})">${faultOf(scales, panel)}${frameOf(all, scales)}${
          bandOf(scales, panel, color)
        }${lineOf(scales, panel, color)}</g>`
      ]
    })
  )
}

/** The labels of the shared axes: at the left of each row, and below each column. */
const axesOf = (all: Multiples): ReadonlyArray<Html> => {
  const { columns, rows, x, y } = all
  const { size, toX, toY } = scalesOf(all)
  const last = placeOf(all, rows.length - 1, 0).top + size.height
  return [
    ...rows.flatMap((_, row) =>
      y.ticks.map((value) => {
        const { left, top } = placeOf(all, row, 0)
        return text(left - 6, top + toY(value) + 4, y.label(value), { anchor: "end", size: small })
      })
    ),
    ...columns.flatMap((_, column) =>
      x.ticks.map((value) =>
        text(placeOf(all, 0, column).left + toX(value), last + 14, x.label(value), { anchor: "middle", size: small })
      )
    ),
    text(leftOf(all), last + 36, x.name, { size: usual })
  ]
}

const namesOf = (all: Multiples): ReadonlyArray<Html> => {
  const { columns, rows, strong, title, y } = all
  const { height } = sizeOf(all)
  return [
    heading(edge, 22, title, 15),
    text(edge, 42, y.name, { size: usual }),
    ...columns.map((column, n) => {
      const isStrong = column === strong
      return text(placeOf(all, 0, n).left, top - 9, column, {
        bold: isStrong,
        fill: isStrong ? colors[0]!.light : ink.light,
        size: usual
      })
    }),
    ...rows.map((row, n) => text(edge, placeOf(all, n, 0).top + height / 2 + 4, row, { fill: ink.light, size: usual }))
  ]
}

const described = ({ columns, panels, rows }: Multiples): string =>
  panels.map((row, r) =>
    `${rows[r]}: ${
      row.flatMap((panel, c) =>
        panel === undefined ? [] : [`${columns[c]} ${panel.points.map(({ mean }) => Math.round(mean)).join(", ")}`]
      ).join("; ")
    }.`
  ).join(" ")

/** Draws small charts with the same axes. A band is where nine tenths of the runs lie. */
export const multiples = (all: Multiples): string => {
  const { columns, panels, rows, title, what } = all
  const { height, width } = sizeOf(all)
  const last = placeOf(all, rows.length - 1, columns.length - 1)
  const hasFew = panels.every((row) => row.every((panel) => panel === undefined || panel.points.length < marksBelow))
  return document(
    { width: last.left + width + 16, height: last.top + height + bottom },
    { title, description: hasFew ? `${what} ${described(all)}` : what },
    [...namesOf(all), ...axesOf(all), ...cellsOf(all)]
  )
}

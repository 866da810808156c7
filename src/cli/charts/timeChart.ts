import type { EChartsCoreOption } from "echarts/core"
import { type Caption, draw, type Size } from "./draw.ts"
import { type Figure, type Line, type Shade, type Unit, valuesOf } from "./figure.ts"
import { cell, tick, timeUnit } from "./format.ts"
import { grid, ink, paper, shade, shadeInk, soft } from "./palette.ts"

/** Durations that differ by more are drawn on a logarithmic axis. */
const logarithmicFrom = 50

/** Marks on each line. */
const marksPerLine = 7

type Point = readonly [time: number, value: number | null]

/** Drawn where values are below 0 on no axis that has a 0. */
const onLogarithm = (value: number | null): number | null => value === 0 ? null : value

const isLogarithmic = (figure: Figure): boolean => {
  const values = valuesOf(figure).filter((value) => value > 0)
  const least = values.reduce((a, b) => Math.min(a, b), Infinity)
  const greatest = values.reduce((a, b) => Math.max(a, b), 0)
  return figure.unit === "duration" && greatest > least * logarithmicFrom
}

const lineSeries = (line: Line, points: ReadonlyArray<Point>, unit: Unit) => ({
  type: "line",
  silent: true,
  showSymbol: false,
  sampling: unit === "duration" ? "max" : "average",
  data: points,
  z: 3,
  lineStyle: {
    color: line.look.colour.light,
    width: line.look.width,
    type: line.look.dash.length === 0 ? "solid" : [...line.look.dash]
  }
})

/** Some of the points of a line, so that lines that lie near each other are marked at different places. */
const marked = (points: ReadonlyArray<Point>, place: number, places: number): ReadonlyArray<Point> => {
  const step = Math.max(1, points.length / marksPerLine)
  const first = step * (place + 0.5) / places
  const indices = Array.from({ length: marksPerLine }, (_, n) => Math.floor(first + n * step))
  return [...new Set(indices)].flatMap((index) => {
    const point = points[index]
    return point === undefined || point[1] === null ? [] : [point]
  })
}

const markSeries = ({ look }: Line, points: ReadonlyArray<Point>) => ({
  type: "scatter",
  silent: true,
  symbol: look.marker === undefined ? "none" : `path://${look.marker}`,
  symbolSize: 8,
  data: points,
  z: 4,
  itemStyle: { color: look.colour.light, opacity: 1, borderColor: paper.light, borderWidth: 1 }
})

const shadeSeries = (shades: ReadonlyArray<Shade>, unitMillis: number) => ({
  type: "line",
  silent: true,
  data: [],
  markArea: {
    silent: true,
    z: -1,
    itemStyle: { color: shade.light, opacity: 1 },
    label: {
      show: shades.length <= 3,
      position: "insideTop",
      distance: 3,
      color: shadeInk.light,
      fontSize: 11,
      textBorderWidth: 0
    },
    data: shades.map(({ fromMillis, toMillis }) => [
      { name: "outage", xAxis: fromMillis / unitMillis },
      { xAxis: toMillis / unitMillis }
    ])
  }
})

const axisLook = {
  axisLine: { show: true, lineStyle: { color: soft.light } },
  axisTick: { show: true, lineStyle: { color: soft.light } },
  axisLabel: { color: soft.light, hideOverlap: true },
  nameTextStyle: { color: ink.light },
  splitLine: { show: true, lineStyle: { color: grid.light } }
}

const axes = (figure: Figure, size: Size, logarithmic: boolean) => {
  const time = timeUnit(figure.untilMillis)
  const { unit } = figure
  return {
    xAxis: {
      ...axisLook,
      type: "value",
      min: 0,
      max: figure.untilMillis / time.millis,
      name: time.name,
      nameLocation: "middle",
      nameGap: 26,
      splitNumber: size.width < 500 ? 4 : 8,
      splitLine: { show: false },
      axisLabel: { ...axisLook.axisLabel, showMaxLabel: false }
    },
    yAxis: {
      ...axisLook,
      type: logarithmic ? "log" : "value",
      min: logarithmic ? undefined : 0,
      max: unit === "share" ? 1 : undefined,
      splitNumber: 4,
      axisLabel: { ...axisLook.axisLabel, formatter: (value: number) => tick(unit, value) }
    }
  }
}

const optionOf = (figure: Figure, size: Size): EChartsCoreOption => {
  const logarithmic = isLogarithmic(figure)
  const time = timeUnit(figure.untilMillis)
  const points = ({ values }: Line): ReadonlyArray<Point> =>
    figure.times.map((at, index) => {
      const value = values[index] ?? null
      return [at / time.millis, logarithmic ? onLogarithm(value) : value]
    })
  const drawn = [...figure.lines].reverse()
  return {
    backgroundColor: paper.light,
    grid: { left: 62, right: 14, top: 14, bottom: 42 },
    ...axes(figure, size, logarithmic),
    series: [
      shadeSeries(figure.shades, time.millis),
      ...drawn.map((line) => lineSeries(line, points(line), figure.unit)),
      ...drawn.map((line, place) => markSeries(line, marked(points(line), place, drawn.length)))
    ]
  }
}

/** A line in words: between what its values lie, and how it ends. */
const summaryOf = ({ label, values }: Line, unit: Unit): string => {
  const numbers = values.filter((value) => value !== null)
  if (numbers.length === 0) return `${label}: no values.`
  const least = numbers.reduce((a, b) => Math.min(a, b))
  const greatest = numbers.reduce((a, b) => Math.max(a, b))
  return `${label}: from ${cell(unit, least)} to ${cell(unit, greatest)}, in the end ${cell(unit, numbers.at(-1)!)}.`
}

const captionOf = (figure: Figure): Caption => ({
  title: figure.title,
  description: [
    `${figure.what} Over time, ${figure.axis}.`,
    ...figure.lines.map((line) => summaryOf(line, figure.unit))
  ].join(" ")
})

/** Draws lines over time. The legend is left to the page. */
export const timeChart = (figure: Figure, size: Size, name: string): string =>
  draw(optionOf(figure, size), size, captionOf(figure), { name })

/** Whether the axis is logarithmic: readers are told. */
export { isLogarithmic }

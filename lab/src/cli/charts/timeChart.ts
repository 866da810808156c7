import type { EChartsCoreOption } from "echarts/core"
import { type Caption, draw, type Size } from "./draw.ts"
import { ceilingOf, type Figure, greatest, isLogarithmic, type Line, type Shade } from "./figure.ts"
import { cell, counted, tick, timeUnit } from "./format.ts"
import { axisLook, ink, paper, shade, shadeInk } from "./palette.ts"

/** Marks on each line. */
const marksPerLine = 7

type Point = readonly [time: number, value: number | null]

/** What a chart is drawn of: the figure, and what was found out about it. */
interface Drawing {
  readonly figure: Figure
  readonly size: Size
  readonly time: { readonly name: string; readonly millis: number }
  readonly logarithmic: boolean
  readonly ceiling: number | undefined
}

const pointsOf = ({ figure, logarithmic, time }: Drawing, { values }: Line): ReadonlyArray<Point> =>
  figure.times.map((at, index) => {
    const value = values[index] ?? null
    // A logarithmic axis has no 0.
    return [at / time.millis, logarithmic && value === 0 ? null : value]
  })

const lineSeries = ({ look }: Line, points: ReadonlyArray<Point>) => ({
  type: "line",
  silent: true,
  showSymbol: false,
  data: points,
  z: 3,
  lineStyle: {
    color: look.colour.light,
    width: look.width,
    type: look.dash.length === 0 ? "solid" : [...look.dash]
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

/** Between what most runs lie: a polygon for each stretch in which they have values. */
const bandSeries = (drawing: Drawing, { band, look }: Line): ReadonlyArray<object> => {
  if (band === undefined) return []
  const { figure: { times }, logarithmic, time } = drawing
  const stretches: Array<Array<readonly [number, number, number]>> = [[]]
  times.forEach((at, index) => {
    const [low, high] = [band.low[index] ?? null, band.high[index] ?? null]
    if (low === null || high === null || (logarithmic && low <= 0)) stretches.push([])
    else stretches.at(-1)!.push([at / time.millis, low, high])
  })
  return stretches.filter(({ length }) => length > 1).map((stretch) => ({
    type: "custom",
    silent: true,
    clip: true,
    z: 2,
    data: [0],
    renderItem: (
      _: unknown,
      { coord }: { readonly coord: (point: ReadonlyArray<number>) => ReadonlyArray<number> }
    ) => ({
      type: "polygon",
      shape: {
        points: [
          ...stretch.map(([at, , high]) => coord([at, high])),
          ...[...stretch].reverse().map(([at, low]) => coord([at, low]))
        ]
      },
      style: { fill: look.colour.light, opacity: 0.15 }
    })
  }))
}

const markSeries = ({ look }: Line, points: ReadonlyArray<Point>) => ({
  type: "scatter",
  silent: true,
  symbol: look.marker === undefined ? "none" : `path://${look.marker}`,
  symbolSize: 9,
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
      position: "top",
      distance: 3,
      color: shadeInk.light,
      fontSize: 11,
      textBorderWidth: 0
    },
    data: shades.map(({ fromMillis, toMillis, what }) => [
      { name: what, xAxis: fromMillis / unitMillis },
      { xAxis: toMillis / unitMillis }
    ])
  }
})

/** Says how high the peak is that goes on above the upper edge. */
const peakSeries = ({ ceiling, figure, time }: Drawing): ReadonlyArray<object> => {
  if (ceiling === undefined) return []
  const peaks = figure.lines.map(({ values }) => greatest(values))
  const peak = greatest(peaks)
  const at = figure.times[figure.lines[peaks.indexOf(peak)]!.values.indexOf(peak)] ?? 0
  const onLeft = at > figure.untilMillis / 2
  return [{
    type: "scatter",
    silent: true,
    symbol: "triangle",
    symbolSize: 9,
    symbolOffset: [0, 6],
    data: [[at / time.millis, ceiling]],
    z: 5,
    itemStyle: { color: ink.light, opacity: 1 },
    label: {
      show: true,
      position: onLeft ? "left" : "right",
      distance: 6,
      offset: [0, 6],
      formatter: `up to ${counted(Math.round(peak))}`,
      color: ink.light,
      fontSize: 11,
      textBorderColor: paper.light,
      textBorderWidth: 3
    }
  }]
}

const valueAxis = ({ ceiling, figure, logarithmic }: Drawing) => {
  const { unit } = figure
  const nothing = unit !== "share" && greatest(figure.lines.flatMap(({ values }) => values)) === 0
  return {
    ...axisLook,
    type: logarithmic ? "log" : "value",
    min: logarithmic ? undefined : 0,
    max: unit === "share" || nothing ? 1 : ceiling,
    name: figure.axis + (logarithmic ? ", logarithmic" : ""),
    nameLocation: "end",
    nameGap: 22,
    nameTextStyle: { color: ink.light, align: "left", padding: [0, 0, 0, -58] },
    splitNumber: 4,
    interval: unit === "share" ? 0.25 : undefined,
    axisLabel: {
      ...axisLook.axisLabel,
      showMaxLabel: ceiling === undefined,
      formatter: (value: number) => tick(unit, value)
    }
  }
}

const timeAxis = ({ figure, size, time }: Drawing) => ({
  ...axisLook,
  type: "value",
  min: 0,
  max: figure.untilMillis / time.millis,
  name: time.name,
  nameLocation: "middle",
  nameGap: 26,
  splitNumber: size.width < 500 ? 4 : 8,
  splitLine: { show: false },
  axisLabel: { ...axisLook.axisLabel, showMaxLabel: false, formatter: (value: number) => tick("number", value) }
})

const optionOf = (drawing: Drawing): EChartsCoreOption => {
  const { figure, time } = drawing
  // The first line is drawn last, above the others.
  const drawn = [...figure.lines].reverse()
  return {
    backgroundColor: paper.light,
    grid: { left: 62, right: 16, top: 40, bottom: 42 },
    xAxis: timeAxis(drawing),
    yAxis: valueAxis(drawing),
    series: [
      shadeSeries(figure.shades, time.millis),
      ...drawn.flatMap((line) => bandSeries(drawing, line)),
      ...drawn.map((line) => lineSeries(line, pointsOf(drawing, line))),
      ...drawn.map((line, place) => markSeries(line, marked(pointsOf(drawing, line), place, drawn.length))),
      ...peakSeries(drawing)
    ]
  }
}

/** A line in words: between what its values lie, and how it ends. */
const summaryOf = (figure: Figure, { label, values }: Line): string => {
  const numbers = values.filter((value) => value !== null)
  if (numbers.length === 0) return `${label}: no values.`
  const least = numbers.reduce((a, b) => Math.min(a, b))
  const [low, high, last] = [least, greatest(numbers), numbers.at(-1)!].map((value) => cell(figure.unit, value))
  return `${label}: from ${low} to ${high}, in the end ${last}.`
}

const captionOf = (figure: Figure): Caption => ({
  title: figure.title,
  description: [
    `${figure.what} Over time, ${figure.axis}.`,
    ...figure.lines.map((line) => summaryOf(figure, line))
  ].join(" ")
})

/** Draws lines over time. The legend is left to the page. */
export const timeChart = (figure: Figure, size: Size, name: string): string => {
  const drawing: Drawing = {
    figure,
    size,
    time: timeUnit(figure.untilMillis),
    logarithmic: isLogarithmic(figure),
    ceiling: ceilingOf(figure)
  }
  return draw(optionOf(drawing), size, captionOf(figure), name)
}

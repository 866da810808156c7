import { draw, type Size } from "./draw.ts"
import { tick } from "./format.ts"
import { axisLook, colours, ink, paper, soft } from "./palette.ts"
import { shortened, widthOf } from "./shortened.ts"

/** Something with a length. */
interface Bar {
  readonly label: string
  readonly value: number
  /** What stands at its end, such as `243 for each call`. */
  readonly note: string
}

/** Bars below each other, each with its name. */
export interface Bars {
  readonly title: string
  readonly what: string
  readonly axis: string
  readonly bars: ReadonlyArray<Bar>
}

/** How high a chart of bars is. */
export const heightOf = ({ bars }: Bars): number => 76 + bars.length * 26

const axesOf = (figure: Bars, size: Size, labels: ReadonlyArray<string>) => ({
  xAxis: {
    ...axisLook,
    type: "value",
    name: figure.axis,
    nameLocation: "middle",
    nameGap: 28,
    splitNumber: size.width < 500 ? 2 : 5,
    axisLabel: { ...axisLook.axisLabel, formatter: (value: number) => tick("number", value) }
  },
  yAxis: {
    type: "category",
    inverse: true,
    data: labels,
    axisLine: { show: true, lineStyle: { color: soft.light } },
    axisTick: { show: false },
    axisLabel: { color: ink.light, interval: 0 }
  }
})

const seriesOf = ({ bars }: Bars) => ({
  type: "bar",
  silent: true,
  barWidth: 15,
  itemStyle: { color: colours[0]!.light },
  data: bars.map(({ value }) => value),
  label: {
    show: true,
    position: "right",
    color: ink.light,
    textBorderWidth: 0,
    formatter: ({ dataIndex }: { readonly dataIndex: number }) => bars[dataIndex]!.note
  }
})

/** Draws bars from left to right, the first on top. */
export const barChart = (figure: Bars, size: Size, name: string): string => {
  const most = size.width < 500 ? 14 : 28
  const labels = figure.bars.map(({ label }) => shortened(label, most))
  const left = 16 + Math.max(...labels.map(widthOf))
  const right = 20 + Math.max(...figure.bars.map(({ note }) => widthOf(note)))
  const option = {
    backgroundColor: paper.light,
    grid: { left, right, top: 12, bottom: 46 },
    ...axesOf(figure, size, labels),
    series: [seriesOf(figure)]
  }
  const description = [figure.what, ...figure.bars.map(({ label, note }) => `${label}: ${note}.`)].join(" ")
  return draw(option, size, { title: figure.title, description }, name)
}

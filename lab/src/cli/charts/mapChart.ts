import type { Axis, Verdict } from "../../Simulator.ts"
import type { PolicyMap } from "../mapTable.ts"
import { draw } from "./draw.ts"
import { counted } from "./format.ts"
import { axisLook, type Colour, colours, grid, ink, paper } from "./palette.ts"

const looks: { readonly [Of in Verdict]: { readonly colour: Colour; readonly opacity: number } } = {
  recovers: { colour: colours[2]!, opacity: 0.35 },
  limps: { colour: colours[5]!, opacity: 0.75 },
  collapses: { colour: colours[1]!, opacity: 1 }
}

const panelWidth = 300
const panelHeight = 230
const left = 70
const top = 70

/** Where a cell begins and ends: half-way to its neighbors. */
const edgesOf = (values: ReadonlyArray<number>): ReadonlyArray<number> => {
  const inner = values.slice(1).map((value, n) => (values[n]! + value) / 2)
  const [first, last] = [values[0]!, values.at(-1)!]
  const half = values.length < 2 ? 0.5 : 0
  return [
    first - half - (inner.length === 0 ? 0 : inner[0]! - first),
    ...inner,
    last + half + (inner.length === 0 ? 0 : last - inner.at(-1)!)
  ]
}

interface Api {
  readonly coord: (point: readonly [number, number]) => readonly [number, number]
}

const cellsOf = ({ rows, x, y }: PolicyMap, verdict: Verdict, index: number) => {
  const [across, up] = [edgesOf(x.values), edgesOf(y.values)]
  const cells = rows.flatMap((row, n) => row.flatMap((one, m) => one === verdict ? [[m, n] as const] : []))
  return {
    type: "custom",
    name: verdict,
    xAxisIndex: index,
    yAxisIndex: index,
    silent: true,
    data: cells,
    itemStyle: { color: looks[verdict].colour.light, opacity: looks[verdict].opacity },
    renderItem: ({ dataIndex }: { readonly dataIndex: number }, { coord }: Api) => {
      const [m, n] = cells[dataIndex]!
      const [fromX, fromY] = coord([across[m]!, up[n]!])
      const [toX, toY] = coord([across[m + 1]!, up[n + 1]!])
      return {
        type: "rect",
        shape: { x: fromX, y: toY, width: toX - fromX, height: fromY - toY },
        style: {
          fill: looks[verdict].colour.light,
          opacity: looks[verdict].opacity,
          stroke: paper.light,
          lineWidth: 0.5
        }
      }
    }
  }
}

/** What theory says, where it speaks of what is across. */
const theoryOf = ({ recoversBelow, x, y }: PolicyMap, index: number): ReadonlyArray<object> => {
  const edges = edgesOf(x.values)
  if (recoversBelow === undefined || !x.path.endsWith("rate")) return []
  if (recoversBelow < edges[0]! || recoversBelow > edges.at(-1)!) return []
  const up = edgesOf(y.values)
  return [{
    type: "line",
    xAxisIndex: index,
    yAxisIndex: index,
    silent: true,
    showSymbol: false,
    z: 5,
    data: [[recoversBelow, up[0]!], [recoversBelow, up.at(-1)!]],
    lineStyle: { color: ink.light, width: 2, type: [6, 4] }
  }]
}

const described = ({ label, recoversBelow, rows }: PolicyMap): string => {
  const cells = rows.flat()
  const share = (verdict: Verdict) => counted(cells.filter((one) => one === verdict).length)
  return `${label}: recovers in ${share("recovers")} of ${counted(cells.length)} cells, limps in ${
    share("limps")
  }, collapses in ${share("collapses")}${
    recoversBelow === undefined ? "" : `; by theory it recovers below ${counted(Math.floor(recoversBelow))} per second`
  }.`
}

const placeOf = (index: number): number => left + index * (panelWidth + 20)

const titlesOf = (name: string, maps: ReadonlyArray<PolicyMap>) => [
  {
    text: `Where ${name} recovers`,
    subtext: "green recovers, yellow limps, orange collapses; dashed: theory",
    left: 10,
    top: 6,
    textStyle: { color: ink.light, fontSize: 15 },
    subtextStyle: { color: ink.light }
  },
  ...maps.map(({ label }, index) => ({
    text: label,
    left: placeOf(index),
    top: top - 22,
    textStyle: { color: ink.light, fontSize: 12, width: panelWidth, overflow: "truncate" }
  }))
]

const axisOf = ({ path, values }: Axis, index: number) => ({
  ...axisLook,
  type: "value",
  gridIndex: index,
  min: edgesOf(values)[0],
  max: edgesOf(values).at(-1),
  name: path,
  nameLocation: "middle",
  splitNumber: 4,
  splitLine: { show: false }
})

const optionOf = (name: string, maps: readonly [PolicyMap, ...Array<PolicyMap>]) => ({
  backgroundColor: paper.light,
  title: titlesOf(name, maps),
  grid: maps.map((_, index) => ({
    left: placeOf(index),
    top,
    width: panelWidth,
    height: panelHeight,
    show: true,
    borderColor: grid.light
  })),
  xAxis: maps.map(({ x }, index) => ({
    ...axisOf(x, index),
    nameGap: 26,
    axisLabel: { ...axisLook.axisLabel, showMinLabel: false, showMaxLabel: false }
  })),
  yAxis: maps.map(({ y }, index) => ({
    ...axisOf(y, index),
    name: index === 0 ? y.path : "",
    nameGap: 52,
    axisLabel: { ...axisLook.axisLabel, show: index === 0, showMinLabel: false, showMaxLabel: false }
  })),
  series: maps.flatMap((map, index) => [
    ...(["recovers", "limps", "collapses"] as const).map((verdict) => cellsOf(map, verdict, index)),
    ...theoryOf(map, index)
  ])
})

/** The maps of several policies beside each other, as a picture. */
export const mapSvg = (name: string, maps: readonly [PolicyMap, ...Array<PolicyMap>]): string =>
  draw(
    optionOf(name, maps),
    { width: placeOf(maps.length) + 10, height: top + panelHeight + 50 },
    { title: `Where ${name} recovers`, description: maps.map(described).join(" ") },
    "map"
  )

import type { Explanation } from "../../Explain.ts"
import { draw } from "./draw.ts"
import { delays, load, type Panel, worstCase } from "./explainPanels.ts"
import { limit, millis, percent } from "./format.ts"
import { darkRules, ink, paper, soft } from "./palette.ts"
import { shortened } from "./shortened.ts"

const width = 720
const headHeight = 72
const panelHeight = 290
const plot = { left: 74, right: 24, top: 74, bottom: 54 }

/** The longest name that fits above the charts, in characters. */
const longestName = 60

const headOf = (explanation: Explanation): ReadonlyArray<object> => {
  const { attemptMillis, failure, maxAttempts, name } = explanation
  const kind = failure.safety === "No" ? "not retryable" : failure.class
  return [{
    text: shortened(name ?? "A retry policy", longestName),
    subtext: `${limit(maxAttempts)}; every attempt fails (${kind}) after ${millis(attemptMillis)}`,
    left: 16,
    top: 14,
    padding: 0,
    textStyle: { color: ink.light, fontSize: 20, fontWeight: "bold" },
    subtextStyle: { color: soft.light, fontSize: 13 }
  }]
}

const topOf = (place: number): number => headHeight + place * panelHeight

const titleOf = ({ title, what }: Panel, place: number) => ({
  text: title,
  subtext: what,
  left: 16,
  top: topOf(place) + 8,
  padding: 0,
  itemGap: 4,
  textStyle: { color: ink.light, fontSize: 14, fontWeight: "bold" },
  subtextStyle: { color: soft.light, fontSize: 12 }
})

const legendOf = ({ series }: Panel, place: number) => ({
  data: series.flatMap(({ name }) => name ?? []),
  top: topOf(place) + 44,
  left: plot.left,
  padding: 0,
  itemGap: 18,
  itemWidth: 34,
  itemHeight: 9,
  selectedMode: false,
  textStyle: { color: ink.light, fontSize: 12 }
})

/** What does not depend on seeing it. */
const description = ({ latency, load, quota, retries }: Explanation): string =>
  [
    ...retries.map(({ delay, latestMillis, retry }) =>
      `Retry ${retry}: delay from ${millis(delay.minMillis)} to ${millis(delay.maxMillis)}, p50 ${
        millis(delay.p50Millis)
      }, p99 ${millis(delay.p99Millis)}, sent after ${millis(latestMillis)} at the latest.`
    ),
    ...latency.maxMillis === null ? [] : [`A call that fails ends after ${millis(latency.maxMillis)} at most.`],
    ...load.map(({ attempts, failureRate }) =>
      `When ${percent(failureRate)} of attempts fail: ${
        attempts === null ? "no bound" : attempts.toFixed(2)
      } attempts per call.`
    ),
    ...quota === null || quota.bitesAt === null ? [] : [`The quota bites from ${percent(quota.bitesAt)}.`]
  ].join(" ")

/** Readers with a dark ground see one too. */
const darkStyle = `<style>@media (prefers-color-scheme:dark){${darkRules("svg")}}</style>`

/** An explanation as an SVG document: delays, the worst case, and the load by failure rate. */
export const explainSvg = (explanation: Explanation): string => {
  const panels = [
    ...explanation.retries.length === 0 ? [] : [delays(explanation), worstCase(explanation)],
    ...explanation.load.length === 0 ? [] : [load(explanation)]
  ]
  const at = (axis: object, gridIndex: number) => ({ ...axis, gridIndex })
  const option = {
    backgroundColor: paper.light,
    title: [...headOf(explanation), ...panels.map(titleOf)],
    legend: panels.map(legendOf),
    grid: panels.map((_, place) => ({
      left: plot.left,
      right: plot.right,
      top: topOf(place) + plot.top,
      height: panelHeight - plot.top - plot.bottom
    })),
    xAxis: panels.map(({ xAxis }, place) => at(xAxis, place)),
    yAxis: panels.map(({ yAxis }, place) => at(yAxis, place)),
    series: panels.flatMap(({ series }, place) =>
      series.map((one) => ({ ...one, xAxisIndex: place, yAxisIndex: place }))
    )
  }
  const title = `What ${explanation.name ?? "a retry policy"} does`
  const caption = { title, description: description(explanation) }
  return draw(option, { width, height: topOf(panels.length) + 8 }, caption, "explain")
    .replace("</desc>", () => `</desc>${darkStyle}`)
}

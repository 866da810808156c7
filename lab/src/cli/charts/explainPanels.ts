import type { Explanation, Retry } from "../../Explain.ts"
import { millis, percent, tick } from "./format.ts"
import { axisLook, grid, ink, type Look, lookOf, markers, paper, reference, soft } from "./palette.ts"

/** A picture within the picture: its axes, its lines, what is above them. */
export interface Panel {
  readonly title: string
  readonly what: string
  readonly xAxis: object
  readonly yAxis: object
  readonly series: ReadonlyArray<object & { readonly name?: string }>
}

/** More points than these are not marked one by one. */
const mostMarks = 40
/** More points than these do not bear their numbers. */
const mostNumbers = 10

const lineOf = (name: string, { colour, dash, marker, width }: Look, data: ReadonlyArray<unknown>) => ({
  type: "line",
  name,
  silent: true,
  data,
  z: 4,
  showSymbol: marker !== undefined && data.length <= mostMarks,
  showAllSymbol: true,
  symbol: marker === undefined ? "none" : `path://${marker}`,
  symbolSize: 9,
  itemStyle: { color: colour.light, borderColor: paper.light, borderWidth: 1 },
  lineStyle: { color: colour.light, width, type: dash.length === 0 ? "solid" : [...dash] }
})

const numbers = (shown: boolean, formatter: (index: number) => string) => ({
  label: {
    show: shown,
    position: "top",
    color: ink.light,
    fontSize: 11,
    textBorderColor: paper.light,
    textBorderWidth: 3,
    formatter: ({ dataIndex }: { readonly dataIndex: number }) => formatter(dataIndex)
  }
})

const retryAxis = (retries: ReadonlyArray<Retry>) => ({
  ...axisLook,
  type: "category",
  data: retries.map(({ retry }) => `${retry}`),
  name: "retry",
  nameLocation: "middle",
  nameGap: 26,
  splitLine: { show: false },
  axisTick: { show: false }
})

const durationAxis = {
  ...axisLook,
  type: "value",
  min: 0,
  splitNumber: 4,
  axisLabel: { ...axisLook.axisLabel, formatter: (value: number) => tick("duration", value) }
}

const range = (data: ReadonlyArray<number>, itemStyle: object, name?: string) => ({
  type: "bar",
  ...name === undefined ? {} : { name },
  stack: "range",
  silent: true,
  barMaxWidth: 34,
  itemStyle,
  data
})

/** The delay before each retry. */
export const delays = ({ retries }: Explanation): Panel => {
  const top = ({ delay }: Retry) => delay.maxMillis ?? delay.p99Millis ?? 0
  const bottom = ({ delay }: Retry) => delay.minMillis ?? 0
  const unbounded = retries.some(({ delay }) => delay.maxMillis === null)
  return {
    title: "Delay before each retry",
    what: unbounded
      ? "From the least that chance gives it to the most, to p99 where there is no bound."
      : "From the least that chance gives it to the most.",
    xAxis: retryAxis(retries),
    yAxis: durationAxis,
    series: [
      range(retries.map(bottom), { color: "transparent" }),
      range(
        retries.map((retry) => top(retry) - bottom(retry)),
        { color: grid.light, borderColor: soft.light, borderWidth: 1 },
        "least to most"
      ),
      lineOf("p50", lookOf(0), retries.map(({ delay }) => delay.p50Millis)),
      lineOf("p99", lookOf(1), retries.map(({ delay }) => delay.p99Millis))
    ]
  }
}

/** When each retry is sent at the latest. */
export const worstCase = ({ latency, retries }: Explanation): Panel => ({
  title: "In the worst case, each retry is sent after",
  what: latency.maxMillis === null ? "" : `A call that fails ends after ${millis(latency.maxMillis)} at most.`,
  xAxis: retryAxis(retries),
  yAxis: durationAxis,
  series: [{
    ...lineOf(
      "sent at the latest, from the beginning of the call",
      lookOf(3),
      retries.map((retry) => retry.latestMillis)
    ),
    ...numbers(
      retries.length <= mostNumbers,
      (index) => millis(Number((retries[index]?.latestMillis ?? 0).toPrecision(3)))
    )
  }]
})

const bite = (bitesAt: number) => ({
  markLine: {
    silent: true,
    symbol: "none",
    data: [{ xAxis: bitesAt * 100 }],
    lineStyle: { color: ink.light, width: 1.5, type: [4, 3] },
    label: {
      position: bitesAt > 0.7 ? "insideEndTop" : "insideEndBottom",
      rotate: 0,
      align: bitesAt > 0.6 ? "right" : "left",
      offset: bitesAt > 0.6 ? [-8, 4] : [8, 4],
      color: ink.light,
      fontSize: 11,
      textBorderColor: paper.light,
      textBorderWidth: 3,
      formatter: `the quota bites from ${percent(bitesAt)}`
    }
  }
})

/** What reaches the service, by the share of attempts that fail. */
export const load = ({ load, quota }: Explanation): Panel => {
  const rates = [...load].sort((a, b) => a.failureRate - b.failureRate)
  const bitesAt = quota?.bitesAt ?? null
  const sends = lineOf(
    quota === null ? "attempts per call" : "with the quota",
    lookOf(0),
    rates.map(({ attempts, failureRate }) => [failureRate * 100, attempts])
  )
  const without = lineOf(
    "without a quota",
    { ...reference(0), marker: markers[1] },
    rates.map(({ attemptsWithoutQuota, failureRate }) => [failureRate * 100, attemptsWithoutQuota])
  )
  return {
    title: "Load on the service: attempts per call",
    what: "In the long run, when attempts fail independently.",
    xAxis: {
      ...axisLook,
      type: "value",
      min: 0,
      max: 100,
      name: "attempts that fail",
      nameLocation: "middle",
      nameGap: 26,
      axisLabel: { ...axisLook.axisLabel, formatter: (value: number) => `${value} %` }
    },
    yAxis: {
      ...axisLook,
      type: "value",
      min: 0,
      splitNumber: 4,
      axisLabel: { ...axisLook.axisLabel, formatter: (value: number) => tick("number", value) }
    },
    series: [
      bitesAt === null ? sends : { ...sends, ...bite(bitesAt) },
      ...quota === null ? [] : [{ ...without, z: 3 }]
    ]
  }
}

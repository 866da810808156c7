import { tableWithin } from "../explain/layout.ts"
import type { Backtest, Compared, ComparedBucket, Scenario } from "../Simulator.ts"
import { counted, percent } from "./charts/format.ts"
import { spread } from "./outcome.ts"
import { type Screen, unbounded } from "./screen.ts"
import { duration, plain } from "./text.ts"

const signed = (value: number, unit: string): string => `${value > 0 ? "+" : ""}${(value * 100).toFixed(1)} ${unit}`

type Row = readonly [string, ...Array<string>]

const rowOf = (
  name: string,
  { error, predicted, isInside, measured }: Compared,
  write: (value: number) => string,
  unit = "%"
): Row => [
  name,
  measured === undefined ? "-" : write(measured),
  spread(predicted, write),
  error === undefined ? "-" : signed(error, unit),
  isInside === undefined ? "-" : isInside ? "yes" : "no"
]

const mostRows = 12

/** Some of the buckets, from the first to the last. */
const some = (series: ReadonlyArray<ComparedBucket>): ReadonlyArray<ComparedBucket> => {
  const step = Math.max(1, Math.ceil(series.length / mostRows))
  return series.filter((_, index) => index % step === 0)
}

const perSecond = (value: number): string => counted(Math.round(value))

const recoveryRows = ({ bucketMillis, recoveredMillis, recovery, series }: Backtest): ReadonlyArray<Row> => {
  if (recovery === undefined) return []
  const { predicted, measured } = recovery
  const [name, , mean, error, inside] = rowOf("recovers after", recoveredMillis, duration)
  const unrecovered = `not within ${duration(series.length * bucketMillis)}`
  return [[
    name,
    measured ? duration(recoveredMillis.measured ?? 0) : unrecovered,
    `${mean === "-" ? unrecovered : mean}, ${predicted.runs} of ${predicted.of}`,
    error ?? "-",
    inside ?? "-"
  ]]
}

/** A measured series next to what was predicted, as plain text. */
export const backtestTable = ({ name }: Scenario, found: Backtest, { columns, paint }: Screen = unbounded): string =>
  [
    `${plain(name)}: measured, and predicted with the same calls in ${found.succeeded.predicted?.of ?? 0} runs`,
    "",
    ...tableWithin(columns, {
      heads: ["", "measured", "predicted", "error", "inside"],
      rows: [
        rowOf("succeed", found.succeeded, percent, "points"),
        rowOf("sends/call", found.sendsPerCall, (value) => value.toFixed(2)),
        rowOf("p50", found.p50Millis, duration),
        rowOf("p99", found.p99Millis, duration),
        ...recoveryRows(found)
      ].map(([name, ...cells]) => [
        name,
        ...cells.map((cell) => cell === "yes" ? paint("good", cell) : cell === "no" ? paint("bad", cell) : cell)
      ])
    }),
    "",
    ...tableWithin(columns, {
      heads: ["from", "succeed/s", "predicted", "sent/s", "predicted"],
      rows: some(found.series).map(({ attempts, fromMillis, succeeded }) => [
        duration(fromMillis),
        perSecond(succeeded.measured),
        spread(succeeded.predicted, perSecond),
        perSecond(attempts.measured),
        spread(attempts.predicted, perSecond)
      ])
    }),
    "",
    "predicted: mean (5 to 95 % of the runs); inside: whether the measured value is in that range",
    ...found.recovery === undefined ? [] : ["recovers after: how long after the last outage, and in how many runs"]
  ].join("\n")

import * as DateTime from "effect/DateTime"
import { tableWithin } from "../explain/layout.ts"
import type { Estimate } from "../fit/estimate.ts"
import type { FittedOutage } from "../fit/failures.ts"
import type { Fitted } from "../fit/fitted.ts"
import type { Log } from "../fit/log.ts"
import { untimed } from "../fit/notes.ts"
import type { scenarioOf } from "../fit/scenario.ts"
import { counted, percent } from "./charts/format.ts"
import { duration, plain, quoted } from "./text.ts"

const rate = (value: number): string => `${counted(value < 10 ? Number(value.toPrecision(3)) : Math.round(value))}/s`

const row = (
  name: string,
  { high, low, value }: Estimate,
  write: (value: number) => string,
  basis: string
): readonly [string, ...Array<string>] => [name, write(value), `${write(low)} to ${write(high)}`, basis]

const printed = new Set([0.5, 0.9, 0.99])

const latencyRows = (fitted: Fitted): ReadonlyArray<readonly [string, ...Array<string>]> => {
  const { latency } = fitted
  if (latency === undefined) return [["latency", "unknown", "", untimed(fitted)]]
  return latency.quantiles.filter(({ share }) => printed.has(share)).map((quantile) =>
    row(
      `p${counted(quantile.share * 100)} at low load`,
      quantile,
      duration,
      `${counted(latency.requests)} requests, at ${rate(latency.perSecond)}`
    )
  )
}

const capacityRow = (fitted: Fitted): readonly [string, ...Array<string>] => {
  const { capacity, outages } = fitted
  switch (capacity.kind) {
    case "found":
      return row(
        "capacity",
        capacity.perSecond,
        rate,
        `${counted(capacity.seconds)} s in which ${
          capacity.by === "backlog" ? "all requests waited" : "some were rejected"
        }`
      )
    case "at least":
      return [
        "capacity",
        `at least ${rate(capacity.perSecond)}`,
        "",
        outages.length === 0
          ? "no knee: it was never reached"
          : "cannot be seen: of requests that failed, no log shows the work"
      ]
    case "unknown":
      return ["capacity", "unknown", "", untimed(fitted)]
  }
}

type Row = readonly [string, ...Array<string>]

/** What follows from the others. */
const shapeRows = ({ ceiling, instances, workers }: Fitted): ReadonlyArray<Row> => [
  ...instances === 1 ? [] : [["instances", counted(instances), "", "from the upstream addresses at a time"] as const],
  ...workers === undefined
    ? []
    : [["workers", `${counted(workers)} each`, "", "capacity times what requests take at low load"] as const],
  ...ceiling === undefined ? [] : [
    [
      "let in",
      counted(ceiling.most),
      "",
      `requests in flight while ${ceiling.by === "proxy" ? "more were refused" : "the instances refused more"}`
    ] as const
  ]
]

const retriedRow = ({ retried }: Fitted): readonly [string, ...Array<string>] =>
  retried === undefined
    ? ["retried", "unknown", "", "no attempt numbers or request ids in the log"]
    : row("retried", retried, percent, retried.by === "attempt" ? "from attempt numbers" : "from repeated request ids")

const mostStatuses = 6

/** The findings in a log, with their uncertainty. */
export const fitTable = (fitted: Fitted, columns: number): ReadonlyArray<string> => {
  const { requests, seconds, series } = fitted
  const rates = series.buckets.map((bucket) => bucket.requests * 1000 / series.widthMillis)
  const busiest = rates.reduce((most, one) => Math.max(most, one), 0)
  const rows = [
    row(
      "rate",
      fitted.rate,
      rate,
      `${counted(requests)} requests in ${duration(seconds * 1000)}, up to ${rate(busiest)}`
    ),
    ...latencyRows(fitted),
    row("failed", fitted.failed, percent, "5xx, 429, and clients that disconnected"),
    ...fitted.statuses.slice(0, mostStatuses).map((status) =>
      row(
        status.status === 0 ? "disconnected" : `${status.status}`,
        status,
        percent,
        `${counted(status.count)} requests`
      )
    ),
    retriedRow(fitted),
    capacityRow(fitted),
    ...shapeRows(fitted)
  ]
  return tableWithin(columns, {
    heads: ["", "value", "95 % interval"],
    rows: rows.map(([name, value, between]) => [name, value!, between!]),
    noteHead: "based on",
    notes: rows.map((cells) => cells.at(-1)!)
  })
}

const at = (millis: number): string => DateTime.formatIso(DateTime.makeUnsafe(millis)).replace("T", " ").slice(0, 19)

const outageLine = ({ before, fromMillis, most, toMillis }: FittedOutage): string => {
  const [from, to] = [at(fromMillis), at(toMillis)]
  const day = from.slice(0, 11)
  const length = toMillis - fromMillis
  const unit = length < 600_000 ? 1000 : 60_000
  return `failing from ${from} to ${to.startsWith(day) ? to.slice(day.length) : to} UTC (${
    duration(Math.round(length / unit) * unit)
  }), ${before === undefined ? "" : `${rate(before)} before, `}up to ${rate(most)}`
}

/** The first malformed line, and why. */
export const firstBrokenOf = ({ firstBroken }: Log): string => {
  if (firstBroken === undefined) return "it is too long"
  const { line, why } = firstBroken
  return `${why === "" ? "" : `${plain(why)} in `}${quoted(line)}`
}

/** What the table does not show. */
export const remarksOf = (
  fitted: Fitted,
  made: ReturnType<typeof scenarioOf>,
  log: Log
): ReadonlyArray<string> => {
  const { late, strays } = fitted
  const { fromMillis, scenario } = made
  return [
    ...fitted.outages.map(outageLine),
    `the scenario replays ${scenario.duration} from ${
      DateTime.formatIso(DateTime.makeUnsafe(fromMillis))
    }, the busiest`,
    ...scenario.notes,
    late > 0 && `${counted(late)} requests came more than a minute late: counted, but not for latency and capacity`,
    strays > 0 && `${counted(strays)} requests with a time far from all others were left out`,
    log.broken > 0 && `the first malformed line: ${firstBrokenOf(log)}`
  ].filter((line) => line !== false)
}

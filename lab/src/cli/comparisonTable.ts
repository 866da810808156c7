import { tableWithin } from "../explain/layout.ts"
import { difference, recoversBelow, summarize, type Summary } from "../Simulator.ts"
import { isBounded } from "../simulator/bounds.ts"
import { fleetsOf } from "../simulator/runSummary.ts"
import { counted, percent } from "./charts/format.ts"
import type { Run, Runs } from "./charts/run.ts"
import {
  backTo,
  legend,
  peakOf,
  recovered,
  recovers,
  seedsLine,
  sendsPerCall,
  share,
  spread,
  stateOf
} from "./outcome.ts"
import { type Screen, unbounded } from "./screen.ts"
import { partialLine } from "./simulationTable.ts"
import { sparklines } from "./sparklines.ts"
import { duration, plain } from "./text.ts"

const rowsOf = ({ label, result }: Run): ReadonlyArray<readonly [string, ...Array<string>]> => {
  const fleets = fleetsOf(result)
  return fleets.map((fleet) => {
    const { latency, ...totals } = fleet.totals
    return [
      plain(fleets.length === 1 ? label : `${label}: ${fleet.name}`),
      counted(totals.calls),
      share(result, fleet),
      ...isBounded(result.scenario) ? [recovered(result)] : [],
      sendsPerCall(fleet),
      duration(latency.p50Millis),
      duration(latency.p99Millis),
      peakOf(result, result.services)
    ]
  })
}

const perSecond = (value: number): string => `${counted(Math.round(value))}/s`

const points = (value: number): string => `${value > 0 ? "+" : ""}${(value * 100).toFixed(1)}`
const signed = (value: number): string => `${value > 0 ? "+" : ""}${value.toFixed(2)}`

/** How each policy differs from the first, seed by seed. */
const changesOf = ([first, ...others]: Runs, columns: number): ReadonlyArray<string> => {
  if (others.length === 0) return []
  const rows = others.map(({ label, results }): readonly [string, ...Array<string>] => {
    const { sendsPerCall, succeeded } = difference(first.results, results)
    return [plain(label), spread(succeeded, points), spread(sendsPerCall, signed)]
  })
  return [
    `against ${plain(first.label)}, with the same seeds:`,
    ...tableWithin(columns, { heads: ["policy", "succeed, points", "sends/call"], rows }),
    ""
  ]
}

interface Column {
  readonly head: string
  /** Explains it. */
  readonly what?: string
  readonly of: (run: Run, found: Summary) => string
}

/** The columns, from what decides to what explains it: a narrow screen has only the first ones. */
const columnsOf = ([{ result: { scenario } }, ...others]: Runs, { paint }: Screen): ReadonlyArray<Column> => {
  const all = [scenario, ...others.map(({ result }) => result.scenario)]
  const recovery: Column = {
    head: "recovers",
    what: `runs that get back to ${backTo(scenario)}`,
    of: (_, { recovery }) => paint(stateOf(recovery), recovers(recovery))
  }
  const below: Column = {
    head: "below",
    what: "in theory, it recovers from any outage below this many calls per second",
    of: ({ result }) => belowOf(recoversBelow(result.scenario))
  }
  return [
    { head: "succeed", what: "calls that succeed", of: (_, { succeeded }) => spread(succeeded, percent) },
    ...isBounded(scenario) ? [recovery] : [],
    { head: "sends/call", of: (_, { sendsPerCall }) => spread(sendsPerCall, (value) => value.toFixed(2)) },
    {
      head: "p99",
      what: "latency of the calls of the busiest clients that succeed, retries included",
      of: (_, { p99Millis }) => spread(p99Millis, duration)
    },
    {
      head: "peak load",
      what: "most requests per second at the busiest service",
      of: (_, { peakPerSecond }) => spread(peakPerSecond, perSecond)
    },
    ...all.some((one) => recoversBelow(one) !== undefined) ? [below] : []
  ]
}

/** The summaries of each policy's runs, side by side; and how each differs from the first, seed by seed. */
const rangesTable = (runs: Runs, screen: Screen): string => {
  const [first] = runs
  const columns = columnsOf(runs, screen)
  return [
    ...headOf(runs, screen),
    `${seedsLine(first.results)}; ${writtenFirst}`,
    "",
    ...tableWithin(screen.columns, {
      heads: ["policy", ...columns.map(({ head }) => head)],
      rows: runs.map((run) => {
        const found = summarize(run.results)
        return [plain(run.label), ...columns.map(({ of }) => of(run, found))]
      })
    }),
    "",
    ...changesOf(runs, screen.columns),
    ...columns.flatMap(({ head, what }) => what === undefined ? [] : [`${head}: ${what}`])
  ].join("\n")
}

const writtenFirst = "first as written, then with other policies"

/** The scenario, and how the calls fare over time. */
const headOf = (runs: Runs, screen: Screen): ReadonlyArray<string> => {
  const lines = sparklines(runs, screen)
  return [plain(runs[0].result.scenario.name), "", ...lines, ...lines.length === 0 ? [] : [""]]
}

const belowOf = (bound: number | undefined): string => bound === undefined ? "-" : `${counted(Math.floor(bound))}/s`

/** Policies as plain text, side by side. */
export const comparisonTable = (runs: Runs, screen: Screen = unbounded): string => {
  const [{ result, results }] = runs
  if (results.length > 1) return rangesTable(runs, screen)
  const last = runs[runs.length - 1] ?? runs[0]
  return [
    ...last.result.partial ? [partialLine(last.result, last.label)] : [],
    ...headOf(runs, screen),
    `seed ${result.scenario.seed}; ${writtenFirst}`,
    "",
    ...tableWithin(screen.columns, {
      heads: [
        "policy",
        "calls",
        "succeed",
        ...isBounded(result.scenario) ? ["recovered"] : [],
        "sends/call",
        "p50",
        "p99",
        "peak load"
      ],
      rows: runs.flatMap(rowsOf)
    }),
    "",
    ...legend(result, "busiest")
  ].join("\n")
}

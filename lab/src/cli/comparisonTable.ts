import { difference, recoversBelow, summarize } from "../Simulator.ts"
import { isBounded } from "../simulator/bounds.ts"
import { fleetsOf } from "../simulator/facts.ts"
import { counted, percent } from "./charts/format.ts"
import type { Run, Runs } from "./charts/run.ts"
import { backTo, legend, peakOf, recovered, recovers, seedsLine, sendsPerCall, share, spread } from "./outcome.ts"
import { partialLine } from "./simulationTable.ts"
import { duration, plain, table } from "./text.ts"

const rowsOf = ({ label, result }: Run): ReadonlyArray<readonly [string, ...Array<string>]> => {
  const fleets = fleetsOf(result)
  return fleets.map((fleet) => {
    const { latency, ...totals } = fleet.totals
    return [
      plain(fleets.length === 1 ? label : `${label}: ${fleet.name}`),
      counted(totals.calls),
      share(result, fleet),
      sendsPerCall(fleet),
      duration(latency.p50Millis),
      duration(latency.p99Millis),
      peakOf(result, result.services),
      ...isBounded(result.scenario) ? [recovered(result)] : []
    ]
  })
}

const perSecond = (value: number): string => `${counted(Math.round(value))}/s`

const points = (value: number): string => `${value > 0 ? "+" : ""}${(value * 100).toFixed(1)}`
const signed = (value: number): string => `${value > 0 ? "+" : ""}${value.toFixed(2)}`

/** How each policy differs from the first, seed by seed. */
const changesOf = ([first, ...others]: Runs): ReadonlyArray<string> => {
  if (others.length === 0) return []
  const rows = others.map(({ label, results }): readonly [string, ...Array<string>] => {
    const { sendsPerCall, succeeded } = difference(first.results, results)
    return [plain(label), spread(succeeded, points), spread(sendsPerCall, signed)]
  })
  return [
    `against ${plain(first.label)}, with the same seeds:`,
    ...table(["policy", "succeed, points", "sends/call"], rows),
    ""
  ]
}

interface Column {
  readonly head: string
  /** Explains it. */
  readonly what: string
  readonly of: (run: Run) => string
}

/** What there is to say of a recovery: nothing where nothing bounds the services. */
const recoveryColumns = (runs: Runs): ReadonlyArray<Column> => {
  const hasTheory = runs.some(({ result }) => recoversBelow(result.scenario) !== undefined)
  return [
    ...isBounded(runs[0].result.scenario)
      ? [{
        head: "recovers",
        what: `runs that get back to ${backTo(runs[0].result.scenario)}`,
        of: ({ results }: Run) => recovers(summarize(results).recovery)
      }]
      : [],
    ...hasTheory
      ? [{
        head: "below",
        what: "in theory, it recovers from any outage below this many calls per second",
        of: ({ result }: Run) => belowOf(recoversBelow(result.scenario))
      }]
      : []
  ]
}

/** The summaries of each policy's runs, side by side; and how each differs from the first, seed by seed. */
const rangesTable = (runs: Runs): string => {
  const [first] = runs
  const columns = recoveryColumns(runs)
  return [
    `${plain(first.result.scenario.name)}; first as written, then with other policies`,
    seedsLine(first.results),
    "",
    ...table(
      ["policy", "succeed", "sends/call", "p99", "peak load", ...columns.map(({ head }) => head)],
      runs.map((run) => {
        const { p99Millis, peakPerSecond, sendsPerCall, succeeded } = summarize(run.results)
        return [
          plain(run.label),
          spread(succeeded, percent),
          spread(sendsPerCall, (value) => value.toFixed(2)),
          spread(p99Millis, duration),
          spread(peakPerSecond, perSecond),
          ...columns.map(({ of }) => of(run))
        ]
      })
    ),
    "",
    ...changesOf(runs),
    "succeed: calls that succeed; p99: latency of those of the busiest clients, retries included",
    "peak load: most requests per second at the busiest service",
    ...columns.map(({ head, what }) => `${head}: ${what}`)
  ].join("\n")
}

const belowOf = (bound: number | undefined): string => bound === undefined ? "-" : `${counted(Math.floor(bound))}/s`

/** Policies as plain text, side by side. */
export const comparisonTable = (runs: Runs): string => {
  const [{ result, results }] = runs
  if (results.length > 1) return rangesTable(runs)
  const last = runs[runs.length - 1] ?? runs[0]
  return [
    ...last.result.partial ? [partialLine(last.result, last.label)] : [],
    `${plain(result.scenario.name)}, seed ${result.scenario.seed}; first as written, then with other policies`,
    "",
    ...table(
      [
        "policy",
        "calls",
        "succeed",
        "sends/call",
        "p50",
        "p99",
        "peak load",
        ...isBounded(result.scenario) ? ["recovered"] : []
      ],
      runs.flatMap(rowsOf)
    ),
    "",
    ...legend(result, "busiest")
  ].join("\n")
}

import { difference, recoversBelow, summarize } from "../Simulator.ts"
import { fleetsOf } from "../simulator/facts.ts"
import { counted, percent } from "./charts/format.ts"
import type { Run, Runs } from "./charts/run.ts"
import { legend, peakOf, recovered, recovers, seedsLine, sendsPerCall, share, spread } from "./outcome.ts"
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
      recovered(result)
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

/** The summaries of each policy's runs, side by side; and how each differs from the first, seed by seed. */
const rangesTable = (runs: Runs): string => {
  const [first] = runs
  const { scenario } = first.result
  const bounds = runs.map(({ result }) => recoversBelow(result.scenario))
  const isBounded = bounds.some((bound) => bound !== undefined)
  return [
    `${plain(scenario.name)}; first as written, then with other policies`,
    seedsLine(first.results),
    "",
    ...table(
      ["policy", "succeed", "sends/call", "p99", "peak load", "recovers", ...isBounded ? ["below"] : []],
      runs.map(({ label, results }, index) => {
        const { p99Millis, peakPerSecond, recovery, sendsPerCall, succeeded } = summarize(results)
        return [
          plain(label),
          spread(succeeded, percent),
          spread(sendsPerCall, (value) => value.toFixed(2)),
          spread(p99Millis, duration),
          spread(peakPerSecond, perSecond),
          recovers(recovery),
          ...isBounded ? [belowOf(bounds[index])] : []
        ]
      })
    ),
    "",
    ...changesOf(runs),
    "succeed: calls that succeed; p99: latency of those of the busiest clients, retries included",
    "peak load: most requests per second at the busiest service",
    "recovers: runs that get back to 90 % of the success rate before the outage, and how long after it",
    ...isBounded ? ["below: in theory, it recovers from any outage below this many calls per second"] : []
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
      ["policy", "calls", "succeed", "sends/call", "p50", "p99", "peak load", "recovered"],
      runs.flatMap(rowsOf)
    ),
    "",
    ...legend(result, "busiest")
  ].join("\n")
}

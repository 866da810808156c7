import { fleetsOf } from "./charts/facts.ts"
import { counted } from "./charts/format.ts"
import type { Run, Runs } from "./charts/run.ts"
import { legend, peakOf, sendsPerCall, share, wellAgain } from "./outcome.ts"
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
      wellAgain(result)
    ]
  })
}

/** Several runs of one scenario as plain text, side by side. */
export const comparisonTable = (runs: Runs): string => {
  const [{ result }] = runs
  const last = runs[runs.length - 1] ?? runs[0]
  return [
    ...last.result.partial ? [partialLine(last.result, last.label)] : [],
    `${plain(result.scenario.name)}, seed ${result.scenario.seed}; first as it is written, then with other policies`,
    "",
    ...table(
      ["policy", "calls", "succeed", "sends/call", "p50", "p99", "peak load", "well again"],
      runs.flatMap(rowsOf)
    ),
    "",
    ...legend(result, "busiest")
  ].join("\n")
}

import type { ClientResult, SimulationResult, Tally } from "../Simulator.ts"
import { openOf } from "./charts/facts.ts"
import { counted } from "./charts/format.ts"
import type { Run } from "./charts/run.ts"
import { legend, peakOf, sendsPerCall, share, wellAgain } from "./outcome.ts"
import { duration, plain, table } from "./text.ts"

/** What stands above the tables of a result that is not whole. */
export const partialLine = ({ untilMillis }: SimulationResult, label: string): string =>
  `PARTIAL: stopped after ${duration(untilMillis)} of virtual time, with ${plain(label)}`

const clientRow = (result: SimulationResult) => (client: ClientResult): readonly [string, ...Array<string>] => {
  const { latency, ...totals } = client.totals
  return [
    plain(client.name),
    counted(totals.calls),
    share(result, client),
    sendsPerCall(client),
    duration(latency.p50Millis),
    duration(latency.p90Millis),
    duration(latency.p99Millis),
    duration(latency.maxMillis)
  ]
}

const sum = (tally: Tally<string>): number =>
  Object.values(tally).reduce<number>((total, count) => total + (count ?? 0), 0)

const listed = (tally: Tally<string>): string =>
  Object.entries(tally).map(([name, count]) => `${name} ${counted(count ?? 0)}`).join(", ")

const endings = (client: ClientResult): ReadonlyArray<string> => {
  const { name, policy, totals: { failed, failures, stops } } = client
  const open = openOf([client])
  return [
    `${plain(name)}, policy ${plain(policy)}`,
    ...failed === 0 ? [] : [`  calls failed: ${listed(failures)}`, `  retrying stopped: ${listed(stops) || "-"}`],
    ...open === 0 ? [] : [`  calls not ended: ${counted(open)}`]
  ]
}

/** A result as plain text. */
export const simulationTable = ({ label, result }: Run): string => {
  const { clients, scenario, services, traceHash, untilMillis } = result
  return [
    ...result.partial ? [partialLine(result, label)] : [],
    `${plain(scenario.name)}: ${duration(untilMillis)} of virtual time, seed ${scenario.seed}, trace ${traceHash}`,
    "",
    ...table(["clients", "calls", "succeed", "sends/call", "p50", "p90", "p99", "max"], clients.map(clientRow(result))),
    "",
    ...table(
      ["services", "requests", "answered", "failed", "in vain", "peak load"],
      services.map((service) => {
        const { failures, received, succeeded, wasted } = service.totals
        return [
          plain(service.name),
          counted(received),
          counted(succeeded),
          counted(sum(failures)),
          counted(wasted),
          peakOf(result, [service])
        ]
      })
    ),
    "",
    ...clients.flatMap(endings),
    `well again: ${wellAgain(result)}`,
    "",
    ...legend(result, "each"),
    "in vain: work that ended after its client had given up",
    ...clients.some(({ totals }) => totals.stops.schedule !== undefined)
      ? ["schedule: retries that the retry budget did not let pass"]
      : []
  ].join("\n")
}

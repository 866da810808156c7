import { tableWithin } from "../explain/layout.ts"
import { type ClientResult, type ServiceResult, type SimulationResult, summarize, type Tally } from "../Simulator.ts"
import { isBounded } from "../simulator/bounds.ts"
import { openOf } from "../simulator/runSummary.ts"
import { spreadOf } from "../simulator/spread.ts"
import { counted, percent } from "./charts/format.ts"
import type { Run } from "./charts/run.ts"
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
import { duration, plain } from "./text.ts"

/** The line above the tables of a partial result. */
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
    ...open === 0 ? [] : [`  calls unfinished: ${counted(open)}`]
  ]
}

/** The summary of several runs, as plain text. */
const rangesOf = ({ result: { scenario }, results }: Run, { columns, paint }: Screen): string => {
  const { p50Millis, p99Millis, peakPerSecond, recovery, sendsPerCall, succeeded } = summarize(results)
  const services = scenario.services.map(({ name }, index): readonly [string, ...Array<string>] => {
    const of = (count: (totals: ServiceResult["totals"]) => number) =>
      spread(
        spreadOf(results.map(({ services }) => count(services[index]!.totals))),
        (value) => counted(Math.round(value))
      )
    return [plain(name), of(({ received }) => received), of(({ succeeded }) => succeeded), of(({ wasted }) => wasted)]
  })
  return [
    plain(scenario.name),
    seedsLine(results),
    "",
    ...tableWithin(columns, {
      heads: ["calls", ""],
      rows: [
        ["succeed", spread(succeeded, percent)],
        ["sends/call", spread(sendsPerCall, (value) => value.toFixed(2))],
        ["p50", spread(p50Millis, duration)],
        ["p99", spread(p99Millis, duration)],
        ["peak load", spread(peakPerSecond, (value) => `${counted(Math.round(value))}/s`)],
        ...isBounded(scenario) ? [["recovers", paint(stateOf(recovery), recovers(recovery))] as const] : []
      ]
    }),
    "",
    ...tableWithin(columns, { heads: ["services", "requests", "answered", "wasted"], rows: services }),
    "",
    "p50, p99: of calls that succeed, retries included, of the busiest clients; wasted: work whose client had given up",
    ...isBounded(scenario)
      ? [`recovers: gets back to ${backTo(scenario)}`]
      : [],
    "--runs 1 shows one run in full"
  ].join("\n")
}

/** Runs as plain text. */
export const simulationTable = (run: Run, screen: Screen = unbounded): string =>
  run.results.length > 1 ? rangesOf(run, screen) : oneOf(run, screen)

const oneOf = ({ label, result }: Run, { columns }: Screen): string => {
  const { clients, scenario, services, traceHash, untilMillis } = result
  return [
    ...result.partial ? [partialLine(result, label)] : [],
    `${plain(scenario.name)}: ${duration(untilMillis)} of virtual time, seed ${scenario.seed}, trace ${traceHash}`,
    "",
    ...tableWithin(columns, {
      heads: ["clients", "calls", "succeed", "sends/call", "p50", "p90", "p99", "max"],
      rows: clients.map(clientRow(result))
    }),
    "",
    ...tableWithin(columns, {
      heads: ["services", "requests", "answered", "failed", "wasted", "peak load"],
      rows: services.map((service) => {
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
    }),
    "",
    ...clients.flatMap(endings),
    ...isBounded(scenario) ? [`recovered: ${recovered(result)}`] : [],
    seedsLine([result]),
    "",
    ...legend(result, "each"),
    "wasted: work finished after its client had given up",
    ...clients.some(({ totals }) => totals.stops["quota-exhausted"] !== undefined)
      ? ["quota-exhausted: retries that the quota or budget denied"]
      : []
  ].join("\n")
}

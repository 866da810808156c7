import type { ClientResult, Tally } from "../../Simulator.ts"
import { fleetsOf } from "../../simulator/facts.ts"
import { cell, counted, percent } from "./format.ts"
import { type Cell, type Html, html, name, table } from "./html.ts"
import type { Run } from "./run.ts"

/** Rows of a table: the busiest. */
const mostRows = 60

/** A client or a service, and the run it is of. */
interface Row<A> {
  readonly run: Run
  readonly of: A
}

const rowsOf = <A>(
  runs: ReadonlyArray<Run>,
  list: (run: Run) => ReadonlyArray<A>,
  size: (of: A) => number
): { readonly rows: ReadonlyArray<Row<A>>; readonly left: number } => {
  const all = runs.flatMap((run) => list(run).map((of) => ({ run, of })))
  if (all.length <= mostRows) return { rows: all, left: 0 }
  const largest = new Set([...all].sort((a, b) => size(b.of) - size(a.of)).slice(0, mostRows))
  return { rows: all.filter((row) => largest.has(row)), left: all.length - mostRows }
}

const leftOut = (left: number): string => left === 0 ? "" : ` The ${mostRows} busiest; ${counted(left)} are left out.`

/** The first cells of a row: what it is of, and with several runs the run. */
const named = (several: boolean, run: Run, of: string): ReadonlyArray<Cell> =>
  several ? [name(of), name(run.label)] : [name(of)]

const ratio = (a: number, b: number): string => b === 0 ? "\u2013" : (a / b).toFixed(2)

const clientsOf = ({ result }: Run) => result.clients

const clientCells = ({ totals }: ClientResult): ReadonlyArray<Cell> => {
  const ended = totals.succeeded + totals.failed
  return [
    counted(totals.calls),
    ended === 0 ? "\u2013" : percent(totals.succeeded / ended),
    ratio(totals.attempts, totals.calls),
    ...([totals.latency.p50Millis, totals.latency.p90Millis, totals.latency.p99Millis, totals.latency.maxMillis]
      .map((value) => cell("duration", value)))
  ]
}

const clients = (runs: ReadonlyArray<Run>): Html => {
  const several = runs.length > 1
  const { left, rows } = rowsOf(runs, clientsOf, ({ totals }) => totals.attempts)
  // Where there is one service, and where runs are named after the policy of all clients, nothing more is to say.
  const targets = runs[0]!.result.services.length > 1
  const policies = !several || targets
  return table({
    caption: `Clients. Latency is that of calls that succeeded.${leftOut(left)}`,
    head: [
      "client",
      ...several ? ["run"] : [],
      ...targets ? ["calls to"] : [],
      ...policies ? ["policy"] : [],
      "calls",
      "succeeded",
      "attempts per call",
      "p50",
      "p90",
      "p99",
      "longest"
    ],
    rows: rows.map(({ of, run }) => [
      ...named(several, run, of.name),
      ...targets ? [name(of.to)] : [],
      ...policies ? [name(of.policy)] : [],
      ...clientCells(of)
    ])
  })
}

const inAll = (tally: Tally<string>): number =>
  Object.values(tally).reduce<number>((sum, count) => sum + (count ?? 0), 0)

const services = (runs: ReadonlyArray<Run>): Html => {
  const several = runs.length > 1
  const { left, rows } = rowsOf(runs, ({ result }) => result.services, ({ totals }) => totals.received)
  return table({
    caption: `Services. Wasted is work that was finished after its client had given up.${leftOut(left)}`,
    head: ["service", ...several ? ["run"] : [], "requests", "per call", "answered well", "failed", "wasted"],
    rows: rows.map(({ of: { name: service, totals }, run }) => [
      ...named(several, run, service),
      counted(totals.received),
      ratio(totals.received, fleetsOf(run.result).reduce((sum, fleet) => sum + fleet.totals.calls, 0)),
      counted(totals.succeeded),
      counted(inAll(totals.failures)),
      counted(totals.wasted)
    ])
  })
}

/** What is tallied of clients: a column for each key that ever happened. */
const tallies = (
  runs: ReadonlyArray<Run>,
  caption: string,
  tally: (of: ClientResult) => Tally<string>
): ReadonlyArray<Html> => {
  const several = runs.length > 1
  const { left, rows } = rowsOf(runs, clientsOf, (of) => inAll(tally(of)))
  const keys = [...new Set(rows.flatMap(({ of }) => Object.keys(tally(of))))]
  const some = rows.filter(({ of }) => inAll(tally(of)) > 0)
  if (some.length === 0) return []
  return [table({
    caption: `${caption}${leftOut(left)}`,
    head: ["client", ...several ? ["run"] : [], ...keys],
    rows: some.map(({ of, run }) => {
      const counts = new Map(Object.entries(tally(of)))
      return [...named(several, run, of.name), ...keys.map((key) => counted(counts.get(key) ?? 0))]
    })
  })]
}

/** All totals. */
export const tables = (runs: ReadonlyArray<Run>): Html =>
  html`${clients(runs)}${services(runs)}${
    tallies(runs, "Attempts that failed, by what they failed with.", ({ totals }) => totals.attemptFailures)
  }${tallies(runs, "Calls that failed, by the failure of their last attempt.", ({ totals }) => totals.failures)}${
    tallies(runs, "Calls that were not retried any more, by the reason.", ({ totals }) => totals.stops)
  }`

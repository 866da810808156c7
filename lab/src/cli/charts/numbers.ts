import type { ClientResult, ServiceResult, SimulationResult, Tally } from "../../Simulator.ts"
import { fleetsOf } from "../../simulator/runSummary.ts"
import { spreadOf } from "../../simulator/spread.ts"
import { cell, counted, rounded, share } from "./format.ts"
import { type Html, html, name } from "./html.ts"
import { figure } from "./rankTable.ts"
import type { Run, Runs } from "./run.ts"

/** How many clients and services the table shows: the busiest. */
const mostParts = 12

/** A number of a run; `null` where it has none. */
type Read = (result: SimulationResult) => number | null

interface Row {
  readonly label: string
  readonly read: Read
  readonly write: (value: number) => string
}

const ratio = (a: number, b: number): number | null => b === 0 ? null : a / b
const two = (value: number): string => value.toFixed(2)
const long = (value: number): string => cell("duration", value)

const inAll = (tally: Tally<string>): number =>
  Object.values(tally).reduce<number>((sum, count) => sum + (count ?? 0), 0)

/** A figure of a run that has it. */
const of = <A extends { readonly name: string }>(
  list: (result: SimulationResult) => ReadonlyArray<A>,
  wanted: string,
  read: (one: A, result: SimulationResult) => number | null
): Read =>
(result) => {
  const one = list(result).find((one) => one.name === wanted)
  return one === undefined ? null : read(one, result)
}

/** A row for each key of a tally that ever happened. */
const tallied = (
  runs: Runs,
  client: string,
  words: string,
  tally: (of: ClientResult["totals"]) => Tally<string>
): ReadonlyArray<Row> => {
  const keys = new Set(
    runs.flatMap(({ results }) =>
      results.flatMap(({ clients }) =>
        clients.filter((one) => one.name === client).flatMap(({ totals }) => Object.keys(tally(totals)))
      )
    )
  )
  return [...keys].sort().map((key) => ({
    label: `${words} ${key}`,
    read: of(({ clients }) => clients, client, ({ totals }) => new Map(Object.entries(tally(totals))).get(key) ?? 0),
    write: rounded
  }))
}

const clientRows = (runs: Runs, client: string): ReadonlyArray<Row> => {
  const row = (label: string, write: Row["write"], read: (totals: ClientResult["totals"]) => number | null): Row => ({
    label,
    write,
    read: of(({ clients }) => clients, client, ({ totals }) => read(totals))
  })
  return [
    row("calls", rounded, ({ calls }) => calls),
    row("of those that finished, succeeded", share, ({ failed, succeeded }) => ratio(succeeded, succeeded + failed)),
    row("requests per call", two, ({ attempts, calls }) => ratio(attempts, calls)),
    row("p50 of calls that succeeded", long, ({ latency }) => latency.p50Millis),
    row("p90", long, ({ latency }) => latency.p90Millis),
    row("p99", long, ({ latency }) => latency.p99Millis),
    row("longest", long, ({ latency }) => latency.maxMillis),
    ...tallied(runs, client, "requests that failed:", ({ attemptFailures }) => attemptFailures),
    ...tallied(runs, client, "calls that finally failed:", ({ failures }) => failures),
    ...tallied(runs, client, "calls no longer retried:", ({ stops }) => stops)
  ]
}

const serviceRows = (service: string): ReadonlyArray<Row> => {
  const row = (
    label: string,
    write: Row["write"],
    read: (totals: ServiceResult["totals"], result: SimulationResult) => number | null
  ): Row => ({ label, write, read: of(({ services }) => services, service, (one, result) => read(one.totals, result)) })
  return [
    row("requests", rounded, ({ received }) => received),
    row(
      "per call of all fleets",
      two,
      ({ received }, result) => ratio(received, fleetsOf(result).reduce((sum, { totals }) => sum + totals.calls, 0))
    ),
    row("succeeded", rounded, ({ succeeded }) => succeeded),
    row("failed", rounded, ({ failures }) => inAll(failures)),
    row("wasted: finished after the client gave up", rounded, ({ wasted }) => wasted)
  ]
}

const cells = (runs: Runs, { read, write }: Row): ReadonlyArray<Html> =>
  runs.map(({ results }: Run) => html`<td>${figure(spreadOf(results.map(read)), write)}</td>`)

const group = (runs: Runs, heading: Html, rows: ReadonlyArray<Row>): Html =>
  html`<tbody><tr><th scope="rowgroup" colspan="${runs.length + 1}">${heading}</th></tr>
${
    rows.map((row) =>
      html`<tr><th scope="row">${row.label}</th>${cells(runs, row)}</tr>
`
    )
  }</tbody>`

const busiest = <A>(list: ReadonlyArray<A>, size: (one: A) => number): ReadonlyArray<A> =>
  list.length <= mostParts ? list : [...list].sort((a, b) => size(b) - size(a)).slice(0, mostParts)

const leftOut = (count: number, what: string): string =>
  count <= mostParts ? "" : ` Of ${counted(count)} ${what} the ${mostParts} busiest.`

/** All totals in one table: a group of rows for each subject, a column for each policy. */
export const numbers = (runs: Runs): Html => {
  const { clients, services } = runs[0].result
  const caption = `${runs[0].results.length === 1 ? "One run" : "Means of all runs, and from 5 to 95 % of them"}.${
    leftOut(clients.length, "clients")
  }${leftOut(services.length, "services")}`
  return html`<div class="scroll" role="region" tabindex="0" aria-label="All numbers"><table class="all"><caption>${caption}</caption>
<thead><tr><th scope="col">all in all</th>${
    runs.map(({ label, result }) => html`<th scope="col">${name(label)}${result.partial ? " (partial)" : ""}</th>`)
  }</tr></thead>
${
    busiest(clients, ({ totals }) => totals.attempts).map((client) =>
      group(runs, html`${name(client.name)}, calls to ${name(client.to)}`, clientRows(runs, client.name))
    )
  }${
    busiest(services, ({ totals }) => totals.received).map((service) =>
      group(runs, html`${name(service.name)}, the service`, serviceRows(service.name))
    )
  }</table></div>
`
}

import type * as Fleet from "./Fleet.ts"

/** What is told of a fleet. Shares and ratios are `NaN` before there is anything to divide by. */
export interface Figures {
  readonly name: string
  readonly calls: number
  readonly inFlight: number
  /** The share of the calls ended that succeeded. */
  readonly succeeded: number
  readonly attemptsPerCall: number
  /** The requests that came to the server beyond one per call, as a share of the calls. */
  readonly extraLoad: number
  /** Latencies of the calls that succeeded, in seconds. */
  readonly p50: number
  readonly p99: number
  /** Of the retry quota, if the fleet has one. */
  readonly balance: number | undefined
  /** Calls that the quota refused another attempt. */
  readonly refused: number | undefined
  readonly fillRate: number | undefined
}

/** The nearest-rank percentile of sorted values. */
export const percentile = (sorted: ReadonlyArray<number>, share: number): number =>
  sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? NaN

/** The figures of a fleet whose service has had so many requests. */
export const figures = (name: string, tally: Fleet.Tally, requests: number): Figures => {
  const latencies = [...tally.latencies].sort((a, b) => a - b)
  const ended = latencies.length + tally.failed
  return {
    name,
    calls: tally.calls,
    inFlight: tally.calls - ended,
    succeeded: latencies.length / ended,
    attemptsPerCall: tally.attempts / tally.calls,
    // An interrupted run has calls that wait for their first send.
    extraLoad: Math.max(0, requests / tally.calls - 1),
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    balance: tally.balance,
    refused: tally.balance === undefined ? undefined : tally.refused,
    fillRate: tally.fillRate
  }
}

const unless = (value: number | undefined, format: (value: number) => string): string =>
  value === undefined || Number.isNaN(value) ? "-" : format(value)

const share = (value: number): string => unless(value, (value) => `${(value * 100).toFixed(1)} %`)
const extra = (value: number): string => unless(value, (value) => `+${(value * 100).toFixed(0)} %`)
const ratio = (value: number): string => unless(value, (value) => value.toFixed(2))
const millis = (seconds: number): string => unless(seconds, (seconds) => `${(seconds * 1000).toFixed(0)} ms`)
const count = (value: number | undefined): string => unless(value, (value) => value.toFixed(0))
const rate = (value: number | undefined): string => unless(value, (value) => `${value.toFixed(1)}/s`)

/** Lines of equally wide cells, the first of each on the left, the others on the right. */
const aligned = (rows: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  return rows.map((row) =>
    row.map((cell, column) => column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!)).join("  ")
  )
}

/** The figures while the fleets run. */
export const live = (fleets: ReadonlyArray<Figures>): ReadonlyArray<string> =>
  aligned([
    ["fleet", "calls", "in flight", "succeeded", "attempts/call", "balance", "fill rate"],
    ...fleets.map((fleet) => [
      fleet.name,
      count(fleet.calls),
      count(fleet.inFlight),
      share(fleet.succeeded),
      ratio(fleet.attemptsPerCall),
      count(fleet.balance),
      rate(fleet.fillRate)
    ])
  ])

/** The figures while the fleets run, in one line. */
export const liveLine = (fleets: ReadonlyArray<Figures>): string =>
  fleets.map((fleet) =>
    [
      `${fleet.name} ${share(fleet.succeeded)} x${ratio(fleet.attemptsPerCall)}`,
      `${count(fleet.inFlight)} in flight`,
      ...fleet.balance === undefined ? [] : [`balance ${count(fleet.balance)}`]
    ].join(", ")
  ).join(" | ")

/** The table at the end. */
export const table = (fleets: ReadonlyArray<Figures>): ReadonlyArray<string> => {
  const [head, ...body] = aligned([
    ["fleet", "calls", "succeeded", "attempts/call", "extra load", "p50", "p99", "balance", "refused"],
    ...fleets.map((fleet) => [
      fleet.name,
      count(fleet.calls),
      share(fleet.succeeded),
      ratio(fleet.attemptsPerCall),
      extra(fleet.extraLoad),
      millis(fleet.p50),
      millis(fleet.p99),
      count(fleet.balance),
      count(fleet.refused)
    ])
  ])
  return [head!, "-".repeat(head!.length), ...body]
}

const listed = (items: ReadonlyArray<string>): string =>
  items.length < 2 ? items.join() : `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`

/** What the table shows, in one sentence. */
export const sentence = (fleets: ReadonlyArray<Figures>): string => {
  const [heaviest] = fleets
    .filter((fleet) => !Number.isNaN(fleet.succeeded))
    .sort((a, b) => b.extraLoad - a.extraLoad)
  if (heaviest === undefined) return "No call has ended, so the table shows nothing."
  const others = fleets
    .filter((fleet) => fleet !== heaviest)
    .map((fleet) => `${share(fleet.succeeded)} at ${extra(fleet.extraLoad)} with ${fleet.name}`)
  const refusals = fleets
    .filter(({ refused }) => refused !== undefined && refused > 0)
    .map((fleet) => `${count(fleet.refused)} calls of ${fleet.name}`)
  const clauses = [
    `${heaviest.name} loaded its server most, ${extra(heaviest.extraLoad)}, ` +
    `and ${share(heaviest.succeeded)} of its calls succeeded`,
    ...others.length === 0 ? [] : [`it was ${listed(others)}`],
    ...refusals.length === 0 ? [] : [`a retry quota refused ${listed(refusals)} another attempt`]
  ]
  return `${clauses.join("; ")}.`
}

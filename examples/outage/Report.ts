import type * as Fleet from "./Fleet.ts"

/** The figures of a fleet. Shares and ratios are `NaN` while there is nothing to divide by. */
export interface Figures {
  readonly name: string
  readonly calls: number
  readonly inFlight: number
  /** The share of finished calls that succeeded. */
  readonly succeeded: number
  readonly attemptsPerCall: number
  /** The requests to the server beyond one per call, as a share of the calls. */
  readonly extraLoad: number
  /** Latencies of the calls that succeeded, in seconds. */
  readonly p50: number
  readonly p99: number
  /** The balance of the retry quota, if the fleet has one. */
  readonly balance: number | undefined
  /** Calls whose next attempt the quota refused. */
  readonly refused: number | undefined
  readonly fillRate: number | undefined
}

/** The nearest-rank percentile of sorted values. */
export const percentile = (sorted: ReadonlyArray<number>, share: number): number =>
  sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? NaN

/** The figures of a fleet whose service received this many requests. */
export const figures = (name: string, tally: Fleet.Tally, requests: number): Figures => {
  const latencies = [...tally.latencies].sort((a, b) => a - b)
  const ended = latencies.length + tally.failed
  return {
    name,
    calls: tally.calls,
    inFlight: tally.calls - ended,
    succeeded: latencies.length / ended,
    attemptsPerCall: tally.attempts / tally.calls,
    // An interrupted run has calls still waiting for their first send.
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
const ratio = (value: number): string => unless(value, (value) => value.toFixed(2))
const millis = (seconds: number): string => unless(seconds, (seconds) => `${(seconds * 1000).toFixed(0)} ms`)
const count = (value: number | undefined): string => unless(value, (value) => value.toFixed(0))
const rate = (value: number | undefined): string => unless(value, (value) => `${value.toFixed(1)}/s`)

/** Aligned lines, the first cell of each left, the others right. */
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

/** The figures while the fleets run, in words: a line of at most 80 columns for each fleet. */
export const liveLines = (fleets: ReadonlyArray<Figures>): ReadonlyArray<string> =>
  fleets.map(({ attemptsPerCall, inFlight, name, succeeded }) =>
    `  ${name}: ${Number.isNaN(succeeded) ? "no call has ended" : `${share(succeeded)} of calls succeed`}, ${
      ratio(attemptsPerCall)
    } requests per call, ${count(inFlight)} open`
  )

/** The table at the end, in at most 80 columns, and what its columns are. */
export const table = (fleets: ReadonlyArray<Figures>): ReadonlyArray<string> => {
  const [head, ...body] = aligned([
    ["fleet", "calls", "succeed", "requests/call", "p50", "p99", "refused"],
    ...fleets.map((fleet) => [
      fleet.name,
      count(fleet.calls),
      share(fleet.succeeded),
      ratio(1 + fleet.extraLoad),
      millis(fleet.p50),
      millis(fleet.p99),
      count(fleet.refused)
    ])
  ])
  return [
    head!,
    "-".repeat(head!.length),
    ...body,
    "",
    "requests/call: what reaches the server; p50, p99: of calls that succeed",
    "refused: calls whose retry quota refused another retry"
  ]
}

/** Timers later than this say that others use the machine. */
const lateMillis = 50

/** A warning where the machine was too busy: the 99th percentile of how late timers were, in milliseconds. */
export const busy = (late: number): ReadonlyArray<string> =>
  late <= lateMillis ? [] : [
    "",
    `This machine was busy: one timer in a hundred was ${late.toFixed(0)} ms late or more.`,
    "So these figures mean little: run it again while nothing else runs."
  ]

const most = (fleets: ReadonlyArray<Figures>, of: (fleet: Figures) => number): Figures | undefined =>
  fleets.filter(({ succeeded }) => !Number.isNaN(succeeded)).sort((a, b) => of(b) - of(a))[0]

/** The result of the table in one sentence, on lines of at most 80 columns. */
export const sentence = (fleets: ReadonlyArray<Figures>): ReadonlyArray<string> => {
  const best = most(fleets, ({ succeeded }) => succeeded)
  const heaviest = most(fleets, ({ extraLoad }) => extraLoad)
  if (best === undefined || heaviest === undefined) return ["No call has ended, so the table shows nothing."]
  const [well, much] = [best, heaviest].map(({ extraLoad, succeeded }) => ({
    share: share(succeeded),
    requests: ratio(1 + extraLoad)
  }))
  const first = `Most calls succeed with ${best.name}: ${well!.share} at ${well!.requests} requests per call`
  return best === heaviest
    ? [`${first}.`]
    : [`${first};`, `${heaviest.name} sends ${much!.requests}, and ${much!.share} succeed.`]
}

import type * as Fleet from "./Fleet.ts"

/**
 * The figures of a fleet. Shares and ratios are `NaN` while there is
 * nothing to divide by.
 */
export interface Figures {
  readonly name: string
  readonly calls: number
  readonly inFlight: number
  /** The share of finished calls that succeeded. */
  readonly succeeded: number
  /**
   * Requests that reached the server, per call: below 1 where calls are
   * refused before their first request.
   */
  readonly requestsPerCall: number
  /** Latencies of the calls that succeeded, in seconds. */
  readonly p50: number
  readonly p99: number
  /** The balance of the retry quota, if the fleet has one. */
  readonly balance: number | undefined
  /** Calls whose next attempt the quota refused. */
  readonly refused: number | undefined
  readonly fillRate: number | undefined
  /** The share of the answers of the last seconds that are good. */
  readonly recent: number
  /** Requests per call in the last seconds. */
  readonly recentRequests: number
  /** The same share for each of the last 30 seconds. */
  readonly history: ReadonlyArray<number>
}

/** What has just happened shows a recovery, sums do not. */
const recentSeconds = 5
const historySeconds = 30

/** The nearest-rank percentile of sorted values. */
export const percentile = (
  sorted: ReadonlyArray<number>,
  share: number
): number =>
  sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? NaN

/** The figures of the last seconds of a fleet. */
const lately = ({ series }: Fleet.Tally) => {
  const last = series.slice(-recentSeconds)
  const sum = (event: keyof Fleet.Second) =>
    last.reduce((total, second) => total + second[event], 0)
  const good = sum("succeeded")
  return {
    recent: good / (good + sum("failed")),
    recentRequests: sum("attempts") / sum("calls"),
    history: series.slice(-historySeconds).map((second) =>
      second.succeeded / (second.succeeded + second.failed)
    )
  }
}

/** The figures of a fleet whose service received this many requests. */
export const figures = (
  name: string,
  tally: Fleet.Tally,
  requests: number
): Figures => {
  const latencies = [...tally.latencies].sort((a, b) => a - b)
  const ended = latencies.length + tally.failed
  return {
    name,
    calls: tally.calls,
    inFlight: tally.calls - ended,
    succeeded: latencies.length / ended,
    requestsPerCall: requests / tally.calls,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    balance: tally.balance,
    refused: tally.balance === undefined ? undefined : tally.refused,
    fillRate: tally.fillRate,
    ...lately(tally)
  }
}

const unless = (
  value: number | undefined,
  format: (value: number) => string
): string =>
  value === undefined || Number.isNaN(value) ? "-" : format(value)

const share = (value: number): string =>
  unless(value, (value) => `${(value * 100).toFixed(1)} %`)
const ratio = (value: number): string =>
  unless(value, (value) => value.toFixed(2))
const millis = (seconds: number): string =>
  unless(seconds, (seconds) => `${(seconds * 1000).toFixed(0)} ms`)
const count = (value: number | undefined): string =>
  unless(value, (value) => value.toFixed(0))
const bars = "▁▂▃▄▅▆▇█"

/** A bar for each second, as high as its share. */
const sparkline = (shares: ReadonlyArray<number>): string =>
  shares.map((share) =>
    Number.isNaN(share)
      ? " "
      : bars[Math.min(7, Math.floor(share * bars.length))]!
  ).join("").padEnd(historySeconds)

/** Aligned lines, the first cell of each left, the others right. */
const aligned = (
  rows: ReadonlyArray<ReadonlyArray<string>>
): ReadonlyArray<string> => {
  const widths = rows[0]!.map((_, column) =>
    Math.max(...rows.map((row) => row[column]!.length))
  )
  return rows.map((row) =>
    row.map((cell, column) =>
      column === 0
        ? cell.padEnd(widths[0]!)
        : cell.padStart(widths[column]!)
    ).join("  ")
  )
}

/**
 * What the policies of the fleets do, on lines of at most 80 columns.
 */
export const abouts = (
  fleets: ReadonlyArray<Pick<Fleet.Fleet, "name" | "about">>
): ReadonlyArray<string> =>
  fleets.map(({ about, name }) => `  ${name}: ${about}`)

/** The last seconds, while the fleets run, in at most 80 columns. */
export const live = (
  fleets: ReadonlyArray<Figures>
): ReadonlyArray<string> =>
  aligned([
    [
      "fleet",
      "succeed",
      "requests/call",
      "open",
      "succeed, the last 30 s".padEnd(historySeconds)
    ],
    ...fleets.map((fleet) => [
      fleet.name,
      share(fleet.recent),
      ratio(fleet.recentRequests),
      count(fleet.inFlight),
      sparkline(fleet.history)
    ])
  ])

/**
 * The last seconds, while the fleets run, in words: a line of at most
 * 80 columns for each fleet.
 */
export const liveLines = (
  fleets: ReadonlyArray<Figures>
): ReadonlyArray<string> =>
  fleets.map(({ inFlight, name, recent, recentRequests }) =>
    `  ${name}: ${
      Number.isNaN(recent)
        ? "no call has ended"
        : `${share(recent)} of calls succeed`
    }, ${ratio(recentRequests)} requests per call, ${
      count(inFlight)
    } open`
  )

/**
 * The table at the end, in at most 80 columns, and what its columns
 * are.
 */
export const table = (
  fleets: ReadonlyArray<Figures>
): ReadonlyArray<string> => {
  const [head, ...body] = aligned([
    [
      "fleet",
      "calls",
      "succeed",
      "requests/call",
      "p50",
      "p99",
      "refused"
    ],
    ...fleets.map((fleet) => [
      fleet.name,
      count(fleet.calls),
      share(fleet.succeeded),
      ratio(fleet.requestsPerCall),
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
    "requests/call: requests that reach the server; "
    + "p50, p99: of calls that succeed",
    "refused: calls that the retry quota did not let retry again"
  ]
}

/** Later timers mean that other programs use the machine. */
const lateMillis = 50

const most = (
  fleets: ReadonlyArray<Figures>,
  of: (fleet: Figures) => number
): Figures | undefined =>
  fleets.filter(({ succeeded }) => !Number.isNaN(succeeded)).sort((
    a,
    b
  ) => of(b) - of(a))[0]

/**
 * The result of the table in one sentence, on lines of at most 80
 * columns.
 */
const sentence = (
  fleets: ReadonlyArray<Figures>
): ReadonlyArray<string> => {
  const best = most(fleets, ({ succeeded }) => succeeded)
  const heaviest = most(
    fleets,
    ({ requestsPerCall }) => requestsPerCall
  )
  if (best === undefined || heaviest === undefined) {
    return ["No call has ended, so the table shows nothing."]
  }
  const [well, much] = [best, heaviest].map((
    { requestsPerCall, succeeded }
  ) => ({
    share: share(succeeded),
    requests: ratio(requestsPerCall)
  }))
  const first = `Most calls succeed with ${best.name}: ${
    well!.share
  } at ${well!.requests} requests per call`
  return best === heaviest
    ? [`${first}.`]
    : [
      `${first};`,
      `${heaviest.name} sends ${much!.requests}, and ${
        much!.share
      } succeed.`
    ]
}

/**
 * The result, or why there is none: `late` is the 99th percentile of
 * how late timers were, in milliseconds.
 */
export const verdict = (
  fleets: ReadonlyArray<Figures>,
  late: number
): ReadonlyArray<string> =>
  late <= lateMillis ? sentence(fleets) : [
    "No verdict: this machine was too busy, "
    + "so the figures above mean little.",
    `One timer in a hundred was ${late.toFixed(0)} ms late or more.`,
    "Run it again while nothing else runs."
  ]

const whole = (share: number): string => (share * 100).toFixed(0)

/**
 * What one remembers, in a line of at most 80 columns: whether the
 * fleet that sends most did worse than the one that does not retry,
 * which is the first. Nothing on a busy machine.
 */
export const lesson = (
  fleets: ReadonlyArray<Figures>,
  late: number
): ReadonlyArray<string> => {
  const [none] = fleets
  const heaviest = most(
    fleets,
    ({ requestsPerCall }) => requestsPerCall
  )
  if (
    late > lateMillis || none === undefined ||
    heaviest === undefined || !(heaviest.succeeded < none.succeeded)
  ) return []
  const name = heaviest.name[0]!.toUpperCase() + heaviest.name.slice(1)
  return [
    `${name} made it worse than ${none.name}: ${
      whole(heaviest.succeeded)
    } against ${whole(none.succeeded)} % of calls succeed.`
  ]
}

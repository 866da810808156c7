import { aligned, tableWithin, within } from "./layout.ts"
import type { End, Explanation, Retry, Spread } from "./model.ts"

const trimmed = (value: number, digits: number): string => `${Number(value.toFixed(digits))}`

/** A duration in the unit that suits it: `430 ms`, `1.2 s`, `5 min`. */
export const millis = (value: number | null): string => {
  if (value === null) return "no bound"
  if (value < 1000) return `${trimmed(value, 3)} ms`
  if (value < 120_000) return `${trimmed(value / 1000, 3)} s`
  if (value < 7_200_000 && value !== 3_600_000) return `${trimmed(value / 60_000, 2)} min`
  if (value < 172_800_000) return `${trimmed(value / 3_600_000, 2)} h`
  return `${trimmed(value / 86_400_000, 2)} d`
}

/** A sampled figure: its two significant digits, marked as sampled. */
export const sampled = (value: number, write: (value: number) => string): string =>
  `~${write(Number(value.toPrecision(2)))}`

/** A share in percent. */
export const percent = (share: number): string => {
  if (share > 0 && share < 0.001) return "< 0.1 %"
  return share < 1 && share > 0.999 ? "> 99.9 %" : `${trimmed(share * 100, 1)} %`
}

const factor = (value: number | null): string => value === null ? "no bound" : value.toFixed(2)

/** One number if all classes cost the same, otherwise one each; if none is retried, the cost of the error itself. */
const costs = ({ cost, costs: { throttling, timeout, transient } }: Retry): string => {
  if (transient === timeout && timeout === throttling) return `${transient ?? cost}`
  return [transient, timeout, throttling].map((cost) => cost === null ? "-" : `${cost}`).join("/")
}

const sameForAll = (retries: ReadonlyArray<Retry>): boolean =>
  retries.every(({ costs: { throttling, timeout, transient } }) => transient === timeout && timeout === throttling)

/** A share of the calls, which is that of samples unless it is all or none. */
const part = (share: number): string => share === 0 || share === 1 ? percent(share) : sampled(share, percent)

const endings = (ends: ReadonlyArray<End>): string =>
  ends.length === 0 ? "-" : ends.map(({ reason, share }) => `${reason} ${part(share)}`).join(", ")

const retriesTable = ({ quota, retries }: Explanation, columns: number): ReadonlyArray<string> => {
  const paid = quota !== null
  const head = sameForAll(retries) ? "tokens" : "tokens a/b/c"
  return tableWithin(columns, {
    heads: ["retry", "min", "p50", "p99", "max", ...paid ? [head, "left"] : [], "sent by", "made"],
    rows: retries.map((row) => [
      `${row.retry}`,
      millis(row.delay.minMillis),
      delayOf(row, row.delay.p50Millis),
      delayOf(row, row.delay.p99Millis),
      millis(row.delay.maxMillis),
      ...paid ? [costs(row), `${trimmed(row.balance ?? 0, 2)}`] : [],
      millis(row.latestMillis),
      part(row.share)
    ]),
    noteHead: "then ends",
    notes: retries.map(({ ends }) => endings(ends))
  })
}

const delayOf = ({ delay: { exact } }: Retry, value: number | null): string =>
  value === null ? "-" : exact ? millis(value) : sampled(value, millis)

const loadTable = ({ load, quota }: Explanation): ReadonlyArray<string> =>
  aligned([
    ["attempts fail", ...quota === null ? [] : ["without quota"], "sends per call", "calls succeed"],
    ...load.map(({ attempts, attemptsWithoutQuota, failureRate, success }) => [
      percent(failureRate),
      ...quota === null ? [] : [factor(attemptsWithoutQuota)],
      factor(attempts),
      percent(success)
    ])
  ])

/** How many attempts there may be. */
export const limit = (maxAttempts: number | null): string =>
  maxAttempts === null ? "no attempt limit" : `at most ${maxAttempts} ${maxAttempts === 1 ? "attempt" : "attempts"}`

const title = ({ attemptMillis, deadlineMillis, failure, maxAttempts, name }: Explanation): string => {
  const hint = failure.retryAfterMillis === null ? "" : `, asking for ${millis(failure.retryAfterMillis)}`
  const kind = failure.safety === "No" ? "not retryable" : failure.class
  return [
    `${name === null ? "" : `${name}: `}${limit(maxAttempts)}`,
    ...deadlineMillis === null ? [] : [`deadline ${millis(deadlineMillis)}`],
    `every attempt fails (${kind}${hint}) after ${millis(attemptMillis)}`
  ].join(", ")
}

const latencyLine = ({ maxMillis, minMillis, p50Millis, p99Millis }: Spread): string =>
  maxMillis === null
    ? "A failing call has no known latency: not all were followed to the end."
    : minMillis === null || p50Millis === null || p99Millis === null
    ? `A failing call ends after at most ${millis(maxMillis)}: not all were followed to the end.`
    : minMillis === maxMillis
    ? `A failing call ends after ${millis(maxMillis)}.`
    : `A failing call ends after at least ${millis(minMillis)}, p50 ${sampled(p50Millis, millis)}, ` +
      `p99 ${sampled(p99Millis, millis)}, at most ${millis(maxMillis)}.`

const quotaLines = ({ quota, retries }: Explanation): ReadonlyArray<string> => {
  if (quota === null || retries.length === 0) return []
  const { bitesAt, capacity, initial, retriesInOutage } = quota
  const outage = retriesInOutage === null
    ? "pays for every retry"
    : `pays for ${retriesInOutage} retries while nothing succeeds`
  const bite = bitesAt === null ? "never kicks in" : `kicks in at a failure rate of ${percent(bitesAt)}`
  return [`The quota (${initial} of ${capacity} tokens) ${outage}, and ${bite}.`]
}

/** The first attempts after which calls end without a retry. */
const atOnce = ({ ends }: Explanation): ReadonlyArray<string> => {
  const first = ends.filter(({ attempts }) => attempts <= 1)
  return first.length === 0 ? [] : [`Without a retry: ${endings(first)}.`]
}

/** Explains the mark before a number, if there is one. */
const sampledNote = ({ ends, latency, retries, samples }: Explanation): ReadonlyArray<string> =>
  (latency.minMillis === latency.maxMillis || latency.p50Millis === null) && retries.every(({ delay }) =>
      delay.exact
    ) &&
    ends.every(({ share }) => share === 0 || share === 1)
    ? []
    : [`~: from ${samples} sampled calls, two digits.`]

/** The explanation as plain text, in lines of at most this many columns. */
export const tableOf = (explanation: Explanation, columns: number): string =>
  within(
    linesOf(explanation, columns).join("\n"),
    columns
  )

const linesOf = (explanation: Explanation, columns: number): ReadonlyArray<string> => [
  title(explanation),
  "",
  ...explanation.retries.length === 0 ? [] : [
    ...retriesTable(explanation, columns),
    ...sameForAll(explanation.retries) || explanation.quota === null
      ? []
      : ["tokens: a after a transient failure, b after a timeout, c after a throttle"],
    ""
  ],
  ...atOnce(explanation),
  latencyLine(explanation.latency),
  ...sampledNote(explanation),
  ...quotaLines(explanation),
  "",
  ...loadTable(explanation),
  ...explanation.notes.length === 0 ? [] : ["", ...explanation.notes]
]

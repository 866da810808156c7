import type { Capacity, Quiet } from "./capacity.ts"
import { fewest } from "./estimate.ts"
import type { Bucket, Series } from "./series.ts"

/** Where more than this share fails for a while, that is an outage. */
const unusual = 0.2
/** Failures beyond that share: fewer may be chance. */
const leastExcess = 20
/** Requests that show how many fail at other times. */
const enough = 100

/** A stretch of a log in which many requests failed. */
export interface FittedOutage {
  readonly fromMillis: number
  readonly toMillis: number
  /** Requests per second before it; `undefined` where the log begins with it. */
  readonly before: number | undefined
  /** The most requests in a second of it. */
  readonly most: number
  /** Whether what else was found makes them fail. */
  readonly isExplained: boolean
}

/** What fails in a log, and when. */
export interface Failures {
  /** Stretches in which more than a fifth of the requests failed, if fewer did at other times. */
  readonly outages: ReadonlyArray<FittedOutage>
  /** Outside of outages: of the requests, those that failed with a 5xx of the work itself. */
  readonly errors: number
  /** Outside of outages: of the requests, those that were refused (429, 503) or given up though nothing found here makes them fail. */
  readonly unexplained: number
}

const sumOf = (buckets: ReadonlyArray<Bucket>, of: (bucket: Bucket) => number): number =>
  buckets.reduce((sum, bucket) => sum + of(bucket), 0)

/** Of the requests in some buckets, those that count: 0 where there are none. */
const shareIn = (buckets: ReadonlyArray<Bucket>, of: (bucket: Bucket) => number): number =>
  sumOf(buckets, of) / Math.max(1, sumOf(buckets, ({ requests }) => requests))

/** Buckets in a row. */
type Span = readonly [from: number, to: number]

/** The buckets in a row that exceed the usual share by most failures, then those on both sides of them. */
const candidates = (buckets: ReadonlyArray<Bucket>, offset = 0): ReadonlyArray<Span> => {
  let [from, excess] = [0, 0]
  let best = { from: 0, to: 0, excess: 0 }
  buckets.forEach(({ failed, requests }, n) => {
    if (excess <= 0) [from, excess] = [n, 0]
    excess += failed - unusual * requests
    if (excess > best.excess) best = { from, to: n + 1, excess }
  })
  if (best.excess < leastExcess) return []
  return [
    ...candidates(buckets.slice(0, best.from), offset),
    [offset + best.from, offset + best.to],
    ...candidates(buckets.slice(best.to), offset + best.to)
  ]
}

const failedIn = ({ failed }: Bucket): number => failed

const outside = (buckets: ReadonlyArray<Bucket>, spans: ReadonlyArray<Span>): ReadonlyArray<Bucket> =>
  buckets.filter((_, n) => !spans.some(([from, to]) => n >= from && n < to))

/** Where in a log the outages are: nowhere if requests fail alike at all times. */
const spansOf = (buckets: ReadonlyArray<Bucket>, widthMillis: number): ReadonlyArray<Span> => {
  const found = candidates(buckets).filter(([from, to]) => (to - from) * widthMillis >= fewest * 1000)
  const others = outside(buckets, found)
  return sumOf(others, ({ requests }) => requests) < enough
    ? []
    : found.filter(([from, to]) => shareIn(buckets.slice(from, to), failedIn) >= 2 * shareIn(others, failedIn))
}

/** What the findings explain: a limit refuses, and a backlog has clients leave. */
interface Explained {
  readonly refused: boolean
  readonly abandoned: boolean
}

export const explainedBy = (capacity: Capacity, isCrowded: boolean): Explained => {
  const isLimit = capacity.kind === "found" && capacity.by === "rate"
  return { refused: isCrowded || isLimit, abandoned: capacity.kind === "found" && !isLimit }
}

/** Where that is so, what fails at low load fails for another reason. */
const unexplainedOf = (calm: ReadonlyArray<Bucket>, quiet: Quiet, explained: Explained): number => {
  const share = (of: keyof Explained): number =>
    Math.min(shareIn(calm, (bucket) => bucket[of]), explained[of] ? quiet[of] : 1)
  return share("refused") + share("abandoned")
}

const errorsIn = ({ abandoned, failed, refused }: Bucket): number => failed - refused - abandoned

/** The failures in a log, as far as its capacity does not explain them. */
export const failuresOf = ({ all: buckets, widthMillis }: Series, quiet: Quiet, explained: Explained): Failures => {
  const spans = spansOf(buckets, widthMillis)
  const calm = outside(buckets, spans)
  const perSecond = 1000 / widthMillis
  const outages = spans.map(([from, to]): FittedOutage => {
    const [inside, before] = [buckets.slice(from, to), buckets.slice(Math.max(0, from - (to - from)), from)]
    const unexplained = ({ abandoned, failed, refused }: Bucket): number =>
      failed - (explained.refused ? refused : 0) - (explained.abandoned ? abandoned : 0)
    return {
      fromMillis: inside[0]!.fromMillis,
      toMillis: inside[0]!.fromMillis + (to - from) * widthMillis,
      before: from === 0 ? undefined : sumOf(before, ({ requests }) => requests) * perSecond / before.length,
      most: Math.max(...inside.map(({ requests }) => requests)) * perSecond,
      isExplained: shareIn(inside, unexplained) <= unusual
    }
  })
  return { outages, errors: shareIn(calm, errorsIn), unexplained: unexplainedOf(calm, quiet, explained) }
}

import * as Schema from "effect/Schema"
import { expecting, maybe, millis, Share, Time } from "./fields.ts"

const comparison = /^([<>]=?) ?/

const shareText = `a share such as 0.99, "99 %" or ">= 99 %"`
const ratioText = `a number such as 1.2 or "<= 1.2"`
const timeText = `a duration such as "800ms" or "<= 800ms"`
const runsText = `runs such as "18 of 20", of at most 1000`

/** What is left of a bound without its comparison. */
const amountOf = (text: string): string => text.replace(comparison, "")

const isTime = Schema.is(Time)

const shareOf = (bound: number | string): number => {
  if (typeof bound === "number") return bound
  const text = amountOf(bound)
  return text.endsWith("%") ? Number(text.slice(0, -1)) / 100 : Number(text)
}

const ShareBound = Schema.Union([
  Share.annotate({ expected: shareText }),
  Schema.String.check(
    Schema.isPattern(/^([<>]=? ?)?\d{1,9}(\.\d{1,9})?( ?%)?$/u, expecting(shareText)),
    Schema.makeFilter((text: string) => shareOf(text) <= 1, expecting(shareText))
  )
]).annotate({ identifier: "ShareBound", expected: shareText, title: `A bound: ${shareText}` })

const RatioBound = Schema.Union([
  Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0, expecting(ratioText))),
  Schema.String.check(Schema.isPattern(/^([<>]=? ?)?\d{1,9}(\.\d{1,9})?$/u, expecting(ratioText)))
]).annotate({ identifier: "RatioBound", expected: ratioText, title: `A bound: ${ratioText}` })

const TimeBound = Schema.Union([
  Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0, expecting(timeText))),
  Schema.String.check(Schema.makeFilter((text: string) => isTime(amountOf(text)), expecting(timeText)))
]).annotate({ identifier: "TimeBound", expected: timeText, title: `A bound: ${timeText}` })

const countsOf = (text: string): readonly [runs: number, of: number] => {
  const [runs, of] = text.split(" of ").map(Number)
  return [runs!, of!]
}

const isPossible = (text: string): boolean => {
  const [runs, of] = countsOf(text)
  return of >= 1 && of <= 1000 && runs <= of
}

const RunsBound = Schema.String.check(
  Schema.isPattern(/^\d{1,4} of \d{1,4}$/u, expecting(runsText)),
  Schema.makeFilter(isPossible, expecting(runsText))
).annotate({ identifier: "RunsBound", expected: runsText, title: `A bound: ${runsText}` })

/** What is expected of a scenario. */
export const Expectations = Schema.Struct({
  succeed: maybe(ShareBound, "The least share of the calls that succeed, averaged over the runs."),
  sendsPerCall: maybe(RatioBound, "The most attempts per call, averaged over the runs."),
  p99: maybe(
    TimeBound,
    "The longest 99th percentile latency of successful calls, retries included, of the busiest fleet, averaged over the runs."
  ),
  recoveredWithin: maybe(
    TimeBound,
    "The longest time after the last outage until all runs, or as many as recoversInRuns asks for, have recovered."
  ),
  recoversInRuns: maybe(RunsBound, "The fewest runs in which the calls recover, and of how many: this many are run.")
}).check(Schema.isMinProperties(1, expecting("at least one expectation"))).annotate({
  identifier: "Expectations",
  title: "What is expected of the scenario: effect-retry check"
})

/** What is expected, as written. */
export type Expectations = typeof Expectations.Type

/** An expectation as numbers. */
export interface Bound {
  readonly name: keyof Expectations
  readonly comparison: "<" | "<=" | ">" | ">="
  /** A share from 0 to 1, attempts per call, milliseconds, or the share of the runs. */
  readonly value: number
}

const comparisonOf = (bound: number | string, usual: Bound["comparison"]): Bound["comparison"] =>
  (typeof bound === "string" ? comparison.exec(bound)?.[1] as Bound["comparison"] | undefined : undefined) ?? usual

const ratioOf = (bound: number | string): number => Number(typeof bound === "string" ? amountOf(bound) : bound)

const timeOf = (bound: number | string): number => millis(typeof bound === "string" ? amountOf(bound) as Time : bound)

const shareOfRuns = (text: number | string): number => {
  const [runs, of] = countsOf(String(text))
  return runs / of
}

/** What a bound is without its comparison, and the comparison that a bare value stands for. */
const readings: {
  readonly [Name in Bound["name"]]: readonly [usual: Bound["comparison"], read: (bound: number | string) => number]
} = {
  succeed: [">=", shareOf],
  sendsPerCall: ["<=", ratioOf],
  p99: ["<=", timeOf],
  recoveredWithin: ["<=", timeOf],
  recoversInRuns: [">=", shareOfRuns]
}

/** The expectations as numbers. */
export const boundsOf = (expectations: Expectations): ReadonlyArray<Bound> =>
  (Object.keys(readings) as ReadonlyArray<Bound["name"]>).flatMap((name) => {
    const bound = expectations[name]
    if (bound === undefined) return []
    const [usual, read] = readings[name]
    return [{ name, comparison: comparisonOf(bound, usual), value: read(bound) }]
  })

/** How many runs a scenario asks for, if it does. */
export const runsExpected = (expectations: Expectations | undefined): number | undefined =>
  expectations?.recoversInRuns === undefined ? undefined : countsOf(expectations.recoversInRuns)[1]

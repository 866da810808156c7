import { isBounded } from "./bounds.ts"
import type { Measured } from "./measured.ts"
import type { SimulationResult } from "./result.ts"
import { type Summary, summaryOf } from "./runs.ts"
import { afterOf, recoveryFrom } from "./runSummary.ts"
import type { Scenario } from "./scenario.ts"
import { type Spread, spreadOf } from "./spread.ts"
import { millis } from "./units.ts"

/**
 * A figure as it was measured, and as several runs predict it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Compared {
  /** `undefined` where it was not measured, or there was none. */
  readonly measured: number | undefined
  readonly predicted: Spread | undefined
  /** The mean of the runs minus the measured value: of shares in shares, of all else as a share of the measured value. */
  readonly error: number | undefined
  /** Whether the measured value is within the range from 5 to 95 percent of the runs. */
  readonly isInside: boolean | undefined
}

/**
 * A bucket of a measured series, and of the runs.
 *
 * @category models
 * @since 0.1.0
 */
export interface ComparedBucket {
  readonly fromMillis: number
  /** Calls that succeeded, per second. */
  readonly succeeded: { readonly measured: number; readonly predicted: Spread | undefined }
  /** Attempts that were sent, per second. */
  readonly attempts: { readonly measured: number; readonly predicted: Spread | undefined }
}

/**
 * A measured series next to a scenario's prediction.
 *
 * @category models
 * @since 0.1.0
 */
export interface Backtest {
  /** The share of the calls that succeeded, from 0 to 1. */
  readonly succeeded: Compared
  readonly sendsPerCall: Compared
  readonly p50Millis: Compared
  readonly p99Millis: Compared
  /** How long after the last outage calls recovered; of the runs only those that did. */
  readonly recoveredMillis: Compared
  /** Whether the measured calls recovered, and in how many runs; `undefined` without an outage, or a bound of a service. */
  readonly recovery: { readonly measured: boolean; readonly predicted: Summary["recovery"] } | undefined
  readonly bucketMillis: number
  readonly series: ReadonlyArray<ComparedBucket>
}

/** The scenario with the calls of the first fleet as they came: one by one, or as they were counted in each bucket. */
export const withArrivals = (scenario: Scenario, measured: Measured): Scenario => {
  const { arrivals, bucket, series } = measured
  const [first, ...others] = scenario.fleets
  const { clients: _clients, pace: _pace, rate: _rate, think: _think, ...fleet } = first
  return {
    ...scenario,
    bucket,
    duration: series.length * millis(bucket),
    fleets: [{
      ...fleet,
      arrivals: arrivals === undefined ? { bucket, calls: series.map(({ calls }) => calls) } : { at: arrivals }
    }, ...others]
  }
}

const compared = (measured: number | undefined, predicted: Spread | undefined, isShare: boolean): Compared => {
  if (measured === undefined || predicted === undefined) {
    return { measured, predicted, error: undefined, isInside: undefined }
  }
  const difference = predicted.mean - measured
  return {
    measured,
    predicted,
    error: isShare ? difference : measured === 0 ? undefined : difference / measured,
    isInside: measured >= predicted.low && measured <= predicted.high
  }
}

const sum = <A>(items: ReadonlyArray<A>, of: (item: A) => number): number =>
  items.reduce((total, item) => total + of(item), 0)

/** Compares what was measured with runs that have the calls of that time. */
export const backtestOf = (
  scenario: Scenario,
  measured: Measured,
  results: ReadonlyArray<SimulationResult>
): Backtest => {
  const width = millis(measured.bucket)
  const { p50Millis, p99Millis, recovery, sendsPerCall, succeeded } = summaryOf(results)
  const calls = sum(measured.series, (bucket) => bucket.calls)
  const ended = measured.series
    .map((bucket, index) => ({ fromMillis: index * width, ...bucket }))
    .filter((bucket) => bucket.succeeded + bucket.failed > 0)
  const back = afterOf(recoveryFrom(scenario, ended))
  const hasOutage = isBounded(scenario) && scenario.services.some(({ outages }) => outages.length > 0)
  const perSecond = (index: number, of: "succeeded" | "attempts") => {
    // What ends after the last bucket counts in it.
    const last = index === measured.series.length - 1
    return spreadOf(results.map(({ clients }) =>
      sum(
        clients.filter(({ kind }) => kind === "fleet"),
        ({ series }) => sum(series.slice(index, last ? undefined : index + 1), (bucket) => bucket[of]) * 1000 / width
      )
    ))
  }
  return {
    succeeded: compared(sum(measured.series, (bucket) => bucket.succeeded) / calls, succeeded, true),
    sendsPerCall: compared(sum(measured.series, ({ attempts }) => attempts) / calls, sendsPerCall, false),
    p50Millis: compared(measured.p50 === undefined ? undefined : millis(measured.p50), p50Millis, false),
    p99Millis: compared(measured.p99 === undefined ? undefined : millis(measured.p99), p99Millis, false),
    recoveredMillis: hasOutage ? compared(back, recovery.afterMillis, false) : compared(undefined, undefined, false),
    recovery: hasOutage ? { measured: back !== undefined, predicted: recovery } : undefined,
    bucketMillis: width,
    series: measured.series.map((bucket, index) => ({
      fromMillis: index * width,
      succeeded: { measured: bucket.succeeded * 1000 / width, predicted: perSecond(index, "succeeded") },
      attempts: { measured: bucket.attempts * 1000 / width, predicted: perSecond(index, "attempts") }
    }))
  }
}

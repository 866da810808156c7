import {
  difference,
  recoversBelow,
  type SimulationResult,
  type Spread,
  summarize,
  type Summary
} from "../../Simulator.ts"
import { isBounded } from "../../simulator/bounds.ts"
import { resolve } from "../../simulator/policy.ts"
import { runSummaryOf } from "../../simulator/runSummary.ts"
import { spreadOf } from "../../simulator/spread.ts"
import { millis } from "../../simulator/units.ts"
import { leastBound } from "./bounds.ts"
import type { Run, Runs } from "./run.ts"

/**
 * What becomes of the calls with a policy: they recover in all runs, in some, in none; or are healthy throughout, or at no
 * time. Where nothing bounds a service there is nothing to recover from.
 */
export type Fate = "undisturbed" | "always" | "sometimes" | "unrecovered" | "ill" | "not yet" | "unbounded" | "unknown"

/** A policy, and what counts when it is compared. */
export interface Ranked {
  readonly run: Run
  /** Whether it is the scenario as written, next to others with another policy. */
  readonly isWritten: boolean
  readonly found: Summary
  readonly fate: Fate
  /** The busiest service, the requests per second that reach it after the trouble, and those that it can handle. */
  readonly afterwards:
    | { readonly service: string; readonly perSecond: Spread; readonly capacity: number | undefined }
    | undefined
  /** Calls a second below which it recovers from any outage, in theory. */
  readonly below: number | undefined
  readonly isPartial: boolean
}

const fateOf = (results: ReadonlyArray<SimulationResult>, { recovery: { of, runs } }: Summary): Fate => {
  const kinds = results.map((result) => runSummaryOf(result).recovery.kind)
  if (kinds.every((kind) => kind === "unknown")) return "unknown"
  if (!isBounded(results[0]!.scenario)) return "unbounded"
  if (kinds.every((kind) => kind === "always well")) return "undisturbed"
  if (kinds.every((kind) => kind === "never well")) return results.some(({ partial }) => partial) ? "not yet" : "ill"
  if (runs === of) return "always"
  if (runs > 0) return "sometimes"
  return results.some(({ partial }) => partial) ? "not yet" : "unrecovered"
}

/** The last part of the time after the trouble in which calls begin. */
const lastPart = 0.5

const afterwardsOf = (results: Run["results"]): Ranked["afterwards"] => {
  const [{ scenario, services }] = results
  const [busiest] = [...services].sort((a, b) => b.totals.received - a.totals.received)
  if (busiest === undefined) return undefined
  const end = Math.max(0, ...scenario.services.flatMap(({ outages }) => outages.map(({ to }) => millis(to))))
  const until = millis(scenario.duration)
  const from = end + lastPart * (until - end)
  const rates = results.flatMap((result) => {
    const series = result.services.find(({ name }) => name === busiest.name)?.series ?? []
    const last = series.filter(({ fromMillis }) =>
      fromMillis >= from && fromMillis + result.bucketMillis <= Math.min(until, result.untilMillis)
    )
    const received = last.reduce((sum, bucket) => sum + bucket.received, 0)
    return last.length === 0 ? [] : [received * 1000 / (last.length * result.bucketMillis)]
  })
  const perSecond = spreadOf(rates)
  const capacity = leastBound(scenario, busiest.name, until)
  return perSecond && {
    service: busiest.name,
    perSecond,
    capacity: capacity === Infinity ? undefined : capacity
  }
}

const meanOf = (spread: Spread | undefined): number => spread?.mean ?? 0

const shareRecovered = ({ fate, found: { recovery: { of, runs } } }: Ranked): number =>
  fate === "unbounded" ? 1 : runs / of

/** The policies, of which the first is that of the scenario as written, by rank: first by runs that recover, then by calls that succeed, then by the fewest sends. */
export const ranked = (runs: Runs): readonly [Ranked, ...Array<Ranked>] => {
  const [first, ...others] = runs.map((run, place): Ranked => {
    const found = summarize(run.results)
    return {
      run,
      isWritten: place === 0 && runs.length > 1,
      found,
      fate: fateOf(run.results, found),
      afterwards: afterwardsOf(run.results),
      below: recoversBelow(run.result.scenario),
      isPartial: run.results.some(({ partial }) => partial)
    }
  }).sort((a, b) =>
    shareRecovered(b) - shareRecovered(a) ||
    meanOf(b.found.succeeded) - meanOf(a.found.succeeded) ||
    meanOf(a.found.sendsPerCall) - meanOf(b.found.sendsPerCall)
  )
  return [first!, ...others]
}

/** How many more calls succeed with the first than with the second, in shares: run by run, with the same seeds. */
export const lead = (first: Ranked, second: Ranked): Spread | undefined =>
  difference(second.run.results, first.run.results).succeeded

/** Whether the lead of one over the other is within random variation. */
export const isTie = (first: Ranked, second: Ranked): boolean => {
  const found = lead(first, second)
  return shareRecovered(first) === shareRecovered(second) && found !== undefined && found.low <= 0
}

/** Whether calls do not come back at all. */
export const isLost = ({ fate }: Ranked): boolean => fate === "unrecovered" || fate === "ill" || fate === "not yet"

/** What the time until they are back is counted from. */
export const since = ({ run: { result: { scenario } } }: Ranked): string =>
  scenario.services.some(({ outages }) => outages.length > 0) ? "after the outage" : "after the start"

/** Whether any client of a run retries. */
export const retries = ({ run: { result: { scenario } } }: Ranked): boolean =>
  scenario.fleets.some(({ policy }) => resolve(policy).policy !== undefined)

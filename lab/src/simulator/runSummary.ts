import type { ClientBucket, ClientResult, ServiceResult, SimulationResult } from "./result.ts"
import type { Scenario } from "./scenario.ts"
import { millis as millisOf } from "./units.ts"

/** The highest load on a service. */
interface Peak {
  readonly service: string
  readonly perSecond: number
  readonly atMillis: number
  /** The load as a multiple of the calls made then; `undefined` when none were. */
  readonly timesCalls: number | undefined
}

/** How the share of successful calls developed: it is well when at least nine of ten succeed. */
export type Recovery =
  | { readonly kind: "always well" | "never well" | "ill at the end" | "unknown" }
  | {
    readonly kind: "recovered"
    readonly atMillis: number
    /** After the end of the latest outage that had begun: 0 if it had not ended. `undefined` without one. */
    readonly afterMillis: number | undefined
  }

/**
 * How long after the last outage a run recovered, from its start where there is none, 0 if it was always well; `undefined`
 * when it did not.
 */
export const afterOf = (recovery: Recovery): number | undefined =>
  recovery.kind === "recovered"
    ? recovery.afterMillis ?? recovery.atMillis
    : recovery.kind === "always well"
    ? 0
    : undefined

/** The summary of a run. */
export interface RunSummary {
  readonly calls: number
  readonly succeeded: number
  readonly failed: number
  /** Calls that had not ended. */
  readonly open: number
  /** Of the calls that succeeded, see {@link shareOf}. */
  readonly share: number | undefined
  readonly attemptsPerCall: number | undefined
  readonly peak: Peak | undefined
  readonly recovery: Recovery
}

/** The fleets of a run. */
export const fleetsOf = ({ clients }: SimulationResult): ReadonlyArray<ClientResult> =>
  clients.filter(({ kind }) => kind === "fleet")

const sum = (clients: ReadonlyArray<ClientResult>, count: (client: ClientResult) => number): number =>
  clients.reduce((all, client) => all + count(client), 0)

/** Calls that have not ended. */
export const openOf = (clients: ReadonlyArray<ClientResult>): number =>
  sum(clients, ({ totals: { calls, failed, succeeded } }) => calls - succeeded - failed)

/** The share of calls that succeeded: of all, or while the run is not over of those that have ended; `undefined` of none. */
export const shareOf = (
  { partial }: SimulationResult,
  { calls, failed, succeeded }: { readonly calls: number; readonly failed: number; readonly succeeded: number }
): number | undefined => {
  const of = partial ? succeeded + failed : calls
  return of === 0 ? undefined : succeeded / of
}

/** The sums of several series, bucket by bucket. */
export const together = (all: ReadonlyArray<ReadonlyArray<ClientBucket>>): ReadonlyArray<Counted> =>
  (all[0] ?? []).map(({ fromMillis }, n) => {
    const sum = { fromMillis, calls: 0, succeeded: 0, failed: 0 }
    for (const series of all) {
      const bucket = series[n]
      if (bucket === undefined) continue
      sum.calls += bucket.calls
      sum.succeeded += bucket.succeeded
      sum.failed += bucket.failed
    }
    return sum
  })

/** The outcomes of the calls that ended in a bucket. */
export interface Ended {
  readonly fromMillis: number
  readonly succeeded: number
  readonly failed: number
}

/** As a share of the share before. */
const well = 0.9

/** The share of calls that succeeded before the first outage; 1 where there is none, or nothing before it. */
const usual = (scenario: Scenario, ended: ReadonlyArray<Ended>): number => {
  const first = Math.min(...scenario.services.flatMap(({ outages }) => outages.map(({ from }) => millisOf(from))))
  const before = ended.filter(({ fromMillis }) => fromMillis + millisOf(scenario.bucket) <= first)
  const succeeded = before.reduce((sum, bucket) => sum + bucket.succeeded, 0)
  const failed = before.reduce((sum, bucket) => sum + bucket.failed, 0)
  return first === Infinity || succeeded === 0 ? 1 : succeeded / (succeeded + failed)
}

/**
 * How long after the latest outage that had begun by then; 0 before its end, or before the first. `undefined` without
 * outages.
 */
const afterOutage = (scenario: Scenario, atMillis: number): number | undefined => {
  const outages = scenario.services.flatMap(({ outages }) => outages)
  if (outages.length === 0) return undefined
  const begun = outages.filter(({ from }) => millisOf(from) < atMillis)
  const [latest] = begun.sort((a, b) => millisOf(b.from) - millisOf(a.from) || millisOf(b.to) - millisOf(a.to))
  return latest === undefined ? 0 : Math.max(0, atMillis - millisOf(latest.to))
}

interface Counted extends Ended {
  readonly calls: number
}

/** Puts a last bucket with few calls, such as the rest of a second, into the one before: it would be a matter of chance. */
const withoutRest = (buckets: ReadonlyArray<Counted>): ReadonlyArray<Ended> => {
  const [before, last] = buckets.slice(-2)
  if (before === undefined || last === undefined || last.calls * 2 >= before.calls) return buckets
  const succeeded = before.succeeded + last.succeeded
  return [...buckets.slice(0, -2), { ...before, succeeded, failed: before.failed + last.failed }]
}

/**
 * The calls that ended in each bucket while calls were made. What ends after the last of them, and what has not ended when
 * the run is over, counts there: otherwise hanging calls would look healthy.
 */
const endingsOf = (result: SimulationResult): ReadonlyArray<Ended> => {
  const fleets = fleetsOf(result)
  const durationMillis = millisOf(result.scenario.duration)
  const all = together(fleets.map(({ series }) => series))
  const endings = all.filter(({ fromMillis }) => fromMillis < durationMillis)
  const last = endings.pop()
  if (last === undefined) return []
  const late = all.filter(({ fromMillis }) => fromMillis >= durationMillis)
  const succeeded = late.reduce((sum, bucket) => sum + bucket.succeeded, last.succeeded)
  const failed = late.reduce((sum, bucket) => sum + bucket.failed, last.failed)
  const open = result.partial ? 0 : openOf(fleets)
  return withoutRest([...endings, { ...last, succeeded, failed: failed + open }])
    .filter((ended) => ended.succeeded + ended.failed > 0)
}

/** How the share of successes developed in a scenario, from the calls that ended in the buckets in which calls were made. */
export const recoveryFrom = (scenario: Scenario, ended: ReadonlyArray<Ended>): Recovery => {
  const least = well * usual(scenario, ended)
  const ill = ended.map(({ failed, succeeded }) => succeeded < least * (succeeded + failed))
  if (ill.length === 0) return { kind: "unknown" }
  if (!ill.includes(true)) return { kind: "always well" }
  if (!ill.includes(false)) return { kind: "never well" }
  const next = ended[ill.lastIndexOf(true) + 1]
  if (next === undefined) return { kind: "ill at the end" }
  return { kind: "recovered", atMillis: next.fromMillis, afterMillis: afterOutage(scenario, next.fromMillis) }
}

const peakOf = (result: SimulationResult, service: ServiceResult): Peak | undefined => {
  const width = (fromMillis: number) => Math.min(result.untilMillis, fromMillis + result.bucketMillis) - fromMillis
  const whole = service.series.filter(({ fromMillis }) => width(fromMillis) >= result.bucketMillis / 2)
  const highest = whole.reduce<typeof whole[number] | undefined>(
    (most, bucket) => most !== undefined && most.received >= bucket.received ? most : bucket,
    undefined
  )
  if (highest === undefined || highest.received === 0) return undefined
  const place = service.series.indexOf(highest)
  const calls = result.clients
    .filter(({ to }) => to === service.name)
    .reduce((sum, { series }) => sum + (series[place]?.calls ?? 0), 0)
  return {
    service: service.name,
    perSecond: highest.received * 1000 / width(highest.fromMillis),
    atMillis: highest.fromMillis,
    timesCalls: calls === 0 ? undefined : highest.received / calls
  }
}

/** Counts the figures that a report begins with. */
export const runSummaryOf = (result: SimulationResult): RunSummary => {
  const fleets = fleetsOf(result)
  const calls = sum(fleets, ({ totals }) => totals.calls)
  const succeeded = sum(fleets, ({ totals }) => totals.succeeded)
  const failed = sum(fleets, ({ totals }) => totals.failed)
  const peaks = result.services.flatMap((service) => peakOf(result, service) ?? [])
  return {
    calls,
    succeeded,
    failed,
    open: openOf(fleets),
    share: shareOf(result, { calls, succeeded, failed }),
    attemptsPerCall: calls === 0 ? undefined : sum(fleets, ({ totals }) => totals.attempts) / calls,
    peak: peaks.reduce<Peak | undefined>(
      (most, peak) => most !== undefined && most.perSecond >= peak.perSecond ? most : peak,
      undefined
    ),
    recovery: recoveryFrom(result.scenario, endingsOf(result))
  }
}

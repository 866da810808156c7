import { type Capacity, capacityOf, type Quiet, quietOf, waitingMillis } from "./capacity.ts"
import { type Estimate, fewest, momentsOf, perSecond, quantileOf, shareOf } from "./estimate.ts"
import { explainedBy, type Failures, failuresOf } from "./failures.ts"
import type { Level } from "./levels.ts"
import { type Meter, Span } from "./meter.ts"
import type { Bucket } from "./series.ts"

/** The shares of requests whose duration is known. */
const shares = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999] as const

/** What a log shows of a service. */
export interface Fitted extends Failures {
  /** Requests whose line was understood. */
  readonly requests: number
  /** From the first to the last. */
  readonly seconds: number
  readonly fromMillis: number
  /** Requests per second. */
  readonly rate: Estimate
  readonly series: { readonly widthMillis: number; readonly buckets: ReadonlyArray<Bucket> }
  /** How long requests took at low load, in milliseconds; `undefined` where the log does not say. */
  readonly latency:
    | {
      readonly requests: number
      /** The load meanwhile. */
      readonly perSecond: number
      readonly quantiles: ReadonlyArray<Estimate & { readonly share: number }>
    }
    | undefined
  /** The share of each status, the most frequent first. */
  readonly statuses: ReadonlyArray<Estimate & { readonly status: number; readonly count: number }>
  /** Of the requests, those that failed because of the service. */
  readonly failed: Estimate
  /** After which most of the abandoned requests were given up; `undefined` where the log shows none. */
  readonly timeout: { readonly millis: number; readonly requests: number } | undefined
  /** Of the requests, those that were retries, and the evidence; `undefined` without any. */
  readonly retried: (Estimate & { readonly by: "attempt" | "id" }) | undefined
  readonly capacity: Capacity
  /** Instances that share the capacity, if the log names them: those at one time, of all addresses in it. */
  readonly instances: number
  readonly addresses: number
  /** Requests that each instance works on at a time, where that explains the capacity; otherwise one after the other. */
  readonly workers: number | undefined
  /** Requests in flight beyond which more are refused, by a proxy or by the instances; `undefined` where none are. */
  readonly ceiling: { readonly most: number; readonly by: "proxy" | "instances" } | undefined
  /** Whether all requests waited in its last seconds: then it ends in an overload. */
  readonly endsBehind: boolean
  readonly late: number
  readonly strays: number
  /** Whether files of the log overlap in time. */
  readonly overlaps: boolean
}

/** Of the capacity: below it a queue is nearly always empty. */
const lowLoad = 0.3

const retriedOf = ({ named, numbered, retriesByName, retriesByNumber }: Meter): Fitted["retried"] => {
  if (numbered > 0) return { ...shareOf(retriesByNumber, numbered), by: "attempt" }
  return named > 0 ? { ...shareOf(retriesByName, named), by: "id" } : undefined
}

const latencyOf = ({ latency, perSecond }: Quiet): Fitted["latency"] =>
  latency.count === 0 ? undefined : {
    requests: latency.count,
    perSecond,
    quantiles: shares.map((share) => ({ share, ...quantileOf(latency, share) }))
  }

/** What there was to do in the second in which a quarter of the requests had come, or less: as long as no more is known. */
const typical = (levels: ReadonlyArray<Level>): number => {
  let left = levels.reduce((sum, { latency }) => sum + latency.count, 0) / 4
  for (const level of levels) {
    left -= level.latency.count
    if (left <= 0) return level.work / level.seconds
  }
  return 0
}

/** An address with less than this share of the requests that the busiest one has in as much time is no instance. */
const regular = 0.1

/** The addresses at one time, on average: an update of the instances, one by one, brings new ones. */
const instancesOf = ({ upstreams }: Meter): number => {
  const all = [...upstreams.values()]
  const busiest = all.reduce((most, one) => one.requests > most.requests ? one : most, new Span())
  const millis = Math.max(...all.map(({ lastMillis }) => lastMillis)) -
    Math.min(...all.map(({ firstMillis }) => firstMillis))
  const sum = all
    .filter((one) => one.requests * busiest.millis >= regular * busiest.requests * one.millis)
    .reduce((sum, one) => sum + one.millis, 0)
  return Math.max(1, Math.round(sum / Math.max(1, millis)))
}

/** By how much of a worker the number may be off that follows from capacity and latency. */
const tolerated = 0.15

/** As many requests are worked on at a time as a queue has workers: capacity times work (Little's law). */
export const workersFor = (perSecond: number, { latency }: Pick<Fitted, "latency">): number | undefined => {
  const atOnce = perSecond * momentsOf(latency?.quantiles ?? []).mean / 1000
  const workers = Math.round(atOnce)
  return workers > 0 && Math.abs(atOnce - workers) <= tolerated * workers ? workers : undefined
}

/** With workers, what is served in a second varies as their work does; with turns of equal length it does not. */
const workersOf = (capacity: Capacity, latency: Fitted["latency"], instances: number): Fitted["workers"] => {
  if (capacity.kind !== "found" || latency === undefined) return undefined
  const { mean, square } = momentsOf(latency.quantiles)
  const workers = workersFor(capacity.perSecond.value / instances, { latency })
  const variation = square / (mean * mean) - 1
  return workers !== 1 && capacity.dispersion > variation / 2 ? workers : undefined
}

/** Abandoned requests that show a timeout: fewer may be chance. */
const fewestWaits = 10

const timeoutOf = ({ waits }: Meter): Fitted["timeout"] => {
  const all = [...waits]
  const [millis, requests] = all.reduce((most, one) => one[1] > most[1] ? one : most, [0, 0])
  const sum = all.reduce((sum, [, count]) => sum + count, 0)
  return millis > 0 && requests >= fewestWaits && requests * 2 > sum ? { millis, requests } : undefined
}

const statusesOf = ({ requests, statuses }: Meter): Fitted["statuses"] =>
  [...statuses]
    .sort(([a, of], [b, than]) => than - of || a - b)
    .map(([status, count]) => ({ status, count, ...shareOf(count, requests) }))

/** The findings in the lines of a log. */
export const fittedOf = (meter: Meter): Fitted => {
  const seconds = Math.max(1, (meter.lastMillis - meter.firstMillis) / 1000)
  const levels = meter.levels.byWork
  const { latency } = quietOf(levels, 0)
  const waits = waitingMillis(latency)
  const { most: atMost } = meter.levels.ceiling
  const capacity = capacityOf(meter.levels.groups, latency, atMost !== undefined)
  const isCrowded = atMost !== undefined && capacity.kind === "found" && capacity.by !== "rate"
  // At a rate, that many requests begin in a second, and those of the time that one takes are there before.
  const most = capacity.kind === "found"
    ? lowLoad * capacity.perSecond.value * (1 + (latency.meanMillis ?? 0) / 1000)
    : typical(levels)
  const instances = instancesOf(meter)
  const quiet = quietOf(levels, most)
  const low = latencyOf(quiet)
  return {
    requests: meter.requests,
    seconds,
    fromMillis: meter.firstMillis,
    rate: perSecond(meter.requests, seconds),
    series: { widthMillis: meter.series.widthMillis, buckets: meter.series.all },
    latency: low,
    statuses: statusesOf(meter),
    failed: shareOf(meter.failed, meter.requests),
    ...failuresOf(meter.series, quiet, explainedBy(capacity, isCrowded)),
    timeout: timeoutOf(meter),
    retried: retriedOf(meter),
    capacity,
    instances,
    addresses: meter.upstreams.size,
    workers: workersOf(capacity, low, instances),
    ceiling: !isCrowded
      ? undefined
      : { most: atMost, by: meter.refusedInside > 0 ? "instances" : "proxy" },
    endsBehind: meter.levels.latestMillis.length === fewest &&
      meter.levels.latestMillis.every((least) => least > waits),
    late: meter.late,
    strays: meter.strays,
    overlaps: meter.overlaps
  }
}

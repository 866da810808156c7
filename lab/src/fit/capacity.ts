import { Histogram } from "../simulator/histogram.ts"
import { type Estimate, fewest, meanOf } from "./estimate.ts"
import type { Group, Level } from "./levels.ts"

/** The capacity of a service, as a log shows it. */
export type Capacity =
  | {
    readonly kind: "found"
    /** The evidence: all requests waited; or some were refused, for too many in flight or for their rate. */
    readonly by: "backlog" | "refusals" | "rate"
    readonly perSecond: Estimate
    /** Seconds in which it was seen. */
    readonly seconds: number
    /** Of the requests in those seconds, those whose client left: the figure leaves out the work on them. */
    readonly abandoned: number
    /** The variance of what was served in a second, as a multiple of its mean: 1 where it is random, as a Poisson process. */
    readonly dispersion: number
  }
  | { readonly kind: "at least"; readonly perSecond: number }
  | { readonly kind: "unknown" }

const secondsOf = (groups: ReadonlyArray<Group>): number => groups.reduce((sum, { seconds }) => sum + seconds, 0)

/** The half with the longest waits: in the others the queue may have been empty for a while. */
const worstHalf = (groups: ReadonlyArray<Group>): ReadonlyArray<Group> => {
  const most = Math.max(fewest, secondsOf(groups) / 2)
  const worst: Array<Group> = []
  let seconds = 0
  for (const group of [...groups].sort((a, b) => b.leastMillis - a.leastMillis)) {
    if (seconds >= most) break
    seconds += group.seconds
    worst.push(group)
  }
  return worst
}

const found = (by: "backlog" | "refusals", groups: ReadonlyArray<Group>) => {
  const seconds = secondsOf(groups)
  const sum = groups.reduce((sum, group) => sum + group.seconds * group.served, 0)
  const squares = groups.reduce((sum, group) => sum + group.seconds * group.served * group.served, 0)
  const abandoned = groups.reduce((sum, group) => sum + group.abandoned, 0)
  return {
    kind: "found" as const,
    by,
    perSecond: meanOf(seconds, sum, squares),
    seconds,
    abandoned: abandoned / (abandoned + sum),
    dispersion: squares / sum - sum / seconds
  }
}

/**
 * Whether as much arrived as was served, within random variation: then nothing queued, and the work itself took longer.
 * Two Poisson counts differ by 0.8 times the square root of their sum on average.
 */
const keptPace = (groups: ReadonlyArray<Group>): boolean => {
  const imbalance = groups.reduce((sum, group) => sum + group.imbalance, 0)
  const chance = groups.reduce((sum, { seconds, served }) => sum + seconds * 0.8 * Math.sqrt(2 * served), 0)
  return imbalance < 1.3 * chance
}

/** The most that was served in at least this many seconds. */
const highest = (groups: ReadonlyArray<Group>): number => {
  let seconds = 0
  for (const group of [...groups].sort((a, b) => b.served - a.served)) {
    seconds += group.seconds
    if (seconds >= fewest) return group.served
  }
  return 0
}

/** Seconds with little to do, in which waits are short. */
export interface Quiet {
  readonly latency: Histogram
  /** Requests that began per second. */
  readonly perSecond: number
  /** Of these requests, those that were refused, and those whose client left. */
  readonly refused: number
  readonly abandoned: number
}

/** The levels with the least to do: a tenth of the requests in all, and more up to what may be to do in a second. */
export const quietOf = (levels: ReadonlyArray<Level>, most: number): Quiet => {
  const all = levels.reduce((sum, { latency }) => sum + latency.count, 0)
  const latency = new Histogram()
  let [seconds, requests, refused, abandoned] = [0, 0, 0, 0]
  for (const level of levels) {
    if (latency.count >= all / 10 && level.work / level.seconds > most) break
    latency.merge(level.latency)
    seconds += level.seconds
    requests += level.requests
    refused += level.refused
    abandoned += level.abandoned
  }
  return {
    latency,
    perSecond: requests / Math.max(1, seconds),
    refused: refused / Math.max(1, requests),
    abandoned: abandoned / Math.max(1, requests)
  }
}

/**
 * While a service has fallen behind, all requests wait: even the fastest tenth of those in a second take longer than this,
 * twice as long as nine of ten did at low load. `Infinity` where that is unknown.
 */
export const waitingMillis = (low: Histogram): number => 2 * (low.percentile(0.9) ?? Infinity)

/** Requests that a limit lets through are even. Those that a share of failures spares are random: their variance is their mean. */
const even = 0.5

/** Where requests wait, the fastest tenth take this many times as long as at low load. */
const waitingTimes = 1.5

/** While requests are refused: what is served, if that is a limit, of those in flight, which wait, or of their rate. */
const refusingOf = (groups: ReadonlyArray<Group>, low: Histogram, isCrowded: boolean): Capacity | undefined => {
  const seconds = secondsOf(groups)
  if (seconds < fewest) return undefined
  const least = groups.reduce((sum, group) => sum + group.seconds * group.leastMillis, 0) / seconds
  const limit = found("refusals", groups)
  if (least > waitingTimes * (low.percentile(0.1) ?? Infinity)) return isCrowded ? limit : undefined
  return limit.dispersion < even ? { ...limit, by: "rate" } : undefined
}

/** The knee: what is served in a second in which all requests wait, or in which some are refused, is the capacity. */
export const capacityOf = (groups: ReadonlyArray<Group>, low: Histogram, isCrowded: boolean): Capacity => {
  const waits = waitingMillis(low)
  if (waits === Infinity) return { kind: "unknown" }
  const behind = groups.filter(({ leastMillis }) => leastMillis > waits)
  const usual = highest(groups.filter(({ leastMillis, refusing }) => leastMillis <= waits && !refusing))
  // A service that hangs makes all requests wait too, but serves less than at other times.
  const loaded = behind.filter(({ served }) => served >= usual / 2)
  if (secondsOf(loaded) >= fewest && !keptPace(loaded)) {
    // Work whose client has left is not in the log: seconds without any show more.
    const whole = loaded.filter(({ leaving }) => !leaving)
    return found("backlog", worstHalf(secondsOf(whole) >= fewest ? whole : loaded))
  }
  const refusing = groups.filter((group) => group.refusing && group.served >= 0.9 * usual)
  const perSecond = Math.max(usual, highest(refusing))
  return refusingOf(refusing, low, isCrowded) ??
    (perSecond === 0 ? { kind: "unknown" } : { kind: "at least", perSecond })
}

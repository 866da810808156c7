import type { ClientResult, Recoveries, Scenario, ServiceResult, SimulationResult, Spread } from "../Simulator.ts"
import { isBounded } from "../simulator/bounds.ts"
import { runSummaryOf, shareOf } from "../simulator/runSummary.ts"
import { counted, percent, runLength } from "./charts/format.ts"
import type { State } from "./screen.ts"
import { duration } from "./text.ts"

/** The share of calls that succeeded. */
export const share = (result: SimulationResult, { totals }: ClientResult): string => {
  const share = shareOf(result, totals)
  return share === undefined ? "-" : percent(share)
}

/** Attempts per call. */
export const sendsPerCall = ({ totals: { attempts, calls } }: ClientResult): string =>
  calls === 0 ? "-" : (attempts / calls).toFixed(2)

/** The most requests in a second sent to any service. */
export const peakOf = (result: SimulationResult, services: ReadonlyArray<ServiceResult>): string => {
  const perSecond = runSummaryOf({ ...result, services }).peak?.perSecond
  if (perSecond === undefined) return "-"
  return `${counted(perSecond < 10 ? Number(perSecond.toFixed(1)) : Math.round(perSecond))}/s`
}

const seconds = (millis: number): string =>
  millis < 10_000 ? duration(millis) : `${counted(Math.round(millis / 1000))} s`

/** When the calls recovered. */
export const recovered = (result: SimulationResult): string => {
  const { recovery } = runSummaryOf(result)
  switch (recovery.kind) {
    case "always well":
      return result.partial ? "healthy so far" : "always healthy"
    case "never well":
    case "ill at the end":
      return result.partial ? "not yet" : `not within ${runLength(result.scenario)}`
    case "unknown":
      return "-"
    case "recovered":
      if (recovery.afterMillis === undefined) return seconds(recovery.atMillis)
      return recovery.afterMillis === 0 ? "immediately" : seconds(recovery.afterMillis)
  }
}

/** A figure of several runs: its mean, and the range from 5 to 95 % of them where they differ. */
export const spread = (found: Spread | undefined, write: (value: number) => string): string => {
  if (found === undefined) return "-"
  const [low, high] = [write(found.low), write(found.high)]
  return low === high ? write(found.mean) : `${write(found.mean)} (${withoutUnit(low, high)} to ${high})`
}

/** A figure without its unit, if the one after it has the same. */
const withoutUnit = (low: string, high: string): string => {
  const [unit = ""] = /[^\d.,]*$/.exec(high) ?? []
  return low.endsWith(unit) && !/\d$/.test(low) ? low.slice(0, low.length - unit.length) : low
}

/** `14 of 20 in 127 s (120 to 137 s)`. */
export const recovers = ({ afterMillis, of, runs }: Recoveries): string => {
  const after = afterMillis === undefined || afterMillis.high === 0 ? "" : ` in ${spread(afterMillis, seconds)}`
  return `${counted(runs)} of ${counted(of)}${after}`
}

/** Green where all runs recover, red where none does. */
export const stateOf = ({ of, runs }: Recoveries): State => runs === of ? "good" : runs === 0 ? "bad" : "doubtful"

/** The line above the summary of several runs. */
export const seedsLine = (results: ReadonlyArray<SimulationResult>): string => {
  const [first, last] = [results[0]!.scenario.seed, results.at(-1)!.scenario.seed]
  return results.length === 1
    ? `seed ${first}: one run, one random sample; --runs 20 shows a range`
    : `${results.length} runs, seeds ${first} to ${last}: mean (5 to 95 % of the runs)`
}

const hasOutage = ({ services }: Scenario): boolean => services.some(({ outages }) => outages.length > 0)

/** To where runs get back that recover, and from when that is counted. */
export const backTo = (scenario: Scenario): string =>
  hasOutage(scenario)
    ? "90 % of the success rate before the outage, and how long after it"
    : "where 90 % of calls succeed, and how long after the start of the run"

/** Explains the columns of the tables. The peak load is that of each service, or of the busiest. */
export const legend = (
  { bucketMillis, scenario }: SimulationResult,
  peak: "each" | "busiest"
): ReadonlyArray<string> => {
  const { fleets, services } = scenario
  return [
    "succeed: calls that succeed; p50 to max: their latency, retries included",
    `peak load: most requests per second${
      peak === "busiest" && services.length > 1 ? " to the busiest service" : ""
    }, in steps of ${duration(bucketMillis)}`,
    ...isBounded(scenario)
      ? [
        `recovered: from then on 90 % of calls${fleets.length > 1 ? " in total" : ""} succeed, counted from the ${
          hasOutage(scenario) ? "end of the last outage" : "start"
        }`
      ]
      : []
  ]
}

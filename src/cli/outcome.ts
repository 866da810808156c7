import type { ClientResult, ServiceResult, SimulationResult } from "../Simulator.ts"
import { counted, percent } from "./charts/format.ts"
import { recoveryOf, wellShare } from "./recovery.ts"
import { duration } from "./text.ts"

/** A share of calls or requests. */
export const share = (part: number, of: number): string => of === 0 ? "-" : percent(part / of)

/** Attempts per call. */
export const sendsPerCall = ({ totals: { attempts, calls } }: ClientResult): string =>
  calls === 0 ? "-" : (attempts / calls).toFixed(2)

/** The fleets, without the services that call others. */
export const fleetsOf = ({ clients }: SimulationResult): ReadonlyArray<ClientResult> =>
  clients.filter(({ kind }) => kind === "fleet")

/** The most requests a second in any bucket. */
export const peakOf = ({ bucketMillis }: SimulationResult, services: ReadonlyArray<ServiceResult>): string => {
  const most = Math.max(0, ...services.flatMap(({ series }) => series.map(({ received }) => received)))
  const perSecond = most * 1000 / bucketMillis
  return `${counted(perSecond < 10 ? Number(perSecond.toFixed(1)) : Math.round(perSecond))}/s`
}

/** When the calls of a fleet were well again. */
export const wellAgain = (result: SimulationResult, { series }: ClientResult): string => {
  const { afterMillis, well } = recoveryOf(result, series)
  if (well === "always") return result.partial ? "well so far" : "always well"
  if (well === "never") return result.partial ? "not yet" : "never"
  const after = afterMillis ?? 0
  if (after === 0) return "at once"
  return after < 10_000 ? duration(after) : `${counted(Math.round(after / 1000))} s`
}

/** What the columns of the tables mean. */
export const legend = ({ bucketMillis, scenario: { services } }: SimulationResult): ReadonlyArray<string> => [
  "succeed: calls that end well; p50 to max: how long those take, retries included",
  `peak load: requests in a second${services.length > 1 ? " to the busiest service" : ""}, in steps of ${
    duration(bucketMillis)
  }`,
  `well again: from ${
    services.some(({ outages }) => outages.length > 0) ? "the end of the last outage" : "when calls went badly"
  } until ${percent(wellShare)} of the calls succeed for good`
]

import type { ClientBucket, Scenario, SimulationResult } from "../Simulator.ts"
import { millis } from "../simulator/units.ts"

/** The share of the calls that end well while all is well. */
export const wellShare = 0.95

/** How long calls went badly. */
export interface Recovery {
  /** `"always"`: they never did. `"never"`: they did to the end. */
  readonly well: "always" | "again" | "never"
  /**
   * Until they ended well for good: from the end of the last outage, or without one from when they went badly. `null` where
   * they always or never did.
   */
  readonly afterMillis: number | null
}

const lastOutage = ({ services }: Scenario): number | undefined => {
  const ends = services.flatMap(({ outages }) => outages.map(({ to }) => millis(to)))
  return ends.length === 0 ? undefined : Math.max(...ends)
}

const isBad = ({ failed, succeeded }: ClientBucket): boolean => succeeded < wellShare * (succeeded + failed)

/** When the calls of a fleet were well again, looked at in buckets, as long as calls begin. */
export const recoveryOf = (
  { bucketMillis, scenario }: SimulationResult,
  series: ReadonlyArray<ClientBucket>
): Recovery => {
  const duration = millis(scenario.duration)
  const ended = series.filter(({ failed, fromMillis, succeeded }) => failed + succeeded > 0 && fromMillis < duration)
  const first = ended.find(isBad)
  if (first === undefined) return { well: "always", afterMillis: null }
  const last = ended[ended.map(isBad).lastIndexOf(true)] ?? first
  if (last === ended.at(-1)) return { well: "never", afterMillis: null }
  const from = lastOutage(scenario) ?? first.fromMillis
  return { well: "again", afterMillis: Math.max(0, last.fromMillis + bucketMillis - from) }
}

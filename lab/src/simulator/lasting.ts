import type { Outage } from "./scenario.ts"
import { millis } from "./units.ts"

/** The outage with the same beginning, and this many times as long. */
export const lasting = (outage: Outage, times: number): Outage => {
  const [from, to] = [millis(outage.from), millis(outage.to)]
  return { ...outage, to: from + (to - from) * times }
}

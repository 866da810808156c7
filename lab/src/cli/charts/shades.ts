import type { Scenario } from "../../Simulator.ts"
import { millis } from "../../simulator/units.ts"
import type { Shade } from "./figure.ts"

/** Stretches closer together than this share of the time become one. */
const closest = 1 / 500

/** When something was wrong with any service: in order, without overlaps. */
export const shadesOf = ({ services }: Scenario, untilMillis: number): ReadonlyArray<Shade> => {
  const outages = services
    .flatMap((service) => service.outages)
    .map(({ from, kind, to }): Shade => ({
      what: kind === "slow" ? "slow" : "outage",
      fromMillis: millis(from),
      toMillis: Math.min(untilMillis, millis(to))
    }))
    .filter(({ fromMillis, toMillis }) => fromMillis < toMillis)
    .sort((a, b) => a.fromMillis - b.fromMillis)
  const shades: Array<Shade> = []
  for (const outage of outages) {
    const before = shades.at(-1)
    if (before === undefined || outage.fromMillis > before.toMillis + untilMillis * closest) shades.push(outage)
    else {
      const what = before.what === outage.what ? before.what : "outage"
      shades[shades.length - 1] = { ...before, what, toMillis: Math.max(before.toMillis, outage.toMillis) }
    }
  }
  return shades
}

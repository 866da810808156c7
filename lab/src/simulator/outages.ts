import type { Outage } from "./scenario.ts"
import { millis } from "./units.ts"

/** An outage of one kind, in milliseconds. */
export type Window<Kind extends Outage["kind"]> = Extract<Outage, { readonly kind: Kind }> & {
  readonly fromMillis: number
  readonly toMillis: number
}

/** The outages of a kind. */
export const windowsOf = <Kind extends Outage["kind"]>(
  outages: ReadonlyArray<Outage>,
  kind: Kind
): ReadonlyArray<Window<Kind>> =>
  outages
    .filter((outage): outage is Extract<Outage, { readonly kind: Kind }> => outage.kind === kind)
    .map((outage) => ({ ...outage, fromMillis: millis(outage.from), toMillis: millis(outage.to) }))

/** The one that lasts at the time, the first in the scenario if several do. */
export const lasting = <Kind extends Outage["kind"]>(
  windows: ReadonlyArray<Window<Kind>>,
  nowMillis: number
): Window<Kind> | undefined =>
  windows.length === 0
    ? undefined
    : windows.find(({ fromMillis, toMillis }) => nowMillis >= fromMillis && nowMillis < toMillis)

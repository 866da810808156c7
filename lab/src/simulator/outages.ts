import type { Outage } from "./scenario.ts"
import { millis } from "./units.ts"

/** An outage of one kind, in milliseconds. */
export type Window<Kind extends Outage["kind"]> = Extract<Outage, { readonly kind: Kind }> & {
  readonly fromMillis: number
  readonly toMillis: number
}

/** The outages of a kind: of the whole service, or of one of its instances. */
export const windowsOf = <Kind extends Outage["kind"]>(
  outages: ReadonlyArray<Outage>,
  kind: Kind,
  instance?: number
): ReadonlyArray<Window<Kind>> =>
  outages
    .filter((outage): outage is Extract<Outage, { readonly kind: Kind }> =>
      outage.kind === kind && outage.instance === instance
    )
    .map((outage) => ({ ...outage, fromMillis: millis(outage.from), toMillis: millis(outage.to) }))

/** The one that lasts at the time, the first in the scenario if several do. */
export const lasting = <Kind extends Outage["kind"]>(
  windows: ReadonlyArray<Window<Kind>>,
  nowMillis: number
): Window<Kind> | undefined =>
  windows.length === 0
    ? undefined
    : windows.find(({ fromMillis, toMillis }) => nowMillis >= fromMillis && nowMillis < toMillis)

/** The outages that hold requests, and how many connections each has held. */
export class Holds {
  private readonly held = new Map<Window<"hold">, number>()

  constructor(private readonly windows: ReadonlyArray<Window<"hold">>) {}

  /** When a send made at this time is delivered: when the outages that hold it end; `Infinity` beyond their backlog. */
  deliversAt(nowMillis: number, fresh: boolean): number {
    const hold = lasting(this.windows, nowMillis)
    if (hold === undefined) return nowMillis
    if (hold.backlog !== undefined && fresh) {
      const held = this.held.get(hold) ?? 0
      if (held >= hold.backlog) return Infinity
      this.held.set(hold, held + 1)
    }
    return this.deliversAt(hold.toMillis, fresh)
  }
}

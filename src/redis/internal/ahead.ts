/** Leases of one cost, the oldest first, and when a retry of that cost last came. */
interface Stock {
  readonly leases: Array<{ readonly lease: string; readonly atMillis: number }>
  retriedAtMillis: number
}

/** Leases that no retry has used for this long are given back. */
const idleMillis = 1000

/** The most costs for which leases are kept ready: the retries of a policy have up to three. */
const mostCosts = 4

/** Leases that are ready for the next retries: each takes one of its own cost. */
export class Ahead {
  /** By cost, the one of the last retry last. */
  private readonly stocks = new Map<number, Stock>()
  private readonly giveBack: (lease: string) => void

  constructor(giveBack: (lease: string) => void) {
    this.giveBack = giveBack
  }

  /** A retry of this cost has come. Leases that are older than `freshMillis` go back: they would expire too soon. */
  retried(cost: number, nowMillis: number, freshMillis: number): void {
    const stock = this.stocks.get(cost) ?? { leases: [], retriedAtMillis: nowMillis }
    stock.retriedAtMillis = nowMillis
    this.stocks.delete(cost)
    this.stocks.set(cost, stock)
    while (stock.leases[0] !== undefined && nowMillis - stock.leases[0].atMillis > freshMillis) {
      this.giveBack(stock.leases.shift()!.lease)
    }
    for (const oldest of this.stocks.keys()) {
      if (this.stocks.size > mostCosts) this.drop(oldest)
    }
  }

  /** A lease of this cost, if one is ready. */
  take(cost: number): string | undefined {
    return this.stocks.get(cost)?.leases.shift()?.lease
  }

  /** Redis has granted one. */
  add(cost: number, lease: string, nowMillis: number): void {
    const stock = this.stocks.get(cost)
    if (stock === undefined) this.giveBack(lease)
    else stock.leases.push({ lease, atMillis: nowMillis })
  }

  /** Whether half of the leases of a cost are used, and the quota seems to have more of it. */
  isLow(wanted: number, tokens: number, nowMillis: number): boolean {
    return this.parts(wanted, nowMillis).some(([cost, leases, part]) => leases * 2 <= part && cost <= tokens)
  }

  /** The costs of the leases that are missing, the cheapest first: one that is too dear stands in no other's way. */
  missing(wanted: number, nowMillis: number): ReadonlyArray<number> {
    return this.parts(wanted, nowMillis)
      .sort(([cost], [other]) => cost - other)
      .flatMap(([cost, leases, part]) => Array.from({ length: Math.max(0, part - leases) }, () => cost))
  }

  /** Milliseconds until leases go back, unless a retry of their cost comes. */
  idleInMillis(nowMillis: number): number {
    let millis = Infinity
    for (const [cost, { retriedAtMillis }] of this.stocks) {
      const left = retriedAtMillis + idleMillis - nowMillis
      if (left <= 0) this.drop(cost)
      else millis = Math.min(millis, left)
    }
    return millis
  }

  /** Gives all of them back. */
  clear(): void {
    for (const cost of this.stocks.keys()) this.drop(cost)
  }

  private drop(cost: number): void {
    for (const { lease } of this.stocks.get(cost)!.leases) this.giveBack(lease)
    this.stocks.delete(cost)
  }

  /** The costs of late, how many leases each has, and its part of those that are wanted. */
  private parts(wanted: number, nowMillis: number): Array<readonly [cost: number, leases: number, part: number]> {
    if (wanted === 0) return []
    const live = [...this.stocks].filter(([, { retriedAtMillis }]) => nowMillis < retriedAtMillis + idleMillis)
    const part = Math.max(1, Math.floor(wanted / live.length))
    return live.map(([cost, { leases }]) => [cost, leases.length, part])
  }
}

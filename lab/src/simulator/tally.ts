import type { Tally } from "./result.ts"

/** Counts by key. */
export class Tallies<Key extends string> {
  private counts = new Map<Key, number>()

  add(key: Key, amount = 1): void {
    this.counts.set(key, (this.counts.get(key) ?? 0) + amount)
  }

  merge(that: Tallies<Key>): void {
    for (const [key, amount] of that.counts) this.add(key, amount)
  }

  get sum(): number {
    let sum = 0
    for (const amount of this.counts.values()) sum += amount
    return sum
  }

  toTally(): Tally<Key> {
    return Object.fromEntries([...this.counts].sort(([a], [b]) => a < b ? -1 : 1)) as Tally<Key>
  }
}

/** Seeded randomness (mulberry32). */
export class Chance {
  private state: number
  constructor(seed: number) {
    this.state = seed >>> 0
  }

  /** A number from 0, below 1. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.state ^ (this.state >>> 15), this.state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }

  /** A whole number from 0, below the limit. */
  below(limit: number): number {
    return Math.floor(this.next() * limit)
  }

  pick<A>(items: ReadonlyArray<A>): A {
    return items[this.below(items.length)]!
  }

  isLikely(probability: number): boolean {
    return this.next() < probability
  }

  /** Whether a seed has drawn the item: each with a probability of one half. */
  some<A>(items: ReadonlyArray<A>): ReadonlyArray<A> {
    return items.filter(() => this.isLikely(0.5))
  }
}

/** A hash of text that comes in pieces (FNV-1a, 2 times 32 bits). */
export class Hash {
  private low = 0x811c9dc5
  private high = 0xc9dc5118

  add(text: string): void {
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at)
      this.low = Math.imul(this.low ^ code, 0x01000193) >>> 0
      this.high = Math.imul(this.high ^ (code + (this.low & 0xff)), 0x01000193) >>> 0
    }
  }

  get text(): string {
    return this.high.toString(16).padStart(8, "0") + this.low.toString(16).padStart(8, "0")
  }
}

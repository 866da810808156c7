import type * as Clock from "effect/Clock"
import { MemoryStore, type StoreOptions } from "./memoryStore.ts"

/** A bucket in memory whose options can change while in use. */
export class ResizableStore extends MemoryStore {
  /** Keeps its share of tokens: half full stays half full. */
  change(options: StoreOptions, clock: Clock.Clock): void {
    const share = this.balance(clock) / this.capacity
    this.options = options
    this.firstAttemptCost = options.firstAttemptCost
    this.set(share * options.capacity, clock)
  }
}

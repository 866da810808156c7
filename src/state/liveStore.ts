import type * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { Ask, Reservation } from "../RetryQuotaStore.ts"
import { MemoryStore, type StoreOptions } from "./memoryStore.ts"

/** A bucket in memory whose options can change while in use. */
export class LiveStore extends MemoryStore {
  /** Ends the current waits once the quota stops instead of waiting. */
  private stopped = Deferred.makeUnsafe<"refused">()

  override reserve(cost: number, clock: Clock.Clock): Reservation | undefined | Ask {
    const answer = super.reserve(cost, clock)
    if (typeof answer !== "function") return answer
    return (patience, hold) => Effect.raceFirst(answer(patience, hold), Deferred.await(this.stopped))
  }

  /** Keeps its share of tokens: half full stays half full. Waiters check again, or go without. */
  change(options: StoreOptions, clock: Clock.Clock): void {
    const share = this.balance(clock) / this.capacity
    this.options = options
    this.firstAttemptCost = options.firstAttemptCost
    this.setBalance(share * options.capacity, clock)
    if (options.whenExhausted === "wait") return
    Deferred.doneUnsafe(this.stopped, Effect.succeed("refused"))
    this.stopped = Deferred.makeUnsafe<"refused">()
  }
}

import type * as Clock from "effect/Clock"
import type * as Effect from "effect/Effect"
import type { Ask, Reservation, RetryQuotaStore } from "../../RetryQuotaStore.ts"

/** Sets the tokens of a store, at least 0 and at most its capacity. A store that counts retries has none to set. */
export const setTokens = (store: RetryQuotaStore, tokens: number, clock: Clock.Clock): void => {
  const { capacity } = store
  const within = Math.max(0, Math.min(tokens, capacity))
  if (store.set !== undefined) return store.set(within, clock)
  if (capacity === Infinity) return
  const missing = within - store.balance(clock)
  if (missing >= 0) return store.deposit(missing, clock)
  const taken = store.reserve(-missing, clock)
  if (typeof taken === "object") taken.spend()
}

/** A store around another: a member that a subclass does not name is that of the other. */
export abstract class DelegatingStore implements RetryQuotaStore {
  abstract readonly store: RetryQuotaStore

  get capacity(): number {
    return this.store.capacity
  }

  get successIncrement(): number {
    return this.store.successIncrement
  }

  get firstAttemptCost(): number {
    return this.store.firstAttemptCost
  }

  get onExceeded(): "stop" | "wait" {
    return this.store.onExceeded
  }

  get isFull(): boolean | undefined {
    return this.store.isFull
  }

  get gates(): RetryQuotaStore["gates"] {
    return this.store.gates
  }

  get refresh(): Effect.Effect<void> | undefined {
    return this.store.refresh
  }

  reserve(cost: number, clock: Clock.Clock): Reservation | undefined | Ask {
    return this.store.reserve(cost, clock)
  }

  deposit(tokens: number, clock: Clock.Clock): void {
    this.store.deposit(tokens, clock)
  }

  set(tokens: number, clock: Clock.Clock): void {
    setTokens(this.store, tokens, clock)
  }

  balance(clock: Clock.Clock): number {
    return this.store.balance(clock)
  }
}

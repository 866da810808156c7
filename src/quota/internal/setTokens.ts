import type * as Clock from "effect/Clock"
import type { RetryQuotaStore } from "../../RetryQuotaStore.ts"

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

import type * as Clock from "effect/Clock"
import { setTokens } from "../../quota/internal/setTokens.ts"
import * as RetryQuota from "../../RetryQuota.ts"
import type { Reservation, RetryQuotaStore } from "../../RetryQuotaStore.ts"

/** Tokens whose return after the send means a success. */
const rewarded = (held: Reservation, reward: () => void): Reservation => {
  let left = false
  return {
    get cost() {
      return held.cost
    },
    resize: held.resize && ((cost) => held.resize!(cost)),
    sent: () => {
      left = true
      held.sent?.()
    },
    giveBack: () => {
      const isFirst = held.giveBack()
      if (isFirst && left) reward()
      return isFirst
    },
    spend: () => held.spend()
  }
}

/** The store, with `tokens` added by every success: of a first send, and of a retry in addition to what it took. */
const rewardingStore = (store: RetryQuotaStore, tokens: number): RetryQuotaStore => ({
  capacity: store.capacity,
  successIncrement: tokens,
  firstAttemptCost: store.firstAttemptCost,
  whenExhausted: store.whenExhausted,
  refresh: store.refresh,
  gates: store.gates,
  reserve: (cost, clock) => {
    const reward = (): void => store.deposit(tokens, clock)
    const answer = store.reserve(cost, clock)
    if (answer === undefined) return undefined
    return typeof answer === "function"
      ? (patience, hold) => answer(patience, (held) => hold(rewarded(held, reward)))
      : rewarded(answer, reward)
  },
  deposit: (amount: number, clock: Clock.Clock) => store.deposit(amount, clock),
  set: (tokens, clock) => setTokens(store, tokens, clock),
  balance: (clock) => store.balance(clock),
  get isFull() {
    return store.isFull
  }
})

/** The quota, with `tokens` added by every success, whether retried or not. */
export const rewardingEverySuccess = (tokens: number) => (quota: RetryQuota.Service): RetryQuota.Service =>
  RetryQuota.fromStore(rewardingStore(quota.store, tokens))

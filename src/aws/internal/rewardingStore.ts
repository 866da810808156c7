import type * as Clock from "effect/Clock"
import { DelegatingStore } from "../../quota/internal/delegatingStore.ts"
import * as RetryQuota from "../../RetryQuota.ts"
import type { Ask, Reservation, RetryQuotaStore } from "../../RetryQuotaStore.ts"

/** Tokens whose return after the send means a success. */
const rewarded = (held: Reservation, reward: () => void): Reservation => {
  let isSent = false
  return {
    get cost() {
      return held.cost
    },
    resize: held.resize && ((cost) => held.resize!(cost)),
    sent: () => {
      isSent = true
      held.sent?.()
    },
    giveBack: () => {
      const isFirst = held.giveBack()
      if (isFirst && isSent) reward()
      return isFirst
    },
    spend: () => held.spend()
  }
}

/** The store, with `tokens` added by every success: of a first send, and of a retry in addition to what it took. */
class RewardingStore extends DelegatingStore {
  constructor(readonly store: RetryQuotaStore, private readonly tokens: number) {
    super()
  }

  override get successIncrement(): number {
    return this.tokens
  }

  override reserve(cost: number, clock: Clock.Clock): Reservation | undefined | Ask {
    const reward = (): void => this.deposit(this.tokens, clock)
    const answer = this.store.reserve(cost, clock)
    if (answer === undefined) return undefined
    return typeof answer === "function"
      ? (patience, hold) => answer(patience, (held) => hold(rewarded(held, reward)))
      : rewarded(answer, reward)
  }
}

/** The quota, with `tokens` added by every success, whether retried or not. */
export const rewardingEverySuccess = (tokens: number) => (quota: RetryQuota.Service): RetryQuota.Service =>
  RetryQuota.fromStore(new RewardingStore(quota.store, tokens))

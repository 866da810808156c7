import type * as Clock from "effect/Clock"
import { DelegatingStore } from "../../quota/internal/delegatingStore.ts"
import { followed } from "../../quota/internal/reservation.ts"
import * as RetryQuota from "../../RetryQuota.ts"
import type { Ask, Reservation, RetryQuotaStore } from "../../RetryQuotaStore.ts"

/** The store, with `tokens` added by every success: of a first send, and of a retry in addition to what it took. */
class RewardingStore extends DelegatingStore {
  constructor(readonly store: RetryQuotaStore, private readonly tokens: number) {
    super()
  }

  override get successIncrement(): number {
    return this.tokens
  }

  override reserve(cost: number, clock: Clock.Clock): Reservation | undefined | Ask {
    // Tokens that go back after the send mean a success.
    const rewarded = (held: Reservation): Reservation =>
      followed(held, (isBack, isSent) => isBack && isSent && this.deposit(this.tokens, clock))
    const answer = this.store.reserve(cost, clock)
    return typeof answer === "function"
      ? (patience, hold) => answer(patience, (held) => hold(rewarded(held)))
      : answer && rewarded(answer)
  }
}

/** The quota, with `tokens` added by every success, whether retried or not. */
export const rewardingEverySuccess = (tokens: number) => (quota: RetryQuota.Service): RetryQuota.Service =>
  RetryQuota.fromStore(new RewardingStore(quota.store, tokens))

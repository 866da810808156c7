import type * as Clock from "effect/Clock"
import { DelegatingStore } from "../../quota/internal/delegatingStore.ts"
import { followed } from "../../quota/internal/reservation.ts"
import * as RetryQuota from "../../RetryQuota.ts"
import type { Reservation, RetryQuotaStore } from "../../RetryQuotaStore.ts"

/** A store in memory to which a retry that succeeds adds a token, as a first send does, besides those that it took. */
class RewardingStore extends DelegatingStore {
  constructor(readonly store: RetryQuotaStore) {
    super()
  }

  override reserve(cost: number, clock: Clock.Clock): Reservation | undefined {
    const held = this.store.reserve(cost, clock) as Reservation | undefined
    // Tokens that go back after the send mean a success.
    return held && followed(held, (isBack, isSent) => isBack && isSent && this.deposit(this.successIncrement, clock))
  }
}

/** The quota in memory, with a token added by every success, whether retried or not. */
export const rewardingEverySuccess = ({ store }: RetryQuota.Service): RetryQuota.Service =>
  RetryQuota.fromStore(new RewardingStore(store))

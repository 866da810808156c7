import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { checksOf } from "../../internal/checks.ts"
import { withMillis } from "../../internal/clock.ts"
import { DelegatingStore } from "../../quota/internal/delegatingStore.ts"
import { MemoryStore, validStore } from "../../quota/internal/memoryStore.ts"
import { followed } from "../../quota/internal/reservation.ts"
import type * as RetryQuota from "../../RetryQuota.ts"
import type { Ask, Reservation, RetryQuotaStore } from "../../RetryQuotaStore.ts"

/**
 * A store around another that accounts for what is taken from it.
 *
 * @internal
 */
export class Ledger extends DelegatingStore {
  /** Tokens of retries that were sent and did not succeed, of first sends, and of reservations spent by their owner. */
  spent = 0
  private readonly open = new Set<Reservation>()
  private readonly asks = new Set<object>()

  constructor(
    /** The store with the tokens. */
    readonly store: RetryQuotaStore,
    /** Whether tokens can come from elsewhere: from calls that succeed, or from a refill. */
    readonly gains = true
  ) {
    super()
  }

  override reserve(cost: number, clock: Clock.Clock): Reservation | undefined | Ask {
    const answer = this.store.reserve(cost, clock)
    if (answer === undefined) return undefined
    return typeof answer === "function" ? this.asking(answer) : this.noted(answer)
  }

  /** Tokens taken and not settled. */
  get held(): number {
    let sum = 0
    for (const { cost } of this.open) sum += cost
    return sum
  }

  /** How many wait for tokens. */
  get waiting(): number {
    return this.asks.size
  }

  private noted(held: Reservation): Reservation {
    const noted = followed(held, (isBack, isSent) => {
      this.open.delete(noted)
      // Tokens spent for a send that was never made are lost: the account does not balance.
      if (!isBack && isSent) this.spent += held.cost
    })
    this.open.add(noted)
    return noted
  }

  private asking(ask: Ask): Ask {
    return (patience, hold) =>
      Effect.suspend(() => {
        const waiter = {}
        const waiting = Effect.suspend(() => {
          this.asks.add(waiter)
          return ask(patience, (held) => {
            this.asks.delete(waiter)
            hold(this.noted(held))
          })
        })
        return Effect.ensuring(waiting, Effect.sync(() => this.asks.delete(waiter)))
      })
  }
}

/**
 * Makes an account of a bucket in memory. Throws `InvalidOption` when an option is invalid.
 *
 * @internal
 */
export const makeLedger = (options: RetryQuota.Options, constructorName: string): Effect.Effect<Ledger> => {
  const valid = validStore(options, checksOf(constructorName, options))
  const gains = valid.successIncrement > 0 || valid.refillPerSecond > 0
  return withMillis((nowMillis) => new Ledger(new MemoryStore(valid, nowMillis), gains))
}

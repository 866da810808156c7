/**
 * The contract of a retry quota: where its tokens are kept, and which retries may take them.
 *
 * `RetryQuota` works over any store. The bucket in memory, the one in Redis and the ledger of the testing kit are plain
 * implementations of this interface, and a store of your own works exactly like them: `RetryQuota.layerStore`.
 *
 * Members that are not effects are single atomic steps: they never wait, never throw, and are called while a call runs.
 * `RetryQuotaStoreSuite` of `effect-retry/testing` checks a store against this contract.
 *
 * @since 0.1.0
 */

import type * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type { SendGate } from "./SendGate.ts"

/**
 * Tokens taken for one send. They are settled once: given back, or spent. Settling again changes nothing and answers
 * `false`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reservation {
  /** How many tokens it holds. */
  readonly cost: number
  /**
   * The send that the tokens pay for is being made, so that they may be spent: for stores that keep an account. Sends that
   * race and share the tokens each call it. A store around another passes it on.
   */
  readonly sent?: (() => void) | undefined
  /** Puts the tokens back: the retry succeeded, or was never sent. */
  readonly giveBack: () => boolean
  /** Leaves the tokens taken: the retry was sent and did not succeed. */
  readonly spend: () => boolean
}

/**
 * Asks for tokens that are not there immediately: waits for them, or asks another process. `hold` is called once, in the
 * very step in which the tokens are taken, and not at all when they cannot be had. From then on the library settles them.
 * `patience` (0 or longer, may be infinite) says how long waiting is of any use. An interrupted effect has taken nothing.
 *
 * @category models
 * @since 0.1.0
 */
export type Ask = (
  patience: Duration.Duration,
  hold: (reservation: Reservation) => void
) => Effect.Effect<void>

/**
 * Where the tokens of a quota are kept.
 *
 * @category models
 * @since 0.1.0
 */
export interface RetryQuotaStore {
  /** The most tokens there can be: above 0, may be `Infinity`, as it is where not tokens but retries are counted. */
  readonly capacity: number
  /** Tokens that a call which succeeds without a retry puts in: from 0 to `capacity`. */
  readonly successIncrement: number
  /** Tokens that a first send takes: from 0 to `capacity`; 0 where first sends are free. */
  readonly firstAttemptCost: number
  /** Whether a retry without tokens is refused, or waits for them. */
  readonly whenExhausted: "stop" | "wait"
  /**
   * Takes `cost` tokens (0 or more): the reservation, `undefined` when it is refused, or a way to ask for it when the
   * answer is not there yet. A store that counts retries takes one for any cost above 0.
   */
  readonly reserve: (cost: number, clock: Clock.Clock) => Reservation | undefined | Ask
  /** Puts tokens in (0 or more), up to the capacity. Nothing where not tokens but retries are counted. */
  readonly deposit: (tokens: number, clock: Clock.Clock) => void
  /** Whether a deposit would change nothing. Default: that is not known. */
  readonly isFull?: boolean | undefined
  /** The tokens there are, as far as is known without asking: from 0 to `capacity`. */
  readonly balance: (clock: Clock.Clock) => number
  /**
   * Gates that belong to the quota: for a store that needs to know which sends are made, first ones too, and how each of
   * them ends. They are asked with those of the context. The same array for as long as the store lives. Default: none.
   */
  readonly gates?: ReadonlyArray<SendGate> | undefined
  /** Brings {@link balance} up to date, where the tokens are kept elsewhere. Default: nothing to do. */
  readonly refresh?: Effect.Effect<void> | undefined
}

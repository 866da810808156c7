/**
 * The contract of a retry quota: where its tokens are kept, and which retries may take them.
 *
 * `RetryQuota` works over any store. The bucket in memory, the one in Redis and the ledger of the testing kit are plain
 * implementations of this interface, and your own store works exactly like them: `RetryQuota.layerStore`.
 *
 * Members that are not effects are single atomic steps: they never wait and never throw, and they run inside the call.
 * `RetryQuotaStoreSuite` of `effect-retry/testing` checks a store against this contract.
 *
 * @since 0.1.0
 */

import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type { SendGate } from "./SendGate.ts"

/**
 * Tokens taken for one send. They are settled once: returned or spent. Settling again changes nothing and returns
 * `false`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reservation {
  /** How many tokens it holds. */
  readonly cost: number
  /**
   * The send that the tokens pay for is being made, so they may be spent: for stores that keep accounts. Racing sends
   * that share the tokens each call it. A store around another passes it on.
   */
  readonly sent?: (() => void) | undefined
  /** Returns the tokens: the retry succeeded, or was never sent. */
  readonly giveBack: () => boolean
  /** Spends the tokens: the retry was sent and did not succeed. */
  readonly spend: () => boolean
  /**
   * Holds `cost` tokens (0 or more) from now on: takes the difference or returns it, in one step, before the send is
   * made. Returns whether it could; otherwise nothing has changed. A lower cost is refused only by a settled
   * reservation, a higher one also if there are too few tokens, or others wait for them. Default: none, for a store
   * that cannot do it in one step.
   */
  readonly resize?: ((cost: number) => boolean) | undefined
}

/**
 * Why a store that was asked granted no tokens: see {@link Ask}.
 *
 * @category models
 * @since 0.1.0
 */
export type Shortage = "refused" | void

/**
 * Asks for tokens that are not immediately available: waits for them, or asks another process. `hold` is called once,
 * in the same step in which the tokens are taken, and never if they cannot be had. From then on the library settles
 * them. `patience` (0 or longer, may be infinite) says how long waiting is useful. An interrupted effect has taken
 * nothing.
 *
 * Without `hold`, the result says why there are no tokens: `"refused"` if more patience would not have helped, for
 * example because too many callers already wait; `undefined` if they are not available within this patience, or if the
 * store cannot tell. A call with a deadline then stops with `"quota-exhausted"` or `"deadline"`. In a store whose
 * `onExceeded` is `"stop"`, both are a refusal.
 *
 * @category models
 * @since 0.1.0
 */
export type Ask = (
  patience: Duration.Duration,
  hold: (reservation: Reservation) => void
) => Effect.Effect<Shortage>

/**
 * Where the tokens of a quota are kept.
 *
 * @category models
 * @since 0.1.0
 */
export interface RetryQuotaStore {
  /** The maximum number of tokens: above 0, may be `Infinity`, as in a store that counts retries instead of tokens. */
  readonly capacity: number
  /** Tokens added by a call that succeeds without a retry: from 0 to `capacity`. */
  readonly successIncrement: number
  /** Tokens that a first send takes: from 0 to `capacity`; 0 if first sends are free. */
  readonly firstAttemptCost: number
  /** Whether a retry without tokens is refused, or waits for them. */
  readonly onExceeded: "stop" | "wait"
  /**
   * Takes `cost` tokens (0 or more). Returns the reservation, `undefined` if refused, or a way to ask if the result is
   * not available yet. A store that counts retries takes one for any cost above 0.
   */
  readonly reserve: (cost: number, clock: Clock.Clock) => Reservation | undefined | Ask
  /** Adds tokens (0 or more), up to the capacity. Does nothing in a store that counts retries. */
  readonly deposit: (tokens: number, clock: Clock.Clock) => void
  /**
   * Sets the number of tokens (from 0 to `capacity`), and serves those who wait for them. Default: deposits what is
   * missing, or takes the excess if that is available immediately.
   */
  readonly set?: ((tokens: number, clock: Clock.Clock) => void) | undefined
  /** Whether a deposit would change nothing. Default: unknown. */
  readonly isFull?: boolean | undefined
  /** The current number of tokens, as far as known without asking: from 0 to `capacity`. */
  readonly balance: (clock: Clock.Clock) => number
  /**
   * Gates that belong to the quota: for a store that needs to see which sends are made, first sends too, and how each
   * ends. They are asked along with those of the context. The same array for the store's whole life. Default: none.
   */
  readonly gates?: ReadonlyArray<SendGate> | undefined
  /** Refreshes {@link balance} if the tokens are kept elsewhere. Default: nothing to do. */
  readonly refresh?: Effect.Effect<void> | undefined
}

/**
 * The store of a quota as a service, for a quota that is made where the store is not known: `RetryQuota.layerStore`
 * takes it like any effect that gives a store.
 *
 * **Example** (In memory; `RetryQuotaRedis.layerStore` keeps it in Redis)
 *
 * ```ts
 * import * as RetryBudget from "effect-retry/RetryBudget"
 *
 * const quota = RetryQuota.layerStore(RetryQuotaStore.Store).pipe(
 *   Layer.provide(Layer.effect(RetryQuotaStore.Store, RetryBudget.bucket({ capacity: 100 })))
 * )
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export class Store extends Context.Service<Store, RetryQuotaStore>()("effect-retry/RetryQuotaStore/Store") {}

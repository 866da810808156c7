/**
 * A retry quota for tests that accounts for its tokens.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { checks } from "../internal/checks.ts"
import type { InvalidOption } from "../InvalidOption.ts"
import * as RetryQuota from "../RetryQuota.ts"
import type { RetryQuotaStore } from "../RetryQuotaStore.ts"
import { Ledger, makeLedger } from "./internal/ledger.ts"

/**
 * The state of a quota.
 *
 * @category models
 * @since 0.1.0
 */
export interface QuotaState {
  /** The current number of tokens: from 0 to `capacity`. */
  readonly balance: number
  readonly capacity: number
  /** Tokens of retries in their backoff or in flight, and of unsettled reservations. */
  readonly held: number
  /** Retries and first attempts waiting for tokens. */
  readonly waiting: number
}

/**
 * Its own quota, whose state can be read with {@link state} and set with {@link setBalance}. It behaves like that of
 * `RetryQuota.layer`, and takes the same options: `initial` is the initial balance. Throws `InvalidOption` when an
 * option is invalid.
 *
 * **Example** (An exhausted quota)
 *
 * ```ts
 * const call = outcomes([transient])
 * const program = Effect.gen(function*() {
 *   yield* Effect.exit(call.send.pipe(withRetry(awsStandard), runToEnd))
 *   assert.strictEqual((yield* TestQuota.state).balance, 3)
 * }).pipe(Effect.provide(TestQuota.layer({ initial: 3 })))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: RetryQuota.Options = {}): Layer.Layer<RetryQuota.RetryQuota> =>
  Layer.effect(RetryQuota.RetryQuota, Effect.map(makeLedger(options, "TestQuota.layer"), RetryQuota.fromStore))

/**
 * A quota over your own store whose state can be read with {@link state}.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerStore = <E, R>(
  store: Effect.Effect<RetryQuotaStore, E, R>
): Layer.Layer<RetryQuota.RetryQuota, E, R> =>
  Layer.effect(RetryQuota.RetryQuota, Effect.map(store, (own) => RetryQuota.fromStore(new Ledger(own))))

/**
 * The quota's current state. For a quota not made by {@link layer} or {@link layerStore}, `held` and `waiting` are 0:
 * it does not keep track of them.
 *
 * @category getters
 * @since 0.1.0
 */
export const state: Effect.Effect<QuotaState, never, RetryQuota.RetryQuota> = RetryQuota.RetryQuota.use((
  { balance, capacity, store }
) =>
  Effect.map(balance, (balance) => {
    const { held, waiting } = store instanceof Ledger ? store : { held: 0, waiting: 0 }
    return { balance, capacity, held, waiting }
  })
)

/**
 * Sets the balance of the quota, as if others had used it: a number from 0 to its capacity. Fails for other values. A
 * store that has to ask for tokens, such as one in Redis, can be given tokens, but none can be taken from it.
 *
 * @category combinators
 * @since 0.1.0
 */
export const setBalance = (tokens: number): Effect.Effect<void, InvalidOption, RetryQuota.RetryQuota> =>
  RetryQuota.RetryQuota.use((quota) =>
    Effect.flatMap(
      Effect.try({
        try: () => checks("TestQuota.setBalance").between("tokens", tokens, 0, quota.capacity),
        catch: (error) => error as InvalidOption
      }),
      () => quota.set(tokens)
    )
  )

/**
 * The contract of `RetryQuotaStore` as a suite of tests, for your own store. It needs no test framework: each law is an
 * effect with a name.
 *
 * **Example** (In a test file)
 *
 * ```ts
 * const makeStore = Effect.map(RetryQuota.make(), ({ store }) => store)
 * const laws = RetryQuotaStoreSuite.laws(makeStore)
 * // for (const law of laws) it.effect(law.name, () => law.run)
 * ```
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { also, callable, checksOf, rejectUnknown } from "../internal/checks.ts"
import type { RetryQuotaStore } from "../RetryQuotaStore.ts"
import type { Law } from "./internal/law.ts"
import { storeLawsOf } from "./internal/storeLaws.ts"
import { Subject } from "./internal/storeSubject.ts"
import { virtual } from "./internal/time.ts"

/**
 * Options for testing a store.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** What the store does with a retry when there are too few tokens. Default `"stop"`. */
  readonly onExceeded?: "stop" | "wait" | undefined
  /**
   * Lets milliseconds pass for a store outside the program, such as `Effect.sleep`. Default: a `TestClock` is moved.
   * Without a `TestClock`, laws that interrupt a caller at every step are left out.
   */
  readonly elapse?: ((millis: number) => Effect.Effect<void>) | undefined
  /** How far off a balance may be, in tokens, if real time passes while it is read. Default 0. */
  readonly slack?: number | undefined
}

/**
 * The laws of every store: tokens are conserved, a reservation is settled once, missing tokens are not granted, and an
 * interruption takes nothing. Test its `gates` with their own suite, `SendGateSuite`. `make` makes a new store each time, with any
 * number of tokens in it. A broken law fails with {@link ContractBroken}.
 *
 * @category constructors
 * @since 0.1.0
 */
export const laws = <E, R>(
  make: Effect.Effect<RetryQuotaStore, E, R>,
  options: Options = {}
): ReadonlyArray<Law<Exclude<R, Scope.Scope>>> => {
  const check = checksOf("RetryQuotaStoreSuite.laws", options)
  also(check, "elapse", "slack", "onExceeded")
  rejectUnknown(check, options)
  const { elapse, slack = 0, onExceeded = "stop" } = options
  const time = elapse === undefined ? virtual : { elapse: callable(check, "elapse", elapse), isVirtual: false }
  const subject = Effect.map(Effect.orDie(make), (store) => new Subject(store, time, slack))
  return storeLawsOf(subject, time, onExceeded)
}

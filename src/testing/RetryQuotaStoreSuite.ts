/**
 * The contract of `RetryQuotaStore` as a suite of tests, for a store of your own. It needs no test framework: each law is
 * an effect with a name.
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
import type * as RetryQuota from "../RetryQuota.ts"
import type { RetryQuotaStore } from "../RetryQuotaStore.ts"
import { bucketLawsOf } from "./internal/bucketLaws.ts"
import { countingLawsOf } from "./internal/countingLaws.ts"
import { type Law, type Time, virtual } from "./internal/laws.ts"
import { lawsOf } from "./internal/storeLaws.ts"
import { Subject } from "./internal/subject.ts"

/**
 * How a store is tested.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /**
   * What the store counts: tokens, or retries, of which it takes one for any cost. Such a store must grant ten retries as
   * it is made. Default `"tokens"`.
   */
  readonly counts?: "tokens" | "retries" | undefined
  /** What the store does with a retry for which there are too few tokens. Default `"stop"`. */
  readonly whenExhausted?: "stop" | "wait" | undefined
  /**
   * Has milliseconds pass for a store that lives outside of the program, such as `Effect.sleep`. Default: a `TestClock` is
   * moved. Without one, laws that interrupt a call at every step are left out.
   */
  readonly elapse?: ((millis: number) => Effect.Effect<void>) | undefined
  /** Tokens by which a balance may be off, where real time passes while it is read. Default 0. */
  readonly slack?: number | undefined
}

const timeOf = ({ elapse }: Options): Time => elapse === undefined ? virtual : { elapse, isVirtual: false }

/**
 * The laws that hold for every store: tokens are conserved, a reservation is settled once, what is not there is not
 * granted, an interruption takes nothing, and calls pay what they should; of a store that counts retries, what can be said of
 * any. Its `gates` have a suite of their own, `SendGateSuite`. `make` makes another store each time, with any
 * number of tokens in it. A law fails with {@link ContractBroken}.
 *
 * @category constructors
 * @since 0.1.0
 */
export const laws = <E, R>(
  make: Effect.Effect<RetryQuotaStore, E, R>,
  options: Options = {}
): ReadonlyArray<Law<Exclude<R, Scope.Scope>>> => {
  const { counts = "tokens", slack = 0, whenExhausted = "stop" } = options
  const time = timeOf(options)
  const subject = Effect.map(Effect.orDie(make), (store) => new Subject(store, time, slack))
  return counts === "tokens" ? lawsOf(subject, time, whenExhausted) : countingLawsOf(subject, time, whenExhausted)
}

/**
 * The laws of a store that is a token bucket with the options of `RetryQuota.make`: those of every store, for buckets of
 * several kinds, and those of the refill.
 *
 * @category constructors
 * @since 0.1.0
 */
export const bucketLaws = <E, R>(
  make: (options: RetryQuota.Options) => Effect.Effect<RetryQuotaStore, E, R>,
  options: Omit<Options, "counts" | "whenExhausted"> = {}
): ReadonlyArray<Law<Exclude<R, Scope.Scope>>> => {
  const time = timeOf(options)
  const subject = (bucket: RetryQuota.Options) => {
    const slack = bucket.refillPerSecond === undefined ? 0 : options.slack ?? 0
    return Effect.map(Effect.orDie(Effect.suspend(() => make(bucket))), (store) => new Subject(store, time, slack))
  }
  return bucketLawsOf(subject, time)
}

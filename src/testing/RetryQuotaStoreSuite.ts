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
import { also, callable, checksOf, known } from "../internal/checks.ts"
import type * as RetryQuota from "../RetryQuota.ts"
import type { RetryQuotaStore } from "../RetryQuotaStore.ts"
import { bucketLawsOf } from "./internal/bucketLaws.ts"
import { countingLawsOf } from "./internal/countingLaws.ts"
import { type Law, type Time, virtual } from "./internal/laws.ts"
import { lawsOf } from "./internal/storeLaws.ts"
import { Subject } from "./internal/subject.ts"

/**
 * Options for testing a store.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /**
   * What the store counts: tokens, or retries, in which case any cost takes one. A store that counts retries must grant
   * ten of them when it is new. Default `"tokens"`.
   */
  readonly counts?: "tokens" | "retries" | undefined
  /** What the store does with a retry when there are too few tokens. Default `"stop"`. */
  readonly whenExhausted?: "stop" | "wait" | undefined
  /**
   * Lets milliseconds pass for a store outside the program, such as `Effect.sleep`. Default: a `TestClock` is moved.
   * Without a `TestClock`, laws that interrupt a call at every step are left out.
   */
  readonly elapse?: ((millis: number) => Effect.Effect<void>) | undefined
  /** How far off a balance may be, in tokens, if real time passes while it is read. Default 0. */
  readonly slack?: number | undefined
}

const timeOf = (constructorName: string, options: Options, ...names: ReadonlyArray<keyof Options>): Time => {
  const check = checksOf(`RetryQuotaStoreSuite.${constructorName}`, options)
  also(check, "elapse", "slack", ...names)
  known(check, options)
  const { elapse } = options
  return elapse === undefined ? virtual : { elapse: callable(check, "elapse", elapse), isVirtual: false }
}

/**
 * The laws of every store: tokens are conserved, a reservation is settled once, missing tokens are not granted, an
 * interruption takes nothing, and calls pay what they should; for a store that counts retries, the laws that apply to
 * any such store. Test its `gates` with their own suite, `SendGateSuite`. `make` makes a new store each time, with any
 * number of tokens in it. A broken law fails with {@link ContractBroken}.
 *
 * @category constructors
 * @since 0.1.0
 */
export const laws = <E, R>(
  make: Effect.Effect<RetryQuotaStore, E, R>,
  options: Options = {}
): ReadonlyArray<Law<Exclude<R, Scope.Scope>>> => {
  const time = timeOf("laws", options, "counts", "whenExhausted")
  const { counts = "tokens", slack = 0, whenExhausted = "stop" } = options
  const subject = Effect.map(Effect.orDie(make), (store) => new Subject(store, time, slack))
  return counts === "tokens" ? lawsOf(subject, time, whenExhausted) : countingLawsOf(subject, time, whenExhausted)
}

/**
 * The laws of a store that is a token bucket with the options of `RetryQuota.make`: those of every store, for several
 * kinds of buckets, and those of the refill.
 *
 * @category constructors
 * @since 0.1.0
 */
export const bucketLaws = <E, R>(
  make: (options: RetryQuota.Options) => Effect.Effect<RetryQuotaStore, E, R>,
  options: Omit<Options, "counts" | "whenExhausted"> = {}
): ReadonlyArray<Law<Exclude<R, Scope.Scope>>> => {
  const time = timeOf("bucketLaws", options)
  const subject = (bucket: RetryQuota.Options) => {
    const slack = bucket.refillPerSecond === undefined ? 0 : options.slack ?? 0
    return Effect.map(Effect.orDie(Effect.suspend(() => make(bucket))), (store) => new Subject(store, time, slack))
  }
  return bucketLawsOf(subject, time)
}

/**
 * Budgets for retries, each a store of `RetryQuota`: a share of calls, of what is in flight, gRPC's throttle, and all of
 * several together. Policies do not change: they ask the quota.
 *
 * Which one to take: {@link bucket} joined with {@link share}. A bucket that successes pay for runs dry in an outage, and
 * stays so; a share bounds what retries add to the load while the bucket is still full. A share alone keeps an outage
 * alive: it goes on paying for retries however few calls succeed, and a service that is behind gets so much more to do for
 * as long as it stays behind.
 *
 * All but the bucket count retries, not tokens: one of `awsStandard` costs 5 tokens of a bucket, and one retry here. A
 * retry whose cost is 0 takes nothing. They see every send, as a gate does, and cost as much. `SmithyGuide` makes its
 * sends without gates: its calls pay for no share and are not in flight.
 *
 * A budget is an effect that makes a store: `RetryQuota.layerStore` makes a layer of it.
 *
 * @since 0.1.0
 */

import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { checks } from "./internal/checks.ts"
import { monotonicMillis } from "./internal/clock.ts"
import { tokenEpsilon } from "./internal/math/bucket.ts"
import * as RetryQuota from "./RetryQuota.ts"
import type { RetryQuotaStore } from "./RetryQuotaStore.ts"
import type { Outcome } from "./SendGate.ts"
import { GrpcThrottleStore } from "./state/grpcThrottle.ts"
import { InFlightStore } from "./state/inFlight.ts"
import { JoinedStore } from "./state/joined.ts"
import { MemoryStore } from "./state/memoryStore.ts"
import { isRejected } from "./state/rejection.ts"
import { ShareStore } from "./state/share.ts"

/**
 * The bucket of `RetryQuota.make`, for {@link all}. Throws `InvalidOption` when an option is impossible.
 *
 * @category constructors
 * @since 0.1.0
 */
export const bucket = (options?: RetryQuota.Options): Effect.Effect<RetryQuotaStore> => {
  const valid = RetryQuota.validated(options ?? {}, "RetryBudget.bucket")
  return Effect.clockWith((clock) => Effect.sync(() => new MemoryStore(valid, monotonicMillis(clock))))
}

/**
 * How a share of calls is made.
 *
 * @category models
 * @since 0.1.0
 */
export interface ShareOptions {
  /** Retries that a call pays for: from 0 to 1. Default 0.2. */
  readonly share?: number | undefined
  /**
   * Retries a second that nobody pays for, so that a client with few calls may retry: a finite number of at least 0.
   * Default 10. Each process has its own: in a fleet of hundreds, take less.
   */
  readonly minPerSecond?: number | undefined
  /** For how long a call pays: a finite duration above 0. Default 10 seconds. */
  readonly window?: Duration.Input | undefined
}

/**
 * As many retries as are a share of the calls of the last while, and some a second. Throws `InvalidOption` when an option
 * is impossible.
 *
 * **Details**
 *
 * Each first send pays for `share` of a retry, however it ends; it expires, with what was taken of it, after the window,
 * to a tenth of it. `minPerSecond` times the window is a reserve: what was taken of it comes back when the window has
 * passed. A retry that is never sent takes nothing; one that succeeds gives nothing back. Shares are exact: 0.6 of ten
 * calls are six retries. Source of rule and defaults: Finagle, `RetryBudget`; Linkerd and tower have the same.
 *
 * **Gotchas**
 *
 * It starts with the reserve alone. In an outage it pays for retries as long as calls are made: join it with a
 * {@link bucket}.
 *
 * @category constructors
 * @since 0.1.0
 */
export const share = (options?: ShareOptions): Effect.Effect<RetryQuotaStore> => {
  const check = checks("RetryBudget.share")
  const { minPerSecond = 10, share = 0.2, window = 10_000 } = options ?? {}
  const valid = {
    share: check.between("share", share, 0, 1),
    minPerSecond: check.amount("minPerSecond", minPerSecond),
    windowMillis: check.positiveDuration("window", window)
  }
  return Effect.clockWith((clock) => Effect.sync(() => new ShareStore(valid, monotonicMillis(clock))))
}

/**
 * What is under way.
 *
 * @category models
 * @since 0.1.0
 */
export interface UnderWay {
  /** Sends that are made or wait for a gate, first ones and retries. */
  readonly sends: number
  /** First sends among them. */
  readonly firstSends: number
  /** Retries from when they are decided on until they end. */
  readonly retries: number
}

/**
 * How a budget in flight is made.
 *
 * @category models
 * @since 0.1.0
 */
export interface InFlightOptions {
  /** Retries under way at one time, as a share of all sends under way: from 0 to 1. Default 0.2. */
  readonly share?: number | undefined
  /** How many retries may be under way in any case: a whole number of at least 0. Default 3. */
  readonly atLeast?: number | undefined
  /**
   * A rule of your own, in place of the two: how many retries may be under way. A retry passes while there are fewer.
   * Default: the whole part of the share, and at least so many.
   */
  readonly most?: ((underWay: UnderWay) => number) | undefined
}

/**
 * As many retries at one time as are a share of the sends under way, at least so many. Throws `InvalidOption` when an
 * option is impossible.
 *
 * **Details**
 *
 * A send is under way from when it asks its gates until it ends; a retry from when it is decided on, its delay included,
 * until it ends. Source of rule and defaults: Envoy, `retry_budget`, which does not count a retry in its delay.
 *
 * **Example** (The rule of failsafe-go: a retry passes while those before it are at most a share of the executions)
 *
 * ```ts
 * const most = ({ firstSends, retries }: RetryBudget.UnderWay) =>
 *   Math.max(3, Math.floor(0.2 * (firstSends + retries)) + 1)
 * const quotaLayer = RetryQuota.layerStore(RetryBudget.inFlight({ most }))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const inFlight = (options?: InFlightOptions): Effect.Effect<RetryQuotaStore> => {
  const rule = options?.most === undefined ? shareOf(options ?? {}) : ruleOf(options)
  return Effect.sync(() => new InFlightStore(rule))
}

type Most = (underWay: UnderWay) => number

const shareOf = ({ atLeast = 3, share = 0.2 }: InFlightOptions): Most => {
  const check = checks("RetryBudget.inFlight")
  check.between("share", share, 0, 1)
  check.count("atLeast", atLeast, 0)
  return ({ sends }) => Math.max(atLeast, Math.floor(share * sends + tokenEpsilon))
}

const ruleOf = ({ atLeast, most, share }: InFlightOptions): Most => {
  const { reject } = checks("RetryBudget.inFlight")
  if (typeof most !== "function") return reject("most", most, "a function of what is under way")
  return share === undefined && atLeast === undefined
    ? most
    : reject("most", most, "undefined where share or atLeast is given")
}

/**
 * How gRPC's throttle is made.
 *
 * @category models
 * @since 0.1.0
 */
export interface GrpcOptions {
  /** The tokens at the start, and the most there can be: a whole number from 1 to 1000. Default 10. */
  readonly maxTokens?: number | undefined
  /** What a success puts in: from 0.001 to `maxTokens`, of which three decimals count. Default 0.1. */
  readonly tokenRatio?: number | undefined
  /**
   * Whether a failure takes a token. Default: one that may be retried, a throttle, a time-out, or one whose retry a
   * rule forbids.
   */
  readonly isFailure?: ((outcome: Outcome) => boolean) | undefined
}

/**
 * gRPC's `retryThrottling`: each failure takes a token, each success puts `tokenRatio` in, and retries pass while there is
 * more than one half of `maxTokens`. A retry itself takes nothing. Throws `InvalidOption` when an option is impossible.
 * Source: gRPC proposal A6, whose example has the defaults.
 *
 * @category constructors
 * @since 0.1.0
 */
export const grpc = (options?: GrpcOptions): Effect.Effect<RetryQuotaStore> => {
  const check = checks("RetryBudget.grpc")
  const { isFailure = isRejected, maxTokens = 10, tokenRatio = 0.1 } = options ?? {}
  if (!Number.isInteger(maxTokens) || maxTokens < 1 || maxTokens > 1000) {
    check.reject("maxTokens", maxTokens, "a whole number from 1 to 1000")
  }
  check.between("tokenRatio", tokenRatio, 0.001, maxTokens)
  if (typeof isFailure !== "function") check.reject("isFailure", isFailure, "a function of an outcome")
  const milliRatio = Math.floor(tokenRatio * 1000 + tokenEpsilon)
  return Effect.sync(() => new GrpcThrottleStore({ maxMilliTokens: maxTokens * 1000, milliRatio, isFailure }))
}

/**
 * A budget that grants a retry where each of these does. What one has granted goes back when another refuses. Throws
 * `InvalidOption` when there is none.
 *
 * **Details**
 *
 * Stores that wait, or ask another process, are asked last, one after the other; what they wait for is given back if the
 * wait ends in vain. A success pays each of them what it asks for, a first send each its fee. `balance` is that of the
 * store with the least.
 *
 * **Example** (The default advice: a bucket that successes pay for, and no more than a fifth of the calls)
 *
 * ```ts
 * const quotaLayer = RetryQuota.layerStore(RetryBudget.all([RetryBudget.bucket(), RetryBudget.share()]))
 * const program = call.pipe(withRetry(awsStandard), Effect.provide(quotaLayer))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const all = <const Budgets extends ReadonlyArray<Effect.Effect<RetryQuotaStore, any, any>>>(
  budgets: Budgets
): Effect.Effect<RetryQuotaStore, Effect.Error<Budgets[number]>, Effect.Services<Budgets[number]>> => {
  if (!Array.isArray(budgets) || budgets.length === 0) {
    checks("RetryBudget.all").reject("budgets", budgets, "an array with at least one budget")
  }
  const made: ReadonlyArray<
    Effect.Effect<RetryQuotaStore, Effect.Error<Budgets[number]>, Effect.Services<Budgets[number]>>
  > = budgets
  return Effect.map(
    Effect.all(made),
    (stores) => new JoinedStore(stores, (cost, balance) => new RetryQuota.QuotaExhausted({ cost, balance }))
  )
}

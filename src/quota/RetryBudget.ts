/**
 * Budgets for retries, each a store for `RetryQuota`: a share of calls, a share of sends in flight, gRPC's throttle,
 * and several combined. Policies do not change: they ask the quota.
 *
 * Which one to use: {@link bucket} joined with {@link share}. A bucket filled by successes runs dry in an outage and
 * stays dry; a share limits the load that retries add while the bucket is still full. A share alone keeps an outage
 * alive: it pays for retries however few calls succeed, so a service that is behind gets that much more work for as
 * long as it is behind.
 *
 * All but the bucket count retries, not tokens: one of `awsStandard` costs 5 tokens of a bucket, and one retry here. A
 * retry that costs 0 takes nothing. They see every send, as a gate does, and cost as much. `SmithyGuide` sends without
 * gates: its calls pay for no share and are not counted in flight.
 *
 * A budget is an effect that makes a store: `RetryQuota.layerStore` turns it into a layer.
 *
 * @since 0.1.0
 */

import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { checks, checksOf } from "../internal/checks.ts"
import { withMillis } from "../internal/clock.ts"
import * as RetryQuota from "../RetryQuota.ts"
import type { RetryQuotaStore } from "../RetryQuotaStore.ts"
import type { Outcome } from "../SendGate.ts"
import { GrpcThrottleStore, validGrpc } from "./internal/grpcBudget.ts"
import { InFlightStore, validInFlight } from "./internal/inFlightBudget.ts"
import { JoinedStore } from "./internal/joinedStore.ts"
import { MemoryStore, validStore } from "./internal/memoryStore.ts"
import { ShareStore, validShare } from "./internal/shareBudget.ts"

/** Makes a store from valid options. */
const making = <Valid>(valid: Valid, Store: new(valid: Valid, nowMillis: number) => RetryQuotaStore) =>
  withMillis((nowMillis) => new Store(valid, nowMillis))

/**
 * The bucket of `RetryQuota.make`, for {@link all}. Throws `InvalidOption` when an option is invalid.
 *
 * @category constructors
 * @since 0.1.0
 */
export const bucket = (options: RetryQuota.Options = {}): Effect.Effect<RetryQuotaStore> =>
  making(validStore(options, checksOf("RetryBudget.bucket", options)), MemoryStore)

/**
 * Options of a share of calls.
 *
 * @category models
 * @since 0.1.0
 */
export interface ShareOptions {
  /** Retries that one call pays for: from 0 to 1. Default 0.2. */
  readonly share?: number | undefined
  /**
   * Retries per second on top of that, so a client with few calls can retry: a finite number of at least 0. Default 10.
   * Each process has its own: in a fleet of hundreds, use less.
   */
  readonly minPerSecond?: number | undefined
  /** How long a call pays: a finite duration above 0. Default 10 seconds. */
  readonly window?: Duration.Input | undefined
}

/**
 * Allows retries up to a share of the recent calls, plus a few per second. Throws `InvalidOption` when an option is
 * invalid.
 *
 * **Details**
 *
 * Each first send pays for `share` of a retry, however it ends. That, and what was taken of it, expires after the
 * window, to within a tenth of it. `minPerSecond` times the window is a reserve: what is taken from it returns after
 * the window. A retry that is never sent takes nothing; one that succeeds returns nothing. Shares are exact: 0.6 of ten
 * calls are six retries. Source of rule and defaults: Finagle, `RetryBudget`; Linkerd and tower use the same.
 *
 * **Gotchas**
 *
 * It starts with only the reserve. In an outage it pays for retries as long as calls are made: join it with a
 * {@link bucket}.
 *
 * @category constructors
 * @since 0.1.0
 */
export const share = (options: ShareOptions = {}): Effect.Effect<RetryQuotaStore> =>
  making(validShare(options), ShareStore)

/**
 * What is in progress.
 *
 * @category models
 * @since 0.1.0
 */
export interface UnderWay {
  /** Sends made or waiting for a gate, first sends and retries. */
  readonly sends: number
  /** First sends among them. */
  readonly firstSends: number
  /** Retries, from the decision to retry until they end. */
  readonly retries: number
}

/**
 * Options of a budget in flight.
 *
 * @category models
 * @since 0.1.0
 */
export interface InFlightOptions {
  /** Retries in progress, as a share of all sends in progress: from 0 to 1. Default 0.2. */
  readonly share?: number | undefined
  /** How many retries may be in progress in any case: a whole number of at least 0, or `Infinity`. Default 3. */
  readonly atLeast?: number | undefined
  /**
   * Your own rule, in place of the two: how many retries may be in progress. A retry passes while there are fewer.
   * Where it throws, or gives no number, none. Default: the share rounded down, but at least `atLeast`.
   */
  readonly most?: ((underWay: UnderWay) => number) | undefined
}

/**
 * Allows retries in progress up to a share of the sends in progress, but at least `atLeast`. Throws `InvalidOption`
 * when an option is invalid.
 *
 * **Details**
 *
 * A send is in progress from when it asks its gates until it ends; a retry from the decision to retry, its delay
 * included, until it ends. Source of rule and defaults: Envoy, `retry_budget`, which does not count a retry during its
 * delay.
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
export const inFlight = (options: InFlightOptions = {}): Effect.Effect<RetryQuotaStore> =>
  making(validInFlight(options), InFlightStore)

/**
 * Options of gRPC's throttle.
 *
 * @category models
 * @since 0.1.0
 */
export interface GrpcOptions {
  /** The initial and maximum number of tokens: a whole number from 1 to 1000. Default 10. */
  readonly maxTokens?: number | undefined
  /** What a success adds: from 0.001 to `maxTokens`, cut to three decimals. Default 0.1. */
  readonly tokenRatio?: number | undefined
  /**
   * Whether a failure takes a token. Default: one that may be retried, a throttle, a timeout, or one whose retry a
   * rule forbids. Where it throws, the default answers.
   */
  readonly isFailure?: ((outcome: Outcome) => boolean) | undefined
}

/**
 * gRPC's `retryThrottling`: each failure takes a token, each success adds `tokenRatio`, and retries pass while there is
 * more than half of `maxTokens`. A retry itself takes nothing. Throws `InvalidOption` when an option is invalid.
 * Source: gRPC proposal A6; the defaults are those of its example.
 *
 * @category constructors
 * @since 0.1.0
 */
export const grpc = (options: GrpcOptions = {}): Effect.Effect<RetryQuotaStore> =>
  making(validGrpc(options), GrpcThrottleStore)

/**
 * A budget that grants a retry only if all of these do. If one refuses, what the others granted goes back. Throws
 * `InvalidOption` when there is none.
 *
 * **Details**
 *
 * Stores that wait, or ask another process, are asked last, one after the other; if the wait fails, what they took is
 * returned. A success pays each of them its own increment, a first send each its fee. `balance` is that of the store
 * with the least.
 *
 * **Example** (The default advice: a bucket filled by successes, and at most a fifth of the calls)
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
  if (!Array.isArray(budgets) || budgets.length === 0 || budgets.some((budget) => !Effect.isEffect(budget))) {
    checks("RetryBudget.all").reject(
      "budgets",
      budgets,
      "an array with at least one budget, such as RetryBudget.bucket()"
    )
  }
  const made: ReadonlyArray<
    Effect.Effect<RetryQuotaStore, Effect.Error<Budgets[number]>, Effect.Services<Budgets[number]>>
  > = budgets
  return Effect.map(
    Effect.all(made),
    (stores) => new JoinedStore(stores, (cost, balance) => new RetryQuota.QuotaExhausted({ cost, balance }))
  )
}

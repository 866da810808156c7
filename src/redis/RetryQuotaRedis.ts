/**
 * A retry quota that a fleet of processes shares through Redis.
 *
 * A quota bounds the load one process adds to an outage; a hundred processes with a quota each add a hundred times
 * that. Here all processes that name the same quota take from one bucket, kept in Redis. Only a retry asks for it, and
 * waits for one round trip; tokens returned by successes and settled retries are sent later, in batches.
 *
 * Redis is a convenience, never a requirement: if it does not respond in time, a quota in the memory of the process
 * decides instead, until Redis responds again. No call fails because of it, and none waits longer than the `timeout`
 * says.
 *
 * Requires the `Redis` service of `effect/persistence/Redis`, such as `NodeRedis.layer` of `@effect/platform-node`, and
 * Redis 5 or later, or a compatible server.
 *
 * @since 0.1.0
 */

import type * as Config from "effect/Config"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redis from "effect/persistence/Redis"
import { tokensIn, watched } from "../internal/sharing.ts"
import * as RetryQuota from "../RetryQuota.ts"
import { Store } from "../RetryQuotaStore.ts"
import { fleetLayers, type SharedOptions } from "./internal/fleet.ts"
import { over, validated } from "./internal/quota.ts"

/**
 * Decisions about tokens; attributes `resource`: the key in `ResourceLimiters`, or else the name of the quota, for the first
 * 100, and `"(others)"` for the rest; and `by`: `"redis"`, or `"fallback"` while Redis does not respond.
 *
 * @category metrics
 * @since 0.1.0
 */
export { decisions } from "./internal/quota.ts"

/**
 * 1 while the local fallback decides, else 0; attribute `resource` as in {@link decisions}, without `"(others)"`.
 *
 * @category metrics
 * @since 0.1.0
 */
export { fallback } from "./internal/quota.ts"

/**
 * The quota in memory that decides while Redis does not respond. Options left out are those of the shared quota.
 *
 * @category models
 * @since 0.1.0
 */
export interface FallbackOptions {
  /**
   * The maximum number of tokens: a finite number above 0. Default that of the shared quota. With less than a retry
   * costs, none is made while Redis does not respond; the first retry logs a warning.
   */
  readonly capacity?: number | undefined
  /**
   * The tokens it starts with, each time Redis stops responding: from 0 to its `capacity`. Default: the tokens in the
   * shared quota when Redis last responded, so that a quota drained by an outage stays drained. If Redis stops again
   * within a `leaseTime`, the fallback continues where it was: a flapping Redis refills no quota.
   */
  readonly initial?: number | undefined
  /** Tokens added per second: a finite number of at least 0. Default that of the shared quota. */
  readonly refillPerSecond?: number | undefined
}

/**
 * Options of a shared quota. All processes of a fleet should use the same: see {@link make}.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends RetryQuota.Options, SharedOptions {
  /**
   * How long Redis has to respond: a finite duration above 0. Requests made during a round trip go with the next one,
   * so the longest wait is twice the timeout, plus one timeout for each 500 requests the process has already queued.
   * Default 50 milliseconds.
   */
  readonly timeout?: Duration.Input | undefined
  /**
   * How long a retry can hold tokens before Redis takes them back, in case the process died: a finite duration above 0.
   * Make it longer than the longest backoff and attempt together: a retry that takes longer spends nothing. Expired
   * tokens return with the next exchange. Default 2 minutes.
   */
  readonly leaseTime?: Duration.Input | undefined
  /**
   * How long Redis keeps an unused quota: a finite duration of at least twice the `leaseTime`. After that it starts
   * over. Default 1 hour, or twice the `leaseTime` if longer.
   */
  readonly idleTimeToLive?: Duration.Input | undefined
  /**
   * How long returned tokens are buffered before they are sent to Redis: a finite duration of at least 0. A request for
   * tokens takes them along immediately. Deposits by successes into a full quota change nothing, so they are buffered
   * for at least 2 to 3 seconds. Default 100 milliseconds.
   */
  readonly flushInterval?: Duration.Input | undefined
  /** The quota in memory that decides while Redis does not respond. */
  readonly fallback?: FallbackOptions | undefined
}

const shared = /* @__PURE__ */ fleetLayers(
  RetryQuota.RetryQuota,
  (options: Options) => validated(options),
  over,
  (make) => watched("RetryQuota", make, tokensIn)
)

/**
 * Makes a quota shared through Redis, for as long as the scope is open. Throws `InvalidOption` when an option is
 * invalid.
 *
 * **Details**
 *
 * Redis keeps the tokens under one key, which expires if unused. The options travel with each exchange, so processes
 * with different options can share a quota for a while, for example during a deployment: each adds the refill at its
 * own rate since the last exchange, and with another capacity the quota keeps its share of tokens: half full stays half
 * full. With `"wait"` the retries of one process
 * are served first come, first served, and `maxWaiters` of them may wait; between processes, the first to ask once
 * there are tokens gets them. A process with a waiting retry asks again when its own refill is due, and at least once
 * per second, since others may add tokens.
 *
 * A retry without a response within the `timeout` is decided by the fallback, and so are all that follow for the
 * `fallbackTime`. Anything Redis granted meanwhile goes back when it responds again. Tokens go back to where they were
 * taken, Redis or the fallback, whichever decides by then; deposits, by successes or `deposit`, go to the one that
 * decides. Updates that Redis has not received are kept while it is down, for the `leaseTime`, and are applied once.
 * When the scope closes, the rest is sent, within the `timeout`.
 *
 * **Gotchas**
 *
 * If Redis loses its data (a restart without persistence, a failover, an eviction), the quota starts over, and each
 * process logs that once. In a network split, each process has its fallback, so the fleet makes as many retries as all
 * fallbacks together allow: in large fleets, give them a smaller capacity.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = shared.make

/**
 * A layer with a quota shared through Redis. Throws `InvalidOption` when an option is invalid.
 *
 * **Gotchas**
 *
 * A Redis layer may fail if Redis cannot be reached when the program starts: {@link layerConnecting} does not.
 *
 * @see {@link make} for what is shared, and what happens when Redis does not respond
 * @category layers
 * @since 0.1.0
 */
export const layer = shared.layer

/**
 * A layer with the store of such a quota, for `RetryQuota.layerStore(RetryQuotaStore.Store)`. Throws `InvalidOption` when
 * an option is invalid.
 *
 * @see {@link make} for what is shared, and what happens when Redis does not respond
 * @category layers
 * @since 0.1.0
 */
export const layerStore = (options: Options): Layer.Layer<Store, never, Redis.Redis> =>
  Layer.effect(Store, Effect.map(make(options), ({ store }) => store))

/**
 * A layer with a shared quota, with options from configuration: see {@link layer}. Fails with `InvalidOption` when an
 * option is invalid.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (options: Config.Wrap<Options>) => shared.layerConfig(options)

/**
 * A layer with a quota shared through Redis that connects in the background: the fallback decides until then, and if
 * Redis cannot be reached when the program starts, it is tried again after each `fallbackTime`. Throws `InvalidOption`
 * when an option is invalid.
 *
 * **Gotchas**
 *
 * The Redis layer must fail if it cannot connect, as `NodeRedis.layer` does by default: one that keeps trying is
 * abandoned after 30 seconds.
 *
 * @see {@link make} for what is shared, and what happens when Redis does not respond
 * @category layers
 * @since 0.1.0
 */
export const layerConnecting = shared.layerConnecting

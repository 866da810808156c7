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

import * as Clock from "effect/Clock"
import type * as Config from "effect/Config"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import type * as Redis from "effect/persistence/Redis"
import type * as Scope from "effect/Scope"
import { BoundedLabels, others } from "../internal/boundedLabels.ts"
import { type Checks, checks, checksOf, rejectUnknown } from "../internal/checks.ts"
import { isObject } from "../internal/invalidField.ts"
import { configured } from "../internal/layerConfig.ts"
import { warnFallbackTooSmall, warnLost, watchedQuota } from "../internal/sharing.ts"
import type { InvalidOption } from "../InvalidOption.ts"
import type { StoreOptions } from "../quota/internal/memoryStore.ts"
import { CurrentResource } from "../RetryObserver.ts"
import * as RetryQuota from "../RetryQuota.ts"
import { type Connect, connected, connecting } from "./internal/connection.ts"
import { decisionLog } from "./internal/decisionLog.ts"
import { Exchanges, type Times } from "./internal/exchanges.ts"
import { Client, type QuotaTerms } from "./internal/quotaClient.ts"
import { type Decider, RedisStore } from "./internal/quotaStore.ts"
import { validKey, validTimes } from "./internal/redisOptions.ts"

/**
 * Decisions about tokens; attributes `resource`: the key in `ResourceLimiters`, or else the name of the quota, for the first
 * 100, and `"(others)"` for the rest; and `by`: `"redis"`, or `"fallback"` while Redis does not respond.
 *
 * @category metrics
 * @since 0.1.0
 */
export const decisions: Metric.Counter<number> = Metric.counter("retry_quota_decisions", {
  description: "Decisions about tokens of a shared retry quota",
  incremental: true
})

/**
 * 1 while the local fallback decides, else 0; attribute `resource` as in {@link decisions}, without `"(others)"`.
 *
 * @category metrics
 * @since 0.1.0
 */
export const fallback: Metric.Gauge<number> = Metric.gauge("retry_quota_fallback", {
  description: "1 while the local fallback of a shared retry quota decides, else 0"
})

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
export interface Options extends RetryQuota.Options {
  /** The name of the quota. All processes with the same name (and prefix) share it. Not empty. */
  readonly name: string
  /**
   * The prefix of the key in Redis. After it comes the name, in which all but letters, digits, `_`, `.` and `-` becomes
   * `%` and its code in four hexadecimal digits. Default `"retry-quota:"`.
   */
  readonly prefix?: string | undefined
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
  /** How long the fallback decides before Redis is tried again: a finite duration above 0. Default 1 second. */
  readonly fallbackTime?: Duration.Input | undefined
}

interface Valid {
  readonly name: string
  readonly store: StoreOptions
  readonly terms: QuotaTerms
  readonly times: Times
}

const constructorName = "RetryQuotaRedis.make"
const hourMillis = 3_600_000

/** The options of the fallback, given the tokens last seen. */
const validFallback = (shared: StoreOptions, input: FallbackOptions = {}): QuotaTerms["local"] => {
  const check = checks(constructorName)
  if (!isObject(input as unknown)) return check.reject("fallback", input, "an object")
  const capacity = check.positive("fallback.capacity", input.capacity ?? shared.capacity)
  if (capacity < shared.firstAttemptCost) {
    check.reject("fallback.capacity", capacity, `at least the firstAttemptCost, ${shared.firstAttemptCost}`)
  }
  const initial = input.initial === undefined
    ? undefined
    : check.between("fallback.initial", input.initial, 0, capacity)
  const refillPerSecond = check.amount("fallback.refillPerSecond", input.refillPerSecond ?? shared.refillPerSecond)
  if (shared.onExceeded === "wait" && refillPerSecond === 0) {
    check.reject("fallback.refillPerSecond", refillPerSecond, `above 0 when onExceeded is "wait"`)
  }
  check.names.add("fallback.initial")
  rejectUnknown(check, input, undefined, "fallback.")
  const successIncrement = Math.min(shared.successIncrement, capacity)
  return (tokens) => ({
    ...shared,
    capacity,
    initial: initial ?? Math.min(capacity, tokens),
    refillPerSecond,
    successIncrement
  })
}

const validLease = (check: Checks, options: Options) => {
  const leaseMillis = check.positiveDuration("leaseTime", options.leaseTime ?? 120_000)
  const idleDefault = Math.max(hourMillis, 2 * leaseMillis)
  const idleMillis = check.positiveDuration("idleTimeToLive", options.idleTimeToLive ?? idleDefault)
  if (idleMillis < 2 * leaseMillis) {
    check.reject("idleTimeToLive", options.idleTimeToLive, "at least twice the leaseTime")
  }
  return { leaseMillis, idleMillis }
}

/**
 * Options with their defaults, checked.
 *
 * @internal
 */
export const validated = (options: Options): Valid => {
  const check = checksOf(constructorName, options)
  const key = validKey(check, options, "retry-quota:")
  const lease = validLease(check, options)
  const flushMillis = check.duration("flushInterval", options.flushInterval ?? 100)
  const times = validTimes(check, options)
  check.names.add("fallback")
  const store = RetryQuota.validated(options, check)
  const { capacity, initial, maxWaiters, refillPerSecond, onExceeded } = store
  const inOrder = onExceeded === "wait" && maxWaiters > 0
  return {
    name: options.name,
    store,
    terms: {
      local: validFallback(store, options.fallback),
      maxWaiters,
      settings: { key, capacity, initial, refillPerSecond, ...lease, inOrder },
      flushMillis
    },
    times
  }
}

const maxResources = 100

/** The resources seen by the metrics of a registry. */
const seen = new WeakMap<object, BoundedLabels>()

/** What the metrics call the quota. */
const resourceOf = (name: string, context: Context.Context<never>): string => {
  const registry = Context.get(context, Metric.MetricRegistry)
  const labels = seen.get(registry) ?? new BoundedLabels(maxResources, others)
  seen.set(registry, labels)
  return labels.of(Context.get(context, CurrentResource) ?? name)
}

const show = (resource: string, isOnFallback: boolean): Effect.Effect<void> =>
  resource === others
    ? Effect.void
    : Metric.update(Metric.withAttributes(fallback, { resource }), isOnFallback ? 1 : 0)

const log = decisionLog("retry quota", { shared: " and decides", alone: "the local fallback decides" })

const counting = (resource: string, context: Context.Context<never>): (by: Decider) => void => {
  const counters = {
    redis: Metric.withAttributes(decisions, { resource, by: "redis" }),
    fallback: Metric.withAttributes(decisions, { resource, by: "fallback" })
  }
  return (by) => counters[by].updateUnsafe(1, context)
}

/**
 * The store over a connection that exists, or may come to exist, and what changes its options.
 *
 * @internal
 */
export const opened = ({ name, store: options, terms, times }: Valid, connect: Connect, tokens?: number) =>
  Effect.gen(function*() {
    const context = yield* Effect.context<never>()
    const resource = resourceOf(name, context)
    const onChange = (reason: string | undefined, isNews: boolean) =>
      Effect.andThen(show(resource, reason !== undefined), isNews ? log(name, reason) : Effect.void)
    const exchanges = yield* Exchanges.make({ ...times, connect, onChange })
    const lost = () => warnLost(context, Context.get(context, Clock.Clock), name)
    const client = new Client(terms, exchanges, lost, tokens)
    const isConnected = connect.isConnected()
    if (!isConnected) exchanges.decideAlone(client)
    yield* show(resource, !isConnected)
    yield* Effect.addFinalizer(() => show(resource, false))
    yield* exchanges.start(client)
    yield* Effect.addFinalizer(() => client.finish)
    const tooSmall = (cost: number, capacity: number, clock: Clock.Clock) =>
      warnFallbackTooSmall(context, clock, cost, capacity)
    const optionsOf = ({ store, terms }: Pick<Valid, "store" | "terms">) => ({
      ...store,
      fallbackCapacity: terms.local(0).capacity
    })
    const store = new RedisStore(optionsOf({ store: options, terms }), client, counting(resource, context), tooSmall)
    const change = (valid: Valid, clock: Clock.Clock) => {
      exchanges.change(valid.times)
      client.change(valid.terms, clock)
      store.change(optionsOf(valid))
    }
    return { store, change }
  }).pipe(Effect.uninterruptible)

const over = (valid: Valid, connect: Connect) =>
  Effect.map(opened(valid, connect), ({ store }) => RetryQuota.fromStore(store))

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
export const make = (options: Options): Effect.Effect<RetryQuota.Service, never, Redis.Redis | Scope.Scope> => {
  const valid = validated(options)
  return Effect.flatMap(connected, (connect) => over(valid, connect))
}

const makeShared = (options: Options) => watchedQuota(make(options))

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
export const layer = (options: Options): Layer.Layer<RetryQuota.RetryQuota, never, Redis.Redis> =>
  Layer.effect(RetryQuota.RetryQuota, makeShared(options))

/**
 * A layer with a shared quota, with options from configuration: see {@link layer}. Fails with `InvalidOption` when an
 * option is invalid.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  options: Config.Wrap<Options>
): Layer.Layer<RetryQuota.RetryQuota, Config.ConfigError | InvalidOption, Redis.Redis> =>
  Layer.effect(RetryQuota.RetryQuota, configured(options, makeShared))

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
export const layerConnecting = <E, R>(
  options: Options,
  redis: Layer.Layer<Redis.Redis, E, R>
): Layer.Layer<RetryQuota.RetryQuota, never, R> => {
  const valid = validated(options)
  return Layer.effect(
    RetryQuota.RetryQuota,
    watchedQuota(Effect.flatMap(connecting(redis), (connect) => over(valid, connect)))
  )
}

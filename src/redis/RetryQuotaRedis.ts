/**
 * A retry quota that a fleet of processes shares through Redis.
 *
 * A quota bounds what one process adds to an outage; a hundred processes with a quota each add a hundred times that.
 * Here all processes that name the same quota take from one bucket, which is kept in Redis. Only a retry asks for it,
 * and waits for one round trip; what successes and settled retries put back is sent along later, in batches.
 *
 * Redis is a convenience, never a condition: when it does not answer in time, a quota in the memory of the process
 * decides instead, until Redis answers again. No call fails for it, and none waits longer than the `timeout` says.
 *
 * Needs the `Redis` service of `effect/persistence/Redis`, such as `NodeRedis.layer` of `@effect/platform-node`, and
 * Redis 5 or later, or what speaks its language.
 *
 * @since 0.1.0
 */

import type * as Config from "effect/Config"
import type * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Redis from "effect/persistence/Redis"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import { checks } from "../internal/checks.ts"
import { clockOf, monotonicMillis } from "../internal/clock.ts"
import { configured } from "../internal/config.ts"
import type { InvalidOption } from "../InvalidOption.ts"
import * as RetryQuota from "../RetryQuota.ts"
import { MemoryStore, type StoreOptions } from "../state/memoryStore.ts"
import { Client, type Terms } from "./internal/client.ts"
import { closeWithin, connecting, type Connection } from "./internal/connection.ts"
import { type Decider, RedisStore } from "./internal/store.ts"

/**
 * Decisions about tokens; attributes `quota`, its name, and `by`: `"redis"`, or `"fallback"` while Redis does not answer.
 *
 * @category metrics
 * @since 0.1.0
 */
export const decisions: Metric.Counter<number> = Metric.counter("retry_quota_decisions", {
  description: "Decisions about tokens of a shared retry quota",
  incremental: true
})

/**
 * 1 while the local fallback decides, else 0; attribute `quota`, its name.
 *
 * @category metrics
 * @since 0.1.0
 */
export const fallback: Metric.Gauge<number> = Metric.gauge("retry_quota_fallback", {
  description: "1 while the local fallback of a shared retry quota decides, else 0"
})

/**
 * The quota in memory that decides while Redis does not answer. What it does not say is as in the shared one.
 *
 * @category models
 * @since 0.1.0
 */
export interface FallbackOptions {
  /** The most tokens there can be: a finite number above 0. Default that of the shared quota. */
  readonly capacity?: number | undefined
  /**
   * The tokens it starts with, each time Redis stops to answer: from 0 to its `capacity`. Default as many as there were
   * in the shared quota when Redis last answered, so that an outage which had drained that one stays without retries.
   * When Redis stops again within a `leaseTime`, the fallback goes on as it was left: a Redis that comes and goes fills
   * no quota.
   */
  readonly initial?: number | undefined
  /** Tokens that flow in per second: a finite number of at least 0. Default that of the shared quota. */
  readonly refillPerSecond?: number | undefined
}

/**
 * How a shared quota is made. All processes of a fleet should give the same options: see {@link make}.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends RetryQuota.Options {
  /** What the quota is for. Who gives the same name (and prefix) shares the quota. Not empty. */
  readonly name: string
  /** What the key in Redis begins with, before the name. Default `"retry-quota:"`. */
  readonly prefix?: string | undefined
  /**
   * How long Redis has to answer: a finite duration above 0. Retries that ask during a round trip go with the next one,
   * so the longest wait is twice the timeout, and one timeout more for each 500 that the process has queued before.
   * Default 50 milliseconds.
   */
  readonly timeout?: Duration.Input | undefined
  /**
   * How long a retry can hold tokens before Redis takes them back, for holders that died: a finite duration above 0.
   * Should be longer than the longest back-off and attempt together: a retry that takes longer spends nothing. What
   * expires comes back with the next exchange. Default 2 minutes.
   */
  readonly leaseTime?: Duration.Input | undefined
  /**
   * How long Redis keeps a quota that nobody uses: a finite duration of at least twice the `leaseTime`. After that it
   * starts anew. Default 1 hour, or twice the `leaseTime`.
   */
  readonly idleTimeToLive?: Duration.Input | undefined
  /**
   * How long tokens that go back are collected before they are sent to Redis: a finite duration of at least 0. A retry
   * that asks takes them along immediately. What successes put into a full quota changes nothing, so that is collected
   * for 2 to 3 seconds at least. Default 100 milliseconds.
   */
  readonly flushInterval?: Duration.Input | undefined
  /** The quota in memory that decides while Redis does not answer. */
  readonly fallback?: FallbackOptions | undefined
  /** How long the fallback decides before Redis is tried again: a finite duration above 0. Default 1 second. */
  readonly fallbackTime?: Duration.Input | undefined
}

interface Valid {
  readonly name: string
  readonly store: StoreOptions
  readonly local: (tokens: number) => StoreOptions
  readonly terms: Pick<Terms, "settings" | "timeoutMillis" | "flushMillis" | "retryMillis" | "maxWaiters">
}

const constructorName = "RetryQuotaRedis.make"
const hourMillis = 3_600_000

/** What the fallback is made of, given the tokens that there were. */
const validFallback = (shared: StoreOptions, given: FallbackOptions): Valid["local"] => {
  const check = checks(constructorName)
  const capacity = check.positive("fallback.capacity", given.capacity ?? shared.capacity)
  if (capacity < shared.firstAttemptCost) {
    check.reject("fallback.capacity", capacity, `at least the firstAttemptCost, ${shared.firstAttemptCost}`)
  }
  const initial = given.initial === undefined
    ? undefined
    : check.between("fallback.initial", given.initial, 0, capacity)
  const refillPerSecond = check.amount("fallback.refillPerSecond", given.refillPerSecond ?? shared.refillPerSecond)
  if (shared.whenExhausted === "wait" && refillPerSecond === 0) {
    check.reject("fallback.refillPerSecond", refillPerSecond, `above 0 when whenExhausted is "wait"`)
  }
  const successIncrement = Math.min(shared.successIncrement, capacity)
  return (tokens) => ({
    ...shared,
    capacity,
    initial: initial ?? Math.min(capacity, tokens),
    refillPerSecond,
    successIncrement
  })
}

const validName = ({ name, prefix = "retry-quota:" }: Options): string => {
  const check = checks(constructorName)
  if (typeof name !== "string" || name === "") check.reject("name", name, "a string that is not empty")
  if (typeof prefix !== "string") check.reject("prefix", prefix, "a string")
  return prefix + name
}

const validTimes = (options: Options) => {
  const check = checks(constructorName)
  const leaseMillis = check.positiveDuration("leaseTime", options.leaseTime ?? 120_000)
  const idleDefault = Math.max(hourMillis, 2 * leaseMillis)
  const idleMillis = check.positiveDuration("idleTimeToLive", options.idleTimeToLive ?? idleDefault)
  if (idleMillis < 2 * leaseMillis) {
    check.reject("idleTimeToLive", options.idleTimeToLive, "at least twice the leaseTime")
  }
  return {
    leaseMillis,
    idleMillis,
    timeoutMillis: check.positiveDuration("timeout", options.timeout ?? 50),
    flushMillis: check.duration("flushInterval", options.flushInterval ?? 100),
    retryMillis: check.positiveDuration("fallbackTime", options.fallbackTime ?? 1000)
  }
}

const validated = (options: Options): Valid => {
  const key = validName(options)
  const store = RetryQuota.validated(options, constructorName)
  const { idleMillis, leaseMillis, ...times } = validTimes(options)
  const { capacity, initial, maxWaiters, refillPerSecond, whenExhausted } = store
  const inOrder = whenExhausted === "wait" && maxWaiters > 0
  return {
    name: options.name,
    store,
    local: validFallback(store, options.fallback ?? {}),
    terms: {
      maxWaiters,
      settings: { key, capacity, initial, refillPerSecond, leaseMillis, idleMillis, inOrder },
      ...times
    }
  }
}

const show = (name: string, isOnFallback: boolean): Effect.Effect<void> =>
  Metric.update(Metric.withAttributes(fallback, { quota: name }), isOnFallback ? 1 : 0)

/** Logs who decides from now on. */
const log = (name: string, reason: string | undefined): Effect.Effect<void> => {
  const line = reason === undefined
    ? Effect.logInfo(`retry quota ${JSON.stringify(name)}: Redis answers again and decides`)
    : Effect.logWarning(
      `retry quota ${JSON.stringify(name)}: Redis does not answer, the local fallback decides: ${reason}`
    )
  return Effect.ignoreCause(line)
}

const counting = (name: string, context: Context.Context<never>): (by: Decider) => void => {
  const counters = {
    redis: Metric.withAttributes(decisions, { quota: name, by: "redis" }),
    fallback: Metric.withAttributes(decisions, { quota: name, by: "fallback" })
  }
  return (by) => counters[by].updateUnsafe(1, context)
}

/** The quota over a connection that is there, or may come to be there. */
const over = (
  { local, name, store, terms }: Valid,
  connect: (scope: Scope.Scope) => Connection,
  isConnected: boolean
): Effect.Effect<RetryQuota.Service, never, Scope.Scope> =>
  Effect.gen(function*() {
    // Of its own, because a scope that closes lets nothing start any more, and there is a last exchange to make.
    const scope = yield* Scope.make()
    const fiber = yield* Effect.withFiber(Effect.succeed)
    const clock = clockOf(fiber)
    const client = new Client(
      {
        ...terms,
        random: fiber.getRef(Random.Random),
        connection: connect(scope),
        fallback: (tokens) => new MemoryStore(local(tokens), monotonicMillis(clock)),
        onChange: (reason, isNews) =>
          Effect.andThen(show(name, reason !== undefined), isNews ? log(name, reason) : Effect.void)
      },
      clock,
      scope
    )
    if (!isConnected) client.decideLocally()
    yield* show(name, !isConnected)
    const talking = yield* Effect.forkIn(client.run, scope)
    yield* Effect.addFinalizer((exit) =>
      Effect.all([client.close(talking), closeWithin(scope, exit, terms.timeoutMillis), show(name, false)], {
        discard: true
      })
    )
    return RetryQuota.fromStore(new RedisStore(store, client, counting(name, fiber.context)))
  }).pipe(Effect.uninterruptible)

/**
 * Makes a quota that is shared through Redis, for as long as the scope is open. Throws `InvalidOption` when an option is
 * impossible.
 *
 * **Details**
 *
 * Redis keeps the tokens under one key, which expires when nobody uses it. The options travel with each exchange, so
 * processes with different ones can share a quota for a while, as during a deployment: each adds the refill at its own
 * rate since the last exchange, and cuts what is above its own capacity. Under `"wait"` the retries of one process are
 * served first come, first served, and `maxWaiters` of them may wait; between processes the first to ask once there are
 * tokens. A process in which a retry waits asks again when its own refill is due, and at least once a second, for what
 * others put in.
 *
 * A retry that has no answer within the `timeout` is decided by the fallback, and so is all that follows for the
 * `fallbackTime`. What Redis may have granted meanwhile goes back when it answers again. Tokens go back to where they
 * were taken, Redis or the fallback, whichever decides by then; what successes and `deposit` put in goes to the one that
 * decides. What Redis has yet to learn is kept while it is down, for the `leaseTime`, and is applied once.
 * When the scope closes, what is left is sent, within the `timeout`.
 *
 * **Gotchas**
 *
 * When Redis loses what it knew (a restart without persistence, a failover, an eviction), the quota starts anew. In a
 * split, each process has its fallback: as many retries as the fallbacks together allow, so give them a smaller capacity
 * where fleets are large.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options): Effect.Effect<RetryQuota.Service, never, Redis.Redis | Scope.Scope> => {
  const valid = validated(options)
  return Redis.Redis.use((redis) => over(valid, () => Effect.succeed(redis), true))
}

/**
 * A layer with a quota that is shared through Redis. Throws `InvalidOption` when an option is impossible.
 *
 * **Gotchas**
 *
 * A layer of Redis may fail where Redis cannot be reached when the program starts: {@link layerConnecting} does not.
 *
 * @see {@link make} for what is shared, and what happens when Redis does not answer
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<RetryQuota.RetryQuota, never, Redis.Redis> =>
  Layer.effect(RetryQuota.RetryQuota, make(options))

/**
 * A layer with a shared quota whose options come from configuration: see {@link layer}. Fails with `InvalidOption` when an
 * option is impossible.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  options: Config.Wrap<Options>
): Layer.Layer<RetryQuota.RetryQuota, Config.ConfigError | InvalidOption, Redis.Redis> =>
  Layer.effect(RetryQuota.RetryQuota, configured(options, make))

/**
 * A layer with a quota that is shared through Redis, which connects by itself: the fallback decides until it has, and a
 * Redis that cannot be reached when the program starts is tried again after each `fallbackTime`. Throws `InvalidOption`
 * when an option is impossible.
 *
 * **Gotchas**
 *
 * The layer of Redis must fail when it cannot connect, as `NodeRedis.layer` does by default: one that goes on trying is
 * given up after 30 seconds.
 *
 * @see {@link make} for what is shared, and what happens when Redis does not answer
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
    Effect.contextWith((context: Context.Context<R>) => over(valid, connecting(redis, context), false))
  )
}

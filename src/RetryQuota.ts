/**
 * The retry quota: a token bucket that all calls of a client share.
 *
 * A limit on attempts bounds what one call does. It does not bound what a client does to a service that is down: with
 * three attempts a call, the service gets three times the load just when it can bear least. A quota bounds that. Each
 * retry takes tokens; a success gives the tokens of its retry back, or one token if it needed none. While most calls
 * succeed the quota is full and never felt; in an outage it runs dry after `capacity / cost` retries, and then each call
 * is sent once, until calls succeed again.
 *
 * Give every resource (a service, a table, a tenant) a quota of its own: one {@link layer} each, or `ResourceLimiters`.
 *
 * @since 0.1.0
 */

import type * as Clock from "effect/Clock"
import type * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { checks } from "./internal/checks.ts"
import { clockOf, monotonicMillis } from "./internal/clock.ts"
import { configured } from "./internal/config.ts"
import { Refused } from "./internal/refused.ts"
import type { InvalidOption } from "./InvalidOption.ts"
import * as RetryInfo from "./RetryInfo.ts"
import type { Reservation as Held, RetryQuotaStore } from "./RetryQuotaStore.ts"
import { Lapses } from "./state/lapses.ts"
import { MemoryStore, type StoreOptions } from "./state/memoryStore.ts"
import { warnUnshared } from "./state/sharing.ts"

/**
 * Tokens taken for one retry. They are settled once: given back, or spent. Whatever is asked of a settled reservation
 * changes nothing and answers `false`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reservation {
  /** How many tokens it holds. */
  readonly cost: number
  /** Puts the tokens back: the retry succeeded, or never left. */
  readonly giveBack: Effect.Effect<boolean>
  /** Leaves the tokens taken: the retry was sent and did not succeed. */
  readonly spend: Effect.Effect<boolean>
}

/**
 * What a quota does.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service {
  /** The most tokens there can be. */
  readonly capacity: number
  /** What happens to a retry for which there are not enough tokens: it is refused, or it waits for the refill. */
  readonly whenExhausted: "stop" | "wait"
  /**
   * Takes tokens. None when they are not there and `whenExhausted` is `"stop"`; otherwise waits, first come, first
   * served. Fails when `cost` is no finite number of at least 0, or more than the capacity.
   */
  readonly reserve: (cost: number) => Effect.Effect<Option.Option<Reservation>, InvalidOption>
  /** Puts tokens in, up to the capacity. Fails when `tokens` is no finite number of at least 0. */
  readonly deposit: (tokens: number) => Effect.Effect<void, InvalidOption>
  /** The tokens there are now: from 0 to `capacity`. */
  readonly balance: Effect.Effect<number>
  /** Where the tokens are kept. Calls take tokens here. */
  readonly store: RetryQuotaStore
  /**
   * The retries that may never come.
   *
   * @internal
   */
  readonly lapses?: Lapses
}

/**
 * The retry quota of a resource.
 *
 * @category services
 * @since 0.1.0
 */
export class RetryQuota extends Context.Service<RetryQuota, Service>()("effect-retry/RetryQuota") {}

/**
 * A first attempt that the quota cannot pay for: see `firstAttemptCost`. It was not sent, and no policy
 * retries it.
 *
 * @category errors
 * @since 0.1.0
 */
export class QuotaExhausted extends Data.TaggedError("QuotaExhausted")<{
  /** Tokens that the attempt would have taken. */
  readonly cost: number
  /** Tokens that there were. */
  readonly balance: number
}> {
  /** @internal */
  readonly [Refused] = true
  get [RetryInfo.TypeId](): RetryInfo.RetryInfo {
    return RetryInfo.notRetryable
  }
  override get message(): string {
    return `an attempt costs ${this.cost} of the retry quota, which has ${this.balance}`
  }
}

/**
 * How a quota is made.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /**
   * The most tokens there can be: a finite number above 0. These are no retries: one of `awsStandard` takes 5, one of
   * `awsStandard2026` 14, and a capacity below that switches retries off. Default 500.
   */
  readonly capacity?: number | undefined
  /** The tokens at the start: from 0 to `capacity`. Default `capacity`. */
  readonly initial?: number | undefined
  /** Tokens that flow in per second, success or not: a finite number of at least 0. Default 0. */
  readonly refillPerSecond?: number | undefined
  /** Tokens that a call which succeeds without a retry puts in: from 0 to `capacity`. Default 1. */
  readonly successIncrement?: number | undefined
  /**
   * Tokens that a first attempt takes: from 0 to `capacity`. A success puts `successIncrement` in; without the tokens
   * the attempt waits or fails with `QuotaExhausted`, as `whenExhausted` says: an error that no type of an attempt
   * shows. Default 0: first attempts are free.
   */
  readonly firstAttemptCost?: number | undefined
  /** What happens to a retry for which there are not enough tokens. `"wait"` needs a refill. Default `"stop"`. */
  readonly whenExhausted?: "stop" | "wait" | undefined
  /**
   * How many may wait for tokens: a whole number of at least 0, or `Infinity`. For more the quota is exhausted.
   * Default 100,000.
   */
  readonly maxWaiters?: number | undefined
}

/**
 * Options with their defaults, checked.
 *
 * @internal
 */
export const validated = ({
  capacity = 500,
  firstAttemptCost = 0,
  initial = capacity,
  maxWaiters = 100_000,
  refillPerSecond = 0,
  successIncrement = Math.min(1, capacity),
  whenExhausted: exhausted
}: Options, constructorName = "RetryQuota.make"): StoreOptions => {
  const check = checks(constructorName)
  check.positive("capacity", capacity)
  check.between("initial", initial, 0, capacity)
  check.amount("refillPerSecond", refillPerSecond)
  check.between("successIncrement", successIncrement, 0, capacity)
  check.between("firstAttemptCost", firstAttemptCost, 0, capacity)
  const whenExhausted = check.oneOf("whenExhausted", exhausted, ["stop", "wait"], "stop")
  check.count("maxWaiters", maxWaiters, 0)
  if (whenExhausted === "wait" && refillPerSecond === 0) {
    check.reject("refillPerSecond", refillPerSecond, `above 0 when whenExhausted is "wait"`)
  }
  const refillPerMilli = refillPerSecond / 1000
  return {
    capacity,
    firstAttemptCost,
    initial,
    maxWaiters,
    refillPerMilli,
    refillPerSecond,
    successIncrement,
    whenExhausted
  }
}

const attempted = <A>(f: () => A): Effect.Effect<A, InvalidOption> =>
  Effect.try({ try: f, catch: (error) => error as InvalidOption })

const withClock = <A>(f: (clock: Clock.Clock) => A): Effect.Effect<A> =>
  Effect.clockWith((clock) => Effect.sync(() => f(clock)))

const reservationOf = (held: Held): Reservation => ({
  cost: held.cost,
  giveBack: Effect.sync(() => held.giveBack()),
  spend: Effect.sync(() => {
    held.sent?.()
    return held.spend()
  })
})

/** Asks a store for tokens, and waits as long as it takes. */
const reserved = (
  store: RetryQuotaStore,
  cost: number,
  lapses: Lapses
): Effect.Effect<Option.Option<Reservation>> =>
  Effect.clockWith((clock) => {
    lapses.lapse(clock)
    const answer = store.reserve(cost, clock)
    if (answer === undefined) return Effect.succeedNone
    if (typeof answer !== "function") return Effect.succeedSome(reservationOf(answer))
    let held: Held | undefined
    const asked = answer(Duration.infinity, (reservation) => {
      held = reservation
    })
    // Tokens that come when nobody waits for them any more go back.
    return Effect.onInterrupt(
      Effect.map(asked, () => held === undefined ? Option.none() : Option.some(reservationOf(held))),
      () => Effect.sync(() => held?.giveBack())
    )
  })

/**
 * Makes a quota over a store of your own.
 *
 * **Details**
 *
 * Every call that pays from the quota asks the store; nothing else decides. A reservation for a retry that is never made
 * goes back to the store by itself.
 *
 * **Example** (A store that refuses every retry)
 *
 * ```ts
 * const quota = RetryQuota.fromStore({
 *   capacity: 1,
 *   successIncrement: 0,
 *   firstAttemptCost: 0,
 *   whenExhausted: "stop",
 *   reserve: () => undefined,
 *   deposit: () => undefined,
 *   balance: () => 0
 * })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromStore = (store: RetryQuotaStore): Service => overStore(store, new Lapses())

/**
 * The quota over a store, and over what is known of its retries.
 *
 * @internal
 */
export const overStore = (store: RetryQuotaStore, lapses: Lapses): Service => {
  const { capacity } = store
  const check = checks("RetryQuota.reserve")
  const asked = Effect.andThen(withClock((clock) => lapses.lapse(clock)), store.refresh ?? Effect.void)
  const balance = Effect.andThen(asked, withClock((clock) => store.balance(clock)))
  return {
    capacity,
    whenExhausted: store.whenExhausted,
    store,
    lapses,
    reserve: (cost) =>
      Effect.flatMap(
        attempted(() => check.between("cost", check.amount("cost", cost), 0, capacity)),
        () => reserved(store, cost, lapses)
      ),
    deposit: (tokens) =>
      Effect.flatMap(
        attempted(() => checks("RetryQuota.deposit").amount("tokens", tokens)),
        () => withClock((clock) => store.deposit(tokens, clock))
      ),
    balance
  }
}

/**
 * A layer with a quota over a store of your own: see {@link fromStore}.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerStore = <E, R>(
  store: Effect.Effect<RetryQuotaStore, E, R>
): Layer.Layer<RetryQuota, E, Exclude<R, Scope.Scope>> => Layer.effect(RetryQuota, Effect.map(store, fromStore))

/**
 * Makes a quota. Throws `InvalidOption` when an option is impossible.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options?: Options): Effect.Effect<Service> => Effect.map(inMemory(options), fromStore)

const inMemory = (options?: Options): Effect.Effect<MemoryStore> => {
  const valid = validated(options ?? {})
  return withClock((clock) => new MemoryStore(valid, monotonicMillis(clock)))
}

/** A quota that warns when it is dropped as one of many that should have been one. */
const watched = (options?: Options): Effect.Effect<Service, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(inMemory(options), (store) =>
      Effect.withFiber((fiber) => Effect.sync(() => warnUnshared(fiber.context, clockOf(fiber), store)))),
    fromStore
  )

/**
 * A layer with a quota of its own. Throws `InvalidOption` when an option is impossible.
 *
 * **Gotchas**
 *
 * Each call makes another layer, and each layer another quota each time it is built: `Effect.provide(layer)` at a single
 * call or request builds it for that one, also when the layer is a constant. Such a quota is always full and bounds
 * nothing. Build the layer once in a process, as with `ManagedRuntime` or around the whole program. When ten quotas in a
 * row were dropped within a minute of being built, after a few failed retries each that would have emptied one, a
 * warning is logged, once. A quota for a part of a program on purpose is `Effect.provideServiceEffect(RetryQuota, make())`.
 * A retry that costs more than `capacity` is never made; the first one that is refused so logs a warning.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<RetryQuota> => Layer.effect(RetryQuota, watched(options))

/**
 * A layer with a quota of its own whose options come from configuration: see {@link layer}. Fails with `InvalidOption` when
 * an option is impossible.
 *
 * **Example** (A quota of the size that the environment says)
 *
 * ```ts
 * const quotaLayer = RetryQuota.layerConfig({
 *   capacity: Config.Finite("RETRY_QUOTA_CAPACITY").pipe(Config.withDefault(500)),
 *   refillPerSecond: Config.succeed(5)
 * })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  options: Config.Wrap<Options>
): Layer.Layer<RetryQuota, Config.ConfigError | InvalidOption> => Layer.effect(RetryQuota, configured(options, watched))

/**
 * A layer whose quota never runs out: its balance is `Infinity`. For tests, and for policies that must not be bounded.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerUnlimited: Layer.Layer<RetryQuota> = /* @__PURE__ */ Layer.sync(RetryQuota, () =>
  fromStore(
    new MemoryStore({
      capacity: Infinity,
      initial: Infinity,
      refillPerMilli: 0,
      refillPerSecond: 0,
      successIncrement: 0,
      firstAttemptCost: 0,
      whenExhausted: "stop",
      maxWaiters: 0
    }, 0)
  ))

/**
 * The tokens there are now: from 0 to the capacity.
 *
 * @category getters
 * @since 0.1.0
 */
export const balance: Effect.Effect<number, never, RetryQuota> = /* @__PURE__ */ RetryQuota.use((quota) =>
  quota.balance
)

/**
 * Takes tokens from the quota; see {@link Service}.
 *
 * @category combinators
 * @since 0.1.0
 */
export const reserve = (
  cost: number
): Effect.Effect<Option.Option<Reservation>, InvalidOption, RetryQuota> =>
  RetryQuota.use((quota) => quota.reserve(cost))

/**
 * Puts tokens into the quota; see {@link Service}.
 *
 * @category combinators
 * @since 0.1.0
 */
export const deposit = (tokens: number): Effect.Effect<void, InvalidOption, RetryQuota> =>
  RetryQuota.use((quota) => quota.deposit(tokens))

/**
 * The retry quota: a token bucket that all calls of a client share.
 *
 * A limit on attempts bounds what one call does. It does not bound what a client does to a service that is down: with
 * three attempts a call, the service gets three times the load just when it can handle least. A quota does. Each retry
 * takes tokens; a success returns the tokens of its retry, or adds one if it needed no retry. While most calls succeed,
 * the quota is full and goes unnoticed; in an outage it runs dry after `capacity / cost` retries, and then each call is
 * sent once, until calls succeed again.
 *
 * Give every resource (a service, a table, a tenant) its own quota: {@link layerFor}, or `ResourceLimiters`.
 *
 * @since 0.1.0
 */

import type * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { checkName, checks } from "./internal/checks.ts"
import { withClock, withMillis } from "./internal/clock.ts"
import { configured } from "./internal/layerConfig.ts"
import { named, type Names } from "./internal/namedServices.ts"
import { Refused } from "./internal/refused.ts"
import { tokensIn, watched } from "./internal/sharing.ts"
import type { InvalidOption } from "./InvalidOption.ts"
import { setTokens } from "./quota/internal/delegatingStore.ts"
import { MemoryStore, validStore } from "./quota/internal/memoryStore.ts"
import { askOf } from "./quota/internal/reservation.ts"
import * as RetryInfo from "./RetryInfo.ts"
import { CurrentResource } from "./RetryObserver.ts"
import type { Reservation as Held, RetryQuotaStore } from "./RetryQuotaStore.ts"

/**
 * Tokens taken for one retry. They are settled once: returned or spent. Operations on a settled reservation change
 * nothing and return `false`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reservation {
  /** How many tokens it holds. */
  readonly cost: number
  /** Returns the tokens: the retry succeeded, or was never sent. */
  readonly giveBack: Effect.Effect<boolean>
  /** Spends the tokens: the retry was sent and did not succeed. */
  readonly spend: Effect.Effect<boolean>
}

/**
 * The state of a quota: two plain numbers, which can be saved and restored.
 *
 * @category models
 * @since 0.1.0
 */
export interface State {
  /** The current number of tokens: from 0 to `capacity`. */
  readonly tokens: number
  /** The maximum number of tokens. */
  readonly capacity: number
}

/**
 * The operations of a quota.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service {
  /** The maximum number of tokens. */
  readonly capacity: number
  /** What happens to a retry without enough tokens: it is refused, or it waits for the refill. */
  readonly onExceeded: "stop" | "wait"
  /**
   * Takes tokens. If there are too few, it returns none under `onExceeded: "stop"`, and waits under `"wait"`, first
   * come, first served. A `cost` that is not a finite number from 0 to the capacity is a defect, `InvalidOption`.
   */
  readonly reserve: (cost: number) => Effect.Effect<Option.Option<Reservation>>
  /** Adds tokens, up to the capacity: a finite number of at least 0. Another is a defect, `InvalidOption`. */
  readonly deposit: (tokens: number) => Effect.Effect<void>
  /** The current number of tokens: from 0 to `capacity`. */
  readonly balance: Effect.Effect<number>
  /** The current tokens, and the capacity. */
  readonly state: Effect.Effect<State>
  /**
   * Sets the number of tokens: at least 0, at most the capacity, whatever is asked for. Retries that wait for tokens
   * get them in their order. NaN is a defect, `InvalidOption`.
   */
  readonly set: (tokens: number) => Effect.Effect<void>
  /** Where the tokens are kept. Calls take tokens here. */
  readonly store: RetryQuotaStore
}

/**
 * The retry quota of a resource.
 *
 * @category services
 * @since 0.1.0
 */
export class RetryQuota extends Context.Service<RetryQuota, Service>()("effect-retry/RetryQuota") {}

/**
 * A first attempt that the quota cannot pay for: see `firstAttemptCost`. It was not sent, and no policy retries it.
 *
 * @category errors
 * @since 0.1.0
 */
export class QuotaExhausted extends Data.TaggedError("QuotaExhausted")<{
  /** Tokens the attempt would have taken. */
  readonly cost: number
  /** Tokens available. */
  readonly balance: number
}> {
  get [Refused](): true {
    return true
  }
  get [RetryInfo.TypeId](): RetryInfo.RetryInfo {
    return RetryInfo.notRetryable
  }
  override get message(): string {
    return `the retry quota has ${this.balance} tokens, an attempt costs ${this.cost}`
  }
}

/**
 * Options of a quota.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /**
   * The maximum number of tokens: a finite number above 0. A token is not a retry: a retry of `awsStandard` takes 5,
   * one of `awsStandard2026` 14, and any lower capacity switches retries off. Default 500.
   */
  readonly capacity?: number | undefined
  /** The initial number of tokens: from 0 to `capacity`. Default `capacity`. */
  readonly initial?: number | undefined
  /**
   * A saved {@link State}, to begin with what an earlier process had left instead of `initial`. If that had another
   * capacity, it begins with the same share of this one. Default: none.
   */
  readonly restore?: State | undefined
  /** Tokens added per second, regardless of success: a finite number of at least 0. Default 0. */
  readonly refillPerSecond?: number | undefined
  /** Tokens added by a call that succeeds without a retry: from 0 to `capacity`. Default 1. */
  readonly successIncrement?: number | undefined
  /**
   * Tokens that a first attempt takes: from 0 to `capacity`. A success adds `successIncrement`. Without enough tokens
   * the attempt waits or fails with `QuotaExhausted`, as `onExceeded` says; the types of attempts do not show that
   * error. Default 0: first attempts are free.
   */
  readonly firstAttemptCost?: number | undefined
  /** What happens to a retry without enough tokens. `"wait"` needs a refill. Default `"stop"`. */
  readonly onExceeded?: "stop" | "wait" | undefined
  /**
   * How many may wait for tokens: a whole number of at least 0, or `Infinity`. Beyond that the quota counts as
   * exhausted. Default 100,000.
   */
  readonly maxWaiters?: number | undefined
}

const reservationOf = (held: Held): Reservation => ({
  cost: held.cost,
  giveBack: Effect.sync(() => held.giveBack()),
  spend: Effect.sync(() => {
    held.sent?.()
    return held.spend()
  })
})

/** Asks a store for tokens, and waits as long as it takes. */
const reserved = (store: RetryQuotaStore, cost: number): Effect.Effect<Option.Option<Reservation>> =>
  Effect.clockWith((clock) => {
    let held: Held | undefined
    const asked = askOf(store.reserve(cost, clock))(Duration.infinity, (reservation) => {
      held = reservation
    })
    // Tokens that arrive after the caller stopped waiting go back.
    return Effect.onInterrupt(
      Effect.map(asked, () => held === undefined ? Option.none() : Option.some(reservationOf(held))),
      () => Effect.sync(() => held?.giveBack())
    )
  })

/**
 * Makes a quota over your own store.
 *
 * **Details**
 *
 * Every call that pays from the quota asks the store; nothing else decides. A reservation for a retry that is never
 * made returns to the store automatically.
 *
 * **Example** (A store that refuses every retry)
 *
 * ```ts
 * const quota = RetryQuota.fromStore({
 *   capacity: 1,
 *   successIncrement: 0,
 *   firstAttemptCost: 0,
 *   onExceeded: "stop",
 *   reserve: () => undefined,
 *   deposit: () => undefined,
 *   balance: () => 0
 * })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromStore = (store: RetryQuotaStore): Service => {
  const check = checks("RetryQuota.reserve")
  const balance = Effect.andThen(store.refresh ?? Effect.void, withClock((clock) => store.balance(clock)))
  return {
    get capacity() {
      return store.capacity
    },
    get onExceeded() {
      return store.onExceeded
    },
    store,
    reserve: (cost) =>
      Effect.suspend(() => reserved(store, check.between("cost", check.amount("cost", cost), 0, store.capacity))),
    deposit: (tokens) =>
      withClock((clock) => store.deposit(checks("RetryQuota.deposit").amount("tokens", tokens), clock)),
    set: (tokens) =>
      withClock((clock) =>
        setTokens(store, checks("RetryQuota.set").between("tokens", tokens, -Infinity, Infinity), clock)
      ),
    get state() {
      return Effect.map(balance, (tokens) => ({ tokens, capacity: store.capacity }))
    },
    balance
  }
}

/**
 * A layer with a quota over your own store: see {@link fromStore}.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerStore = <E, R>(
  store: Effect.Effect<RetryQuotaStore, E, R>
): Layer.Layer<RetryQuota, E, Exclude<R, Scope.Scope>> =>
  Layer.effect(RetryQuota, watched("RetryQuota", Effect.map(store, fromStore), tokensIn))

/**
 * Makes a quota. Throws `InvalidOption` when an option is invalid.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options = {}): Effect.Effect<Service> => {
  const valid = validStore(options)
  return withMillis((nowMillis) => fromStore(new MemoryStore(valid, nowMillis)))
}

const makeShared = (options?: Options) => watched("RetryQuota", make(options), tokensIn)

/**
 * A layer with its own quota: 500 tokens, unless `capacity` says otherwise. Throws `InvalidOption` when an option is
 * invalid.
 *
 * **Details**
 *
 * A retry takes the tokens that its policy says: 5 with `awsStandard` and `httpStandard`, 14 with `awsStandard2026`.
 * A success returns those of its retry, or adds 1. Without enough tokens a call is not retried.
 *
 * **Gotchas**
 *
 * Each call makes a new layer, and each layer a new quota each time it is built: `Effect.provide(layer)` on a single
 * call or request builds one for that call, even if the layer is a constant. Such a quota is always full and limits
 * nothing. Build the layer once per process, as with `ManagedRuntime` or around the whole program. If ten quotas in a
 * row are dropped within a minute of being built, after enough failed retries in total to have emptied one, a warning
 * is logged, once. To give a part of a program its own quota on purpose, use
 * `Effect.provideServiceEffect(RetryQuota, make())`. A retry that costs more than `capacity` is never made; the first
 * one refused for that logs a warning.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<RetryQuota> => Layer.effect(RetryQuota, makeShared(options))

const quotas: Names<MemoryStore> = /* @__PURE__ */ new WeakMap()

/**
 * A layer with the quota of a resource: the same for each name in the process, wherever the layer is built. So a single
 * call can be provided with it. It also names the resource for observers. Throws `InvalidOption` when the name is empty or
 * an option is invalid.
 *
 * **Details**
 *
 * 10,000 names are kept, and all that are in use. Of more, one whose quota is full is forgotten, else the one used longest
 * ago: it starts full again. The options are those of
 * the first use of a name. Another clock, as in a test, has quotas of its own. `ResourceLimiters` has more options, and
 * forgets what is idle.
 *
 * **Example** (An outage of one service leaves the retries of the other alone)
 *
 * ```ts
 * const program = Effect.all([
 *   callDynamo.pipe(withRetry(awsStandard), Effect.provide(RetryQuota.layerFor("dynamodb"))),
 *   call.pipe(withRetry(awsStandard), Effect.provide(RetryQuota.layerFor("orders", { capacity: 100 })))
 * ])
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerFor = (name: string, options: Options = {}): Layer.Layer<RetryQuota> => {
  checkName("RetryQuota.layerFor", name)
  const valid = validStore(options)
  const store = named(quotas, name, (nowMillis) => new MemoryStore(valid, nowMillis))
  return Layer.effectContext(
    Effect.map(store, (store) => Context.add(Context.make(RetryQuota, fromStore(store)), CurrentResource, name))
  )
}

/**
 * A layer with its own quota, with options from configuration: see {@link layer}. Fails with `InvalidOption` when an
 * option is invalid.
 *
 * **Example** (A quota whose size comes from the environment)
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
): Layer.Layer<RetryQuota, Config.ConfigError | InvalidOption> =>
  Layer.effect(RetryQuota, configured(options, makeShared))

/**
 * A layer whose quota never runs out: its balance is `Infinity`. For tests, and for policies that need no limit.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerUnlimited: Layer.Layer<RetryQuota> = /* @__PURE__ */ Layer.sync(RetryQuota, () =>
  fromStore(
    new MemoryStore({ ...validStore({}), capacity: Infinity, initial: Infinity, successIncrement: 0 }, 0)
  ))

/**
 * The current number of tokens: from 0 to the capacity.
 *
 * @category getters
 * @since 0.1.0
 */
export const balance: Effect.Effect<number, never, RetryQuota> = /* @__PURE__ */ RetryQuota.use((quota) =>
  quota.balance
)

/**
 * The current tokens and the capacity of the quota.
 *
 * @category getters
 * @since 0.1.0
 */
export const state: Effect.Effect<State, never, RetryQuota> = /* @__PURE__ */ RetryQuota.use((quota) => quota.state)

/**
 * Sets the number of tokens of the quota; see {@link Service}.
 *
 * @category combinators
 * @since 0.1.0
 */
export const set = (tokens: number): Effect.Effect<void, never, RetryQuota> =>
  RetryQuota.use((quota) => quota.set(tokens))

/**
 * Takes tokens from the quota; see {@link Service}.
 *
 * @category combinators
 * @since 0.1.0
 */
export const reserve = (cost: number): Effect.Effect<Option.Option<Reservation>, never, RetryQuota> =>
  RetryQuota.use((quota) => quota.reserve(cost))

/**
 * Adds tokens to the quota; see {@link Service}.
 *
 * @category combinators
 * @since 0.1.0
 */
export const deposit = (tokens: number): Effect.Effect<void, never, RetryQuota> =>
  RetryQuota.use((quota) => quota.deposit(tokens))

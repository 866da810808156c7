/**
 * Hedged requests: a second send for a call whose first one takes too long.
 *
 * A call to a hundred servers is as slow as the slowest. Where one send in a hundred takes fifty times as long for no
 * reason of its own, a second one, sent when the first is late, is nearly always there before it: the tail of the
 * latencies goes, for a few percent of more traffic. {@link hedged} makes it, and the first success wins.
 *
 * Hedges are paid from a share of the traffic, never from the quota of retries: every success pays into that, so hedges
 * that succeed would pay for more of them, and keep a busy service overloaded for good. The share starts empty. No hedge
 * is made while a gate says that its resource is strained, as a `ConcurrencyLimiter` does for 10 seconds after a cut.
 *
 * A hedge repeats what may already have been done: hedge only what may run twice.
 *
 * **Source**: Dean and Barroso, "The Tail at Scale", CACM 56(2), 2013; Finagle's `BackupRequestFilter`; gRPC proposal A6.
 *
 * @since 0.1.0
 */

import type * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { type AtQuantile, type HedgeOptions, hedging, type Home, InsideHedge } from "./engine/hedge.ts"
import { type Checks, checks } from "./internal/checks.ts"
import { clockOf, monotonicMillis } from "./internal/clock.ts"
import { configured } from "./internal/config.ts"
import { Refused } from "./internal/refused.ts"
import { get } from "./internal/safe.ts"
import { shared } from "./internal/shared.ts"
import type { InvalidOption } from "./InvalidOption.ts"
import type * as RetryInfo from "./RetryInfo.ts"
import type { RetryQuotaStore } from "./RetryQuotaStore.ts"
import { Latencies } from "./state/latencies.ts"
import { TrafficShare } from "./state/trafficShare.ts"

/**
 * How hedges are paid for, and how latencies are measured.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /**
   * The most hedges there may be, as a share of the calls: above 0, at most 1. Default 0.02. Keep the load, with this
   * share on top, below what the service can take: a service of 300 requests a second stands 280 with 2 %, hardly with 5 %.
   */
  readonly share?: number | undefined
  /** For how long a call pays for hedges: a finite duration above 0. Default 10 seconds. */
  readonly shareWindow?: Duration.Input | undefined
  /**
   * What pays for hedges, in place of the share: a store into which every call puts its `successIncrement`, and of which
   * a hedge takes its cost. What is taken is spent as soon as the hedge is sent. Never give it the store of a quota.
   */
  readonly budget?: RetryQuotaStore | undefined
  /** Over how long latencies are measured: a finite duration above 0. Default 30 seconds. */
  readonly latencyWindow?: Duration.Input | undefined
}

/**
 * The hedging of a resource at a moment.
 *
 * @category models
 * @since 0.1.0
 */
export interface Snapshot {
  /** What the budget has: with a share of the traffic, the hedges that can be sent. */
  readonly balance: number
  /** The latencies that are known. */
  readonly latencies: number
}

/**
 * What the calls of a resource share: the budget of their hedges, and how long their sends take.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service {
  /** What pays for hedges. */
  readonly budget: RetryQuotaStore
  /** The latency, in milliseconds, that a share of the sends did not exceed; `undefined` while none is known. */
  readonly latency: (quantile: number) => Effect.Effect<number | undefined, InvalidOption>
  /** The hedging now. */
  readonly snapshot: Effect.Effect<Snapshot>
  /** @internal */
  readonly home: Home
}

/**
 * The hedging of a resource.
 *
 * @category services
 * @since 0.1.0
 */
export class Hedge extends Context.Service<Hedge, Service>()("effect-retry/Hedge") {}

/**
 * Which send of a hedged call an effect runs in: 0 in the first, 1 in the first hedge; `undefined` outside of one.
 *
 * **Example** (A header that tells hedges)
 *
 * ```ts
 * const headers = Effect.map(Hedge.CurrentSend, (send = 0) => ({ "x-hedge": String(send) }))
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export const CurrentSend: Context.Reference<number | undefined> = InsideHedge

const defaultShare = 0.02

/**
 * Options with their defaults, checked.
 *
 * @internal
 */
export const validated = (options: Options) => {
  const check = checks("Hedge.make")
  const { budget, latencyWindow = 30_000, share = defaultShare, shareWindow = 10_000 } = options
  if (budget !== undefined && typeof get(budget, "reserve") !== "function") {
    check.reject("budget", budget, "a RetryQuotaStore")
  }
  return {
    budget,
    share: check.between("share", check.positive("share", share), 0, 1),
    shareWindowMillis: check.positiveDuration("shareWindow", shareWindow),
    latencyWindowMillis: check.positiveDuration("latencyWindow", latencyWindow)
  }
}

const now = <A>(f: (nowMillis: number) => A): Effect.Effect<A> =>
  Effect.withFiber((fiber) => Effect.sync(() => f(monotonicMillis(clockOf(fiber)))))

/**
 * What the calls of a resource share. Calls that begin from now on look whether they are hedged.
 *
 * @internal
 */
export const homeOf = (valid: ReturnType<typeof validated>, scope: Scope.Scope): Home => {
  shared.hedging = true
  return {
    budget: valid.budget ?? new TrafficShare(valid.share, valid.shareWindowMillis),
    latencies: new Latencies(valid.latencyWindowMillis),
    // With a share of everything, half are late enough. Source: Finagle's percentile, 1 - maxExtraLoad.
    quantile: Math.max(0.5, 1 - valid.share),
    scope
  }
}

/**
 * The service over what calls share.
 *
 * @internal
 */
export const serviceOf = (home: Home): Service => ({
  home,
  budget: home.budget,
  latency: (quantile) =>
    Effect.flatMap(
      Effect.try({
        try: () => checks("Hedge.latency").inside("quantile", quantile, 0, 1),
        catch: (error) => error as InvalidOption
      }),
      (valid) => now((nowMillis) => home.latencies.quantile(valid, 1, nowMillis))
    ),
  snapshot: Effect.clockWith((clock) =>
    now((nowMillis) => ({ balance: home.budget.balance(clock), latencies: home.latencies.count(nowMillis) }))
  )
})

/**
 * Makes the hedging of a resource. Its scope is where sends end that nobody waits for any more: closing it waits for
 * them. Throws `InvalidOption` when an option is impossible.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options?: Options): Effect.Effect<Service, never, Scope.Scope> => {
  const valid = validated(options ?? {})
  return Effect.map(Effect.scope, (scope) => serviceOf(homeOf(valid, scope)))
}

/**
 * A layer with a hedging of its own. Throws `InvalidOption` when an option is impossible.
 *
 * **Gotchas**
 *
 * Each call makes another layer, and each layer another budget, which starts empty. Keep the layer in a constant, and
 * provide it once for one resource: a budget for a single call never pays for a hedge.
 *
 * **Example** (Reads whose latency has a tail)
 *
 * ```ts
 * const hedgeLayer = Hedge.layer({ share: 0.02 })
 * const program = call.pipe(Hedge.hedged({ after: "200 millis" }), withRetry(awsStandard), Effect.provide(hedgeLayer))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<Hedge> => Layer.effect(Hedge, make(options))

/**
 * A layer with a hedging of its own whose options come from configuration: see {@link layer}. Fails with `InvalidOption`
 * when an option is impossible.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  options: Config.Wrap<Options>
): Layer.Layer<Hedge, Config.ConfigError | InvalidOption> => Layer.effect(Hedge, configured(options, make))

/**
 * The hedging now.
 *
 * @category getters
 * @since 0.1.0
 */
export const snapshot: Effect.Effect<Snapshot, never, Hedge> = /* @__PURE__ */ Hedge.use((hedge) => hedge.snapshot)

/**
 * The delay that {@link quantile} makes.
 *
 * @category models
 * @since 0.1.0
 */
export interface Quantile extends AtQuantile {
  readonly _tag: "Quantile"
}

/**
 * What is known of a {@link quantile} beside its number.
 *
 * @category models
 * @since 0.1.0
 */
export interface QuantileOptions {
  /**
   * How many latencies have to be known: a whole number of at least 1. Default: `1 / (1 - quantile)`, so that one of them
   * may lie above it.
   */
  readonly warmUp?: number | undefined
  /** The shortest delay: a finite duration of at least 0. Default 1 millisecond. */
  readonly atLeast?: Duration.Input | undefined
  /** The delay before so many are known: a finite duration of at least 0. Default: until then no hedge is made. */
  readonly first?: Duration.Input | undefined
}

/**
 * The delay that a share of the sends do not exceed, as it was measured: at 0.98 the slowest 2 % are hedged.
 *
 * **Details**
 *
 * What counts is how long successes and time-outs took, and that a send took longer than its delay if nobody waited for
 * its end. Other failures say nothing. The window is that of {@link Options}; the figure is exact to 0.6 %, and worked out
 * anew each thirtieth of the window.
 *
 * Without a number the quantile is what the share of the budget leaves: 0.98 with the default share. A lower one asks for
 * more hedges than there are, which those get that are late first, and not those that are late most.
 *
 * @category constructors
 * @since 0.1.0
 */
export const quantile = (quantile?: number, options: QuantileOptions = {}): Quantile => {
  const check = checks("Hedge.quantile")
  return {
    _tag: "Quantile",
    quantile: quantile === undefined ? undefined : check.inside("quantile", quantile, 0, 1),
    warmUp: options.warmUp === undefined ? undefined : check.count("warmUp", options.warmUp, 1),
    atLeastMillis: check.duration("atLeast", options.atLeast, 1),
    firstMillis: check.duration("first", options.first, Infinity)
  }
}

/**
 * How a call is hedged.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallOptions {
  /**
   * How long a send may take before the next is made: a duration of at least 0, or a {@link quantile} of the latencies.
   * With 0 all are made immediately; with `Duration.infinity`, each when the one before has failed. Default `quantile()`.
   */
  readonly after?: Duration.Input | Quantile | undefined
  /** How many hedges a call may have: a whole number from 0 to 10. Default 1. */
  readonly atMost?: number | undefined
  /** What a hedge takes of the budget: a finite number above 0. Default 1, a whole send. */
  readonly cost?: number | undefined
  /**
   * Whether the next send is made when one fails so; else the failure ends all. It is given the facts of the classifier,
   * `undefined` for what that does not know. Default: what the facts do not rule out, since the call may run twice.
   */
  readonly isRetryable?: ((error: any, info: RetryInfo.RetryInfo | undefined) => boolean) | undefined
}

const isRefused = (error: unknown): boolean => get(error, Refused) === true

const asFacts = (_error: unknown, info: RetryInfo.RetryInfo | undefined): boolean =>
  info !== undefined && info.safety !== "No"

/** No hedge waits longer for a server that asks for time. */
const maxHintMillis = 60_000

const reactTo = (isRetryable: NonNullable<CallOptions["isRetryable"]>): HedgeOptions["react"] => (error, info) => {
  if (isRefused(error) || info?.vetoed === true) return "stop"
  if (!isRetryable(error, info)) return "final"
  const millis = info?.retryAfter === undefined ? 0 : Duration.toMillis(info.retryAfter)
  if (millis > maxHintMillis) return "stop"
  return millis === 0 ? "next" : millis
}

const isQuantile = (after: unknown): after is Quantile => get(after, "_tag") === "Quantile"

const delayOf = (check: Checks, after: CallOptions["after"] = quantile()): number | AtQuantile => {
  if (isQuantile(after)) return after
  return after === Infinity || get(get(after, "value"), "_tag") === "Infinity"
    ? Infinity
    : check.duration("after", after)
}

/**
 * Checks options, for the combinators of the adapters.
 *
 * @internal
 */
export const validatedCall = (constructorName: string, options: CallOptions): HedgeOptions => {
  const check = checks(constructorName)
  const { after, atMost = 1, cost = 1, isRetryable = asFacts } = options
  if (typeof isRetryable !== "function") check.reject("isRetryable", isRetryable, "a function of an error")
  return {
    after: delayOf(check, after),
    atMost: check.between("atMost", check.count("atMost", atMost, 0), 0, 10),
    cost: check.positive("cost", cost),
    react: reactTo(isRetryable),
    waitsOut: false,
    release: undefined
  }
}

const hedgedWith = <A, E, R>(
  self: Effect.Effect<A, E, R>,
  options: HedgeOptions
): Effect.Effect<A, E, R | Hedge> => Hedge.use(({ home }) => hedging(self, options, home))

/**
 * Sends once more when a send takes too long, and takes the first success.
 *
 * **Details**
 *
 * - A send that fails, and could be retried, has the next made immediately, or when the server says so; any other failure
 *   ends all. When all have failed, the call fails as its first send did.
 * - A hedge that budget or a gate refuse is not made, and no other after it; those in flight go on.
 * - The sends that lose are interrupted and not waited for. They end in the scope of the layer.
 * - Every send asks the gates, and tells them how it ends: a loser without an outcome. None is made inside the send of
 *   another hedged call, or after the deadline of the policy around it.
 * - `RetryObserver.onHedge` is notified of hedges.
 *
 * **Gotchas**
 *
 * Hedge a send, and retry what comes of it: `call.pipe(Hedge.hedged(), withRetry(policy))`. With `Effect.retry`, mark the
 * hedged call: `attempt(hedged(call))`. A time-out of each send goes inside.
 *
 * **Example** (A read that is sent again after 200 milliseconds)
 *
 * ```ts
 * const getItem = call.pipe(Hedge.hedged({ after: "200 millis" }), withRetry(awsStandard))
 * ```
 *
 * **Example** (The slowest 2 %, whatever that means today)
 *
 * ```ts
 * const getItem = call.pipe(
 *   Hedge.hedged({ after: Hedge.quantile(0.98, { first: "1 second" }) }),
 *   withRetry(awsStandard)
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const hedged: {
  (options?: CallOptions): <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R | Hedge>
  <A, E, R>(self: Effect.Effect<A, E, R>, options?: CallOptions): Effect.Effect<A, E, R | Hedge>
} = (...args: ReadonlyArray<any>): any => {
  const isFirst = Effect.isEffect(args[0])
  const options = validatedCall("Hedge.hedged", args[isFirst ? 1 : 0] ?? {})
  return isFirst ? hedgedWith(args[0], options) : (self: Effect.Effect<any, any, any>) => hedgedWith(self, options)
}

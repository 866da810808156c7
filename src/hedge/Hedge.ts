/**
 * Hedged requests: a second send for a call whose first is taking too long.
 *
 * A call to a hundred servers is as slow as the slowest one. If one send in a hundred takes fifty times as long for no
 * particular reason, a second send, made when the first is late, nearly always finishes first: the latency tail is gone
 * for a few percent more traffic. {@link hedged} makes that second send, and the first success wins.
 *
 * Hedges are paid for by a share of the traffic, never by the retry quota: every success pays into the quota, so
 * successful hedges would pay for more hedges and keep a busy service overloaded for minutes. The share starts empty. No
 * hedge is made while a gate reports that its resource is strained, as a `ConcurrencyLimiter` does for 10 seconds after
 * a cut, and an `AdaptiveRateLimiter` after a throttle.
 *
 * A hedge may repeat work already done: hedge only what can safely run twice.
 *
 * **Source**: Dean and Barroso, "The Tail at Scale", CACM 56(2), 2013; Finagle's `BackupRequestFilter`; gRPC proposal A6.
 *
 * @since 0.1.0
 */

import type * as Config from "effect/Config"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { checksOf } from "../internal/checks.ts"
import { monotonicMillis } from "../internal/clock.ts"
import { configured } from "../internal/layerConfig.ts"
import { watched } from "../internal/sharing.ts"
import type { InvalidOption } from "../InvalidOption.ts"
import type * as RetryInfo from "../RetryInfo.ts"
import type { RetryQuotaStore } from "../RetryQuotaStore.ts"
import { homeOf, quantileOf, serviceOf, validCall, validHome } from "./internal/hedgeOptions.ts"
import { type AtQuantile, CurrentHedge, type HedgeOptions, hedging, type Home } from "./internal/race.ts"

/**
 * How hedges are paid for, and how latencies are measured.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /**
   * The most hedges allowed, as a share of the calls: above 0, at most 1. Default 0.02. Keep the load plus this share
   * below the capacity of the service: a service that handles 300 requests per second copes with 280 at 2 %, barely at
   * 5 %.
   */
  readonly share?: number | undefined
  /** How long a call pays for hedges: a finite duration above 0. Default 10 seconds. */
  readonly shareWindow?: Duration.Input | undefined
  /**
   * Pays for hedges in place of the share: a store into which every call puts its `successIncrement`, and from which a
   * hedge takes its cost. A hedge that was sent spends it, however it ends. The gates of the store are asked about every
   * send; to them, a hedge is a retry. Never give it the store of a quota.
   */
  readonly budget?: RetryQuotaStore | undefined
  /** The window in which latencies are measured: a finite duration above 0. Default 30 seconds. */
  readonly latencyWindow?: Duration.Input | undefined
}

/**
 * The current state of the hedging of a resource.
 *
 * @category models
 * @since 0.1.0
 */
export interface State {
  /** The budget's balance: with a share of the traffic, the number of hedges that can be sent. */
  readonly balance: number
  /** The number of latencies known. */
  readonly latencies: number
}

/**
 * What the calls of a resource share: their hedge budget, and the latencies of their sends.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service {
  /** Pays for hedges. */
  readonly budget: RetryQuotaStore
  /**
   * The latency, in milliseconds, that this share of the sends did not exceed; `undefined` while none is known. A share
   * that is not above 0 and below 1 is a defect, `InvalidOption`.
   */
  readonly latency: (quantile: number) => Effect.Effect<number | undefined>
  /** The current state. */
  readonly state: Effect.Effect<State>
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
 * Which send of a hedged call an effect runs in: 0 in the first, 1 in the first hedge; `undefined` outside a hedged
 * call.
 *
 * **Example** (A header that marks hedges)
 *
 * ```ts
 * const headers = Effect.map(Hedge.CurrentSend, (send = 0) => ({ "x-hedge": String(send) }))
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export const CurrentSend: Context.Reference<number | undefined> = CurrentHedge

/**
 * Makes the hedging of a resource. Losing sends, which no caller waits for, end in its scope: closing it waits for
 * them. Throws `InvalidOption` when an option is invalid.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options = {}): Effect.Effect<Service, never, Scope.Scope> => {
  const valid = validHome(options)
  return Effect.map(Effect.scope, (scope) => serviceOf(homeOf(valid, scope)))
}

/** A hundred latencies say what is late. */
const makeShared = (options?: Options) =>
  watched("Hedge", make(options), ({ home }, clock) => 100 - home.latencies.count(monotonicMillis(clock)))

/**
 * A layer with its own hedging. Throws `InvalidOption` when an option is invalid.
 *
 * **Gotchas**
 *
 * Provided to a single call, it builds a budget for that call, even if the layer is a constant: such a budget starts
 * empty and never pays for a hedge. Build it once per resource, in a `ManagedRuntime` or around the program.
 *
 * **Example** (Reads with a latency tail)
 *
 * ```ts
 * const hedgeLayer = Hedge.layer({ share: 0.02 })
 * const program = call.pipe(Hedge.hedged({ after: "200 millis" }), withRetry(awsStandard), Effect.provide(hedgeLayer))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<Hedge> => Layer.effect(Hedge, makeShared(options))

/**
 * A layer with its own hedging, with options from configuration: see {@link layer}. Fails with `InvalidOption` when an
 * option is invalid.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  options: Config.Wrap<Options>
): Layer.Layer<Hedge, Config.ConfigError | InvalidOption> => Layer.effect(Hedge, configured(options, makeShared))

/**
 * The current state of the hedging.
 *
 * @category getters
 * @since 0.1.0
 */
export const state: Effect.Effect<State, never, Hedge> = /* @__PURE__ */ Hedge.use((hedge) => hedge.state)

/**
 * The delay made by {@link quantile}.
 *
 * @category models
 * @since 0.1.0
 */
export interface Quantile extends AtQuantile {
  readonly _tag: "Quantile"
}

/**
 * The options of {@link quantile}.
 *
 * @category models
 * @since 0.1.0
 */
export interface QuantileOptions {
  /**
   * How many latencies must be known: a whole number of at least 1, or `Infinity`. Default: `1 / (1 - quantile)`, so
   * that one of them may lie above it.
   */
  readonly warmUp?: number | undefined
  /** The shortest delay: a finite duration of at least 0. Default 1 millisecond. */
  readonly atLeast?: Duration.Input | undefined
  /**
   * The delay until `warmUp` latencies are known: a finite duration of at least 0. Default: no hedge is made until
   * then.
   */
  readonly first?: Duration.Input | undefined
}

/**
 * The measured delay that this share of the sends does not exceed: at 0.98 the slowest 2 % are hedged.
 *
 * **Details**
 *
 * It counts the durations of successes and timeouts; of a send whose end no caller waited for, that it took longer than
 * its delay. Other failures do not count. The window is that of {@link Options}; the figure is exact to 0.6 % and
 * recomputed every thirtieth of the window.
 *
 * Without a number, the quantile is what the share of the budget allows: 0.98 with the default share. A lower quantile
 * asks for more hedges than the budget pays for, and they go to the first sends that are late, not to the latest.
 *
 * @category constructors
 * @since 0.1.0
 */
export const quantile: (quantile?: number, options?: QuantileOptions) => Quantile = quantileOf

/**
 * How a call is hedged.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallOptions {
  /**
   * How long a send may take before the next is made: a duration of at least 0, or a {@link quantile} of the latencies.
   * With 0 all are made immediately; with `Duration.infinity`, each when the previous one has failed. Default
   * `quantile()`.
   */
  readonly after?: Duration.Input | Quantile | undefined
  /** How many hedges a call may have: a whole number from 0 to 10. Default 1. */
  readonly atMost?: number | undefined
  /** What a hedge takes from the budget: a finite number above 0. Default 1, a whole send. */
  readonly cost?: number | undefined
  /**
   * Whether a failure starts the next send; otherwise it ends the call. It is given the classifier's facts,
   * `undefined` for unknown errors. Default: any known failure that is not final, since the call can run twice. Where it
   * throws, the default answers.
   */
  readonly isRetryable?: ((error: any, info: RetryInfo.RetryInfo | undefined) => boolean) | undefined
}

const hedgedWith = (self: Effect.Effect<any, any, any>, options: HedgeOptions) =>
  Hedge.use(({ home }) => hedging(self, options, home))

/**
 * Sends again when a send takes too long, and takes the first success.
 *
 * **Details**
 *
 * - After a failure that could be retried, the next send is made immediately, or when the server says so; any other
 *   failure ends the call. If all fail, the call fails as its first send did.
 * - A hedge that the budget or a gate refuses is not made, nor any after it; those in flight continue.
 * - Losing sends are interrupted, not awaited. They end in the scope of the layer.
 * - Every send asks the gates, and reports to them how it ends: a loser without an outcome. No hedge is made inside a
 *   send of another hedged call, or after the deadline of the policy around it.
 * - `RetryObserver.onHedge` is notified of hedges.
 *
 * **Gotchas**
 *
 * Hedge a send, and retry the result: `call.pipe(Hedge.hedged(), withRetry(policy))`. A timeout of each send goes
 * inside.
 *
 * **Example** (A read sent again after 200 milliseconds)
 *
 * ```ts
 * const getItem = call.pipe(Hedge.hedged({ after: "200 millis" }), withRetry(awsStandard))
 * ```
 *
 * **Example** (The slowest 2 %, whatever that is today)
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
  const { [isFirst ? 1 : 0]: input = {} } = args
  const options = validCall(checksOf("Hedge.hedged", input), input)
  return isFirst ? hedgedWith(args[0], options) : (self: Effect.Effect<any, any, any>) => hedgedWith(self, options)
}

/**
 * The client-side rate limiter of AWS's adaptive retry mode.
 *
 * Backing off after a throttle slows one call; the client's other calls continue. This limiter slows the client: once a
 * service has throttled, every send (first or retry) takes a token from a bucket whose fill rate follows the CUBIC
 * curve known from TCP: down to a share `beta` at a throttle, then back up to the rate that was throttled, then
 * carefully beyond. Until the first throttle it only measures.
 *
 * The AWS reference calls adaptive mode experimental: its behavior might change. It assumes that all sends of the
 * limiter go to one resource: give each resource its own limiter ({@link layer}, or
 * `ResourceLimiters`).
 *
 * **Source**: AWS SDKs and Tools Reference Guide, retry behavior, adaptive mode; the same pseudocode is in botocore
 * `retries/adaptive.py`, `throttling.py`, `bucket.py` and in smithy-typescript `DefaultRateLimiter.ts`. Time is
 * monotonic, so wall clock jumps change nothing.
 *
 * @since 0.1.0
 */

import type * as Config from "effect/Config"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { checkName } from "../internal/checks.ts"
import { configured } from "../internal/layerConfig.ts"
import { named, type Names } from "../internal/namedServices.ts"
import { capacityIn, watched } from "../internal/sharing.ts"
import type { InvalidOption } from "../InvalidOption.ts"
import { CurrentResource } from "../RetryObserver.ts"
import type * as SendGate from "../SendGate.ts"
import { type AdaptiveGate, limiterKind, type RateLimitExceeded, unlimited } from "./internal/adaptiveGate.ts"
import { GateService, serviceFrom } from "./internal/gate.ts"

export { RateLimitExceeded } from "./internal/adaptiveGate.ts"

/**
 * The current state of the limiter: plain numbers, which can be saved and restored.
 *
 * @category models
 * @since 0.1.0
 */
export interface State {
  /** Whether a throttle has been seen, so that sends take tokens. */
  readonly enabled: boolean
  /** The send tokens available now. */
  readonly capacity: number
  /** The most send tokens there can be. */
  readonly maxCapacity: number
  /** Send tokens added per second. */
  readonly fillRate: number
  /** Measured sends per second, smoothed. */
  readonly measuredTxRate: number
  /** The rate at which the service last throttled, per second. */
  readonly lastMaxRate: number
  /** Seconds since the last throttle; 0 until the first. */
  readonly sinceThrottle: number
  /** Seconds that CUBIC takes to return to `lastMaxRate`. */
  readonly timeWindow: number
  /** Sends waiting for a token. */
  readonly waiting: number
}

/**
 * The operations of a limiter.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service {
  /** Takes a send token: immediately until the first throttle; after it, waits or fails fast, as configured. */
  readonly acquire: Effect.Effect<void, RateLimitExceeded>
  /** Records the response to a send. */
  readonly update: (throttled: boolean) => Effect.Effect<void>
  /** The limiter's current state. */
  readonly state: Effect.Effect<State>
  /** Holds sends back; `undefined` for a limiter that limits nothing. */
  readonly gate: SendGate.SendGate<RateLimitExceeded> | undefined
}

/**
 * The limiter of a resource.
 *
 * @category services
 * @since 0.1.0
 */
export class AdaptiveRateLimiter
  extends GateService<AdaptiveRateLimiter, Service>()("effect-retry/AdaptiveRateLimiter")
{}

/**
 * Options of a limiter. The constants keep their published names.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The share of the rate that remains after a throttle: above 0, below 1. Default 0.7. */
  readonly beta?: number | undefined
  /** The least fill rate, per second: a finite number above 0. Default 0.5. */
  readonly minFillRate?: number | undefined
  /** The least capacity of the bucket: a finite number of at least 1. Default 1. */
  readonly minCapacity?: number | undefined
  /** How steep the CUBIC curve is: a finite number above 0. Default 0.4. */
  readonly scaleConstant?: number | undefined
  /** The weight of the latest measurement: above 0, at most 1. Default 0.8. */
  readonly smoothing?: number | undefined
  /** How long one measurement of the send rate lasts, a nanosecond or longer. Default 500 milliseconds. */
  readonly measurementBucketDuration?: Duration.Input | undefined
  /** What a send does when there is no token. Default `"wait"`. */
  readonly onExceeded?: "wait" | "fail" | undefined
  /** How many sends may wait: a whole number of at least 0, or `Infinity`. Default 100,000. */
  readonly maxWaiters?: number | undefined
  /**
   * A saved {@link State}, to begin with the rates that an earlier process had found. The time between them does not
   * count. Default: none.
   */
  readonly restore?: State | undefined
}

/**
 * Makes a limiter. Throws `InvalidOption` when an option is invalid.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options = {}): Effect.Effect<Service> => serviceFrom(limiterKind, options)

const makeShared = (options?: Options) => watched("AdaptiveRateLimiter", make(options), capacityIn)

/**
 * A layer with its own limiter. Throws `InvalidOption` when an option is invalid.
 *
 * **Gotchas**
 *
 * Each call makes a new layer, and each layer builds a new limiter: `Effect.provide(layer)` on a single call builds one
 * for that call, which limits nothing. Build it once per process, as with `ManagedRuntime`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<AdaptiveRateLimiter> =>
  Layer.effect(AdaptiveRateLimiter, makeShared(options))

const limiters: Names<AdaptiveGate> = /* @__PURE__ */ new WeakMap()

/**
 * A layer with the limiter of a resource: the same for each name in the process, wherever the layer is built. So a
 * single call can be provided with it. It also names the resource for observers. Throws `InvalidOption` when the name is
 * empty or an option is invalid.
 *
 * **Details**
 *
 * It is kept, forgotten and apart for each clock as a quota is by `RetryQuota.layerFor`.
 *
 * **Example** (A throttled table slows down no other)
 *
 * ```ts
 * const program = callDynamo.pipe(
 *   withRetry(awsAdaptive),
 *   Effect.provide([RetryQuota.layerFor("dynamodb:orders"), AdaptiveRateLimiter.layerFor("dynamodb:orders")])
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerFor = (name: string, options: Options = {}): Layer.Layer<AdaptiveRateLimiter> => {
  checkName("AdaptiveRateLimiter.layerFor", name)
  const { make, serviceOf, validated } = limiterKind
  const valid = validated(options)
  const gate = named(limiters, name, (nowMillis) => make(valid, undefined, nowMillis))
  return Layer.effectContext(
    Effect.map(gate, (gate) => Context.add(Context.make(AdaptiveRateLimiter, serviceOf(gate)), CurrentResource, name))
  )
}

/**
 * A layer with its own limiter, with options from configuration: see {@link layer}. Fails with `InvalidOption` when an
 * option is invalid.
 *
 * **Example** (A program whose environment decides whether it waits for send tokens)
 *
 * ```ts
 * const limiterLayer = AdaptiveRateLimiter.layerConfig({
 *   onExceeded: Config.Literals(["wait", "fail"], "ON_EXCEEDED").pipe(Config.withDefault("wait"))
 * })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  options: Config.Wrap<Options>
): Layer.Layer<AdaptiveRateLimiter, Config.ConfigError | InvalidOption> =>
  Layer.effect(AdaptiveRateLimiter, configured(options, makeShared))

/**
 * A layer whose limiter never limits: it sees no responses and holds no send back. For programs that choose their retry
 * mode at run time, and for tests.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerUnlimited: Layer.Layer<AdaptiveRateLimiter> = /* @__PURE__ */ Layer.sync(
  AdaptiveRateLimiter,
  () => unlimited
)

/**
 * The limiter's current state.
 *
 * @category getters
 * @since 0.1.0
 */
export const state: Effect.Effect<State, never, AdaptiveRateLimiter> = /* @__PURE__ */ AdaptiveRateLimiter.use(
  (limiter) => limiter.state
)

/**
 * Takes a send token; see {@link Service}.
 *
 * @category combinators
 * @since 0.1.0
 */
export const acquire: Effect.Effect<void, RateLimitExceeded, AdaptiveRateLimiter> = /* @__PURE__ */ AdaptiveRateLimiter
  .use((limiter) => limiter.acquire)

/**
 * Records the response to a send; see {@link Service}.
 *
 * @category combinators
 * @since 0.1.0
 */
export const update = (throttled: boolean): Effect.Effect<void, never, AdaptiveRateLimiter> =>
  AdaptiveRateLimiter.use((limiter) => limiter.update(throttled))

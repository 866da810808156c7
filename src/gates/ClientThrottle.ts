/**
 * Rejects, at random, as many sends as a service rejects: Google's client-side throttling.
 *
 * A service that rejects most requests still pays for each of them. A throttle counts what the service accepts, and
 * lets through little more than `k` times that: with `k` of 2, one request is rejected for each that is accepted.
 *
 * Use it only where a `ConcurrencyLimiter` cannot work: in fleets of many hundred processes, each with less than one
 * call per second. Elsewhere the limiter alone ends an outage sooner.
 *
 * It assumes that all its sends go to one resource: give each resource its own throttle.
 *
 * @since 0.1.0
 */

import type * as Config from "effect/Config"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { configured } from "../internal/layerConfig.ts"
import { capacityIn, watched } from "../internal/sharing.ts"
import type { InvalidOption } from "../InvalidOption.ts"
import type * as SendGate from "../SendGate.ts"
import { GateService, serviceFrom } from "./internal/gate.ts"
import { type ClientThrottled, throttleKind } from "./internal/throttleGate.ts"

export { ClientThrottled } from "./internal/throttleGate.ts"

/**
 * Options of a throttle.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** How many requests are let through for each one accepted: a finite number of at least 1. Default 2. */
  readonly k?: number | undefined
  /**
   * How long a request counts: a finite duration above 0. Default 10 seconds. A longer window means a longer recovery.
   */
  readonly window?: Duration.Input | undefined
  /**
   * The largest share of sends to reject: from 0 to 1. Default 0.9: one in ten goes through as a probe. With 1,
   * possibly none does.
   */
  readonly maxRejection?: number | undefined
  /**
   * When a request counts: once its outcome is known, or when it is sent. Default `"settled"`; with `"sent"` part of a
   * burst is rejected even if the service is healthy.
   */
  readonly counts?: "settled" | "sent" | undefined
  /**
   * Whether an outcome means that the service did not accept the request. Default: a failure that may be retried, a
   * throttle, a timeout, or one whose retry a rule forbids. Where it throws, the default answers.
   */
  readonly isRejection?: ((outcome: SendGate.Outcome) => boolean) | undefined
}

/**
 * The current state of the throttle.
 *
 * @category models
 * @since 0.1.0
 */
export interface State {
  /** Requests in the window, including those rejected here. */
  readonly requests: number
  /** Requests in the window that the service accepted. */
  readonly accepts: number
  /** The share of sends being rejected: from 0 to `maxRejection`. */
  readonly rejection: number
}

/**
 * The operations of a throttle.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service {
  /** Holds sends back. */
  readonly gate: SendGate.SendGate<ClientThrottled>
  /** The throttle's current state. */
  readonly state: Effect.Effect<State>
}

/**
 * The throttle of a resource.
 *
 * @category services
 * @since 0.1.0
 */
export class ClientThrottle extends GateService<ClientThrottle, Service>()("effect-retry/ClientThrottle") {}

/**
 * Makes a throttle. Throws `InvalidOption` when an option is invalid.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options = {}): Effect.Effect<Service> => serviceFrom(throttleKind, options)

const makeShared = (options?: Options) => watched("ClientThrottle", make(options), capacityIn)

/**
 * A layer with its own throttle. Throws `InvalidOption` when an option is invalid.
 *
 * **Gotchas**
 *
 * Provided to a single call, it builds a throttle for that call, even if the layer is a constant. Build it once, in a
 * `ManagedRuntime` or around the program. If the window holds a single request, and it was rejected, half of the
 * next ones are rejected: the formula says so.
 *
 * **Example** (A throttle in front of a limit)
 *
 * ```ts
 * const gates = Layer.merge(ConcurrencyLimiter.layer(), ClientThrottle.layer())
 * const program = Effect.succeed("answer").pipe(withRetry(awsStandard), Effect.provide([RetryQuota.layer(), gates]))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<ClientThrottle> =>
  Layer.effect(ClientThrottle, makeShared(options))

/**
 * A layer with its own throttle, with options from configuration: see {@link layer}. Fails with `InvalidOption` when an
 * option is invalid.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  options: Config.Wrap<Options>
): Layer.Layer<ClientThrottle, Config.ConfigError | InvalidOption> =>
  Layer.effect(ClientThrottle, configured(options, makeShared))

/**
 * The throttle's current state.
 *
 * @category getters
 * @since 0.1.0
 */
export const state: Effect.Effect<State, never, ClientThrottle> = /* @__PURE__ */ ClientThrottle.use(
  (throttle) => throttle.state
)

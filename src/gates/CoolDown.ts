/**
 * Makes all callers respect what a server says to one.
 *
 * A server that asks for a two-second break tells only the caller it answers. The others do not know and keep sending;
 * if each gets the same hint, they all return at the same moment. A cool-down closes the resource for all callers at
 * the first hint, opens it with a single send, then lets the others follow a few at a time.
 *
 * It assumes that all its sends go to one resource: give each resource its own cool-down.
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
import { coolDownKind, type CoolingDown } from "./internal/coolDownGate.ts"
import { GateService, serviceFrom } from "./internal/gate.ts"

export { CoolingDown } from "./internal/coolDownGate.ts"

/**
 * How a cool-down is made.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The longest hint to follow: a finite duration above 0. Default 1 minute. */
  readonly atMost?: Duration.Input | undefined
  /** How far callers are spread out after the hint, as a share of it: from 0 to 1. Default 0.2. */
  readonly spread?: number | undefined
  /**
   * How much longer the resource may stay closed for a send to wait, and how long the send then waits its turn: a
   * finite duration of at least 0. With 0, none waits. Default 2 seconds: callers that all wait out a long hint become
   * a herd.
   */
  readonly maxWait?: Duration.Input | undefined
  /** How many sends may wait: a whole number of at least 0, or `Infinity`. Default 10,000. */
  readonly maxWaiters?: number | undefined
  /**
   * How long a send that opens the resource holds back others if it does not end: a finite duration above 0. Then one
   * more passes, though a success still counts when it comes. Default 10 seconds.
   */
  readonly probeTime?: Duration.Input | undefined
  /**
   * What an outcome says about when to send again; `undefined` when it says nothing. One that throws says nothing.
   *
   * Default: the `retryAfter` of a failure's facts; for an unknown failure, what its response asks for, such as a 403
   * with `Retry-After`; for a success that is a response, as of `fetch` or Effect's HTTP client, a rate limit window
   * that is used up, as in `RateLimit: "default";r=0;t=30`: no send has to be rejected first. See `docs/http.md` for
   * the headers.
   */
  readonly hint?: ((outcome: SendGate.Outcome) => Duration.Duration | undefined) | undefined
}

/**
 * The cool-down at a moment.
 *
 * @category models
 * @since 0.1.0
 */
export interface State {
  /** Whether sends pass: freely, not at all, or a few at a time. */
  readonly phase: "free" | "closed" | "opening"
  /** The rest of the server's hint; zero when it is over. */
  readonly remaining: Duration.Duration
  /** Sends waiting. */
  readonly waiting: number
}

/**
 * The operations of a cool-down.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service {
  /** Holds sends back. */
  readonly gate: SendGate.SendGate<CoolingDown>
  /**
   * Closes the resource, as a server's hint does: for hints that arrive some other way. One that is not a finite
   * duration of at least 0 is a defect, `InvalidOption`.
   */
  readonly close: (hint: Duration.Input) => Effect.Effect<void>
  /** The cool-down's current state. */
  readonly state: Effect.Effect<State>
}

/**
 * The cool-down of a resource.
 *
 * @category services
 * @since 0.1.0
 */
export class CoolDown extends GateService<CoolDown, Service>()("effect-retry/CoolDown") {}

/**
 * Makes a cool-down. Throws `InvalidOption` when an option is invalid.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options = {}): Effect.Effect<Service> => serviceFrom(coolDownKind, options)

const makeShared = (options?: Options) => watched("CoolDown", make(options), capacityIn)

/**
 * A layer with its own cool-down. Throws `InvalidOption` when an option is invalid.
 *
 * **Gotchas**
 *
 * Provided to a single call, it builds a cool-down for that call, even if the layer is a constant. Build it once, in a
 * `ManagedRuntime` or around the program.
 *
 * **Example** (A call that leaves its resource alone when the server asks)
 *
 * ```ts
 * const coolDownLayer = CoolDown.layer()
 * const program = call.pipe(withRetry(awsStandard), Effect.provide([RetryQuota.layer(), coolDownLayer]))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<CoolDown> => Layer.effect(CoolDown, makeShared(options))

/**
 * A layer with its own cool-down, with options from configuration: see {@link layer}. Fails with `InvalidOption` when
 * an option is invalid.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  options: Config.Wrap<Options>
): Layer.Layer<CoolDown, Config.ConfigError | InvalidOption> => Layer.effect(CoolDown, configured(options, makeShared))

/**
 * The cool-down's current state.
 *
 * @category getters
 * @since 0.1.0
 */
export const state: Effect.Effect<State, never, CoolDown> = /* @__PURE__ */ CoolDown.use((coolDown) => coolDown.state)

/**
 * Closes the resource; see {@link Service}.
 *
 * @category combinators
 * @since 0.1.0
 */
export const close = (hint: Duration.Input): Effect.Effect<void, never, CoolDown> =>
  CoolDown.use((coolDown) => coolDown.close(hint))

/**
 * A limit on sends in flight. It ends an outage that retries can only keep from growing.
 *
 * A service too slow for its callers' timeouts answers when no caller is waiting any more: all its work is wasted. A
 * limit that drops when sends time out lets it catch up, in about two round trips per halving. The default limit needs
 * no knowledge of the service; {@link fixed} is a bulkhead.
 *
 * It assumes that all its sends go to one resource: give each resource its own limiter. A limiter per call, or for so
 * few calls that they are hardly ever in flight together, limits nothing.
 *
 * @since 0.1.0
 */

import type * as Config from "effect/Config"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { checks } from "../internal/checks.ts"
import { configured } from "../internal/layerConfig.ts"
import { capacityIn, watched } from "../internal/sharing.ts"
import type { InvalidOption } from "../InvalidOption.ts"
import type * as SendGate from "../SendGate.ts"
import { concurrencyKind, type ConcurrencyLimitExceeded } from "./internal/concurrencyGate.ts"
import { adaptiveRule, type Rule } from "./internal/concurrencyRule.ts"
import { GateService, serviceFrom } from "./internal/gate.ts"

export { ConcurrencyLimitExceeded } from "./internal/concurrencyGate.ts"
export type { Rule, Sample } from "./internal/concurrencyRule.ts"

/**
 * The constants of the {@link adaptive} limit.
 *
 * @category models
 * @since 0.1.0
 */
export interface AdaptiveOptions {
  /** The initial limit: from `minimum` to `maximum`. Default 20. */
  readonly initial?: number | undefined
  /** The lowest limit: a finite number above 0. Below 1, sends are paced. Default 0.1. */
  readonly minimum?: number | undefined
  /** The highest limit: a finite number, not below `minimum`. Default 1000. */
  readonly maximum?: number | undefined
  /** What a success adds while at least half of the limit is used: a finite number above 0. Default 0.25. */
  readonly increase?: number | undefined
  /** The share of the sends in flight that a drop cuts the limit to: above 0, below 1. Default 0.7. */
  readonly decrease?: number | undefined
  /**
   * A success slower than this counts as a drop, a refusal: a finite duration above 0. Set it where timeouts are long,
   * well above any legitimate latency: any lower, and the limit starves the caller. Default: none does.
   */
  readonly slowerThan?: Duration.Input | undefined
}

/**
 * The recommended limit: it grows a little with each success while it is used, and signs of overload cut it, once per
 * round trip, to a share of the sends in flight.
 *
 * **Details**
 *
 * - drop: `limit = max(minimum, decrease * min(limit, inFlight))`, unless the limit was cut while the send was in
 *   flight; below 1 only after two drops with no success between them;
 * - success: `limit = min(maximum, limit + increase)` if `inFlight >= limit / 2`, and at least 1; less while successes
 *   are slow: from an increase in full at a mean time of half the last timeout seen, to `0.4 / limit` of it from 0.65
 *   on. A timeout that took no longer than successes do, such as an immediate 504, is not one of these;
 * - a retry is not sent in the 30 seconds after a timeout, until a send succeeds, is refused or fails for good; if the
 *   timeout before was alone, two in a row are needed;
 * - a send waits for a slot for a quarter of the last timeout seen, at most 250 milliseconds;
 * - below 1: one send, then a pause of `t * (1 / limit - 1) * (0.5 + random)`, `t` the longer of the mean time of
 *   successes and the time of the last drop, from 20 milliseconds to 1 second.
 *
 * **Source**: additive increase, multiplicative decrease (Chiu and Jain, 1989), decreasing from the sends in flight (as
 * TCP does, RFC 5681, equation 4), no growth while unused (RFC 7661) and one decrease per round trip (RFC 6582).
 *
 * @category constructors
 * @since 0.1.0
 */
export const adaptive = (options: AdaptiveOptions = {}): Rule => adaptiveRule(options)

/**
 * A limit that never changes: a whole number of at least 1, or `Infinity`. A bulkhead: it keeps a slow service from
 * using up everything its callers share. Right only where the capacity is known and divided among all processes.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fixed = (limit: number): Rule<number> => ({
  initial: checks("ConcurrencyLimiter.fixed").count("limit", limit, 1),
  limit: (state) => state,
  next: (state) => state,
  isTimed: () => false
})

/**
 * Options of a limiter.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** What the limit is and how it changes. Default {@link adaptive}. */
  readonly rule?: Rule | undefined
  /**
   * Which failures are signs of overload. Default: timeouts, throttles, whatever has a `retryAfter`, and the status 504,
   * also where such a response is the cause of the error. Other failures change nothing, not even a 503 or gRPC's
   * `UNAVAILABLE`: one broken instance of many answers with those, and they do not become fewer with fewer sends.
   * Where it throws, the default answers.
   */
  readonly isDrop?: ((outcome: SendGate.Outcome) => boolean) | undefined
  /** What a send does when there is no free slot. Default `"wait"`. */
  readonly onExceeded?: "wait" | "fail" | undefined
  /**
   * How long a send waits for a slot before it is rejected: a finite duration above 0. Default 250 milliseconds; with
   * the {@link adaptive} limit a quarter of the last timeout seen, if that is shorter.
   */
  readonly maxWait?: Duration.Input | undefined
  /** How many sends may wait: a whole number of at least 0, or `Infinity`. Default 10,000. */
  readonly maxWaiters?: number | undefined
  /**
   * Among waiting sends of equal criticality, which goes first: the first to arrive, or the last, whose caller is most
   * likely still waiting. Default `"fifo"`.
   */
  readonly order?: "fifo" | "lifo" | undefined
}

/**
 * The current state of the limiter.
 *
 * @category models
 * @since 0.1.0
 */
export interface State {
  /** How many sends may be in flight. Below 1, one at a time with a pause after it. */
  readonly limit: number
  /** Sends in flight. */
  readonly inFlight: number
  /** Sends waiting for a slot. */
  readonly waiting: number
}

/**
 * The operations of a limiter.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service {
  /** Holds sends back. */
  readonly gate: SendGate.SendGate<ConcurrencyLimitExceeded>
  /**
   * Holds a slot until the scope is closed, for work that is not a single attempt: a stream, a body still being read.
   * Closed by a failure that is a sign of overload, it counts as a drop.
   */
  readonly slot: Effect.Effect<void, ConcurrencyLimitExceeded, Scope.Scope>
  /** The limiter's current state. */
  readonly state: Effect.Effect<State>
}

/**
 * The concurrency limiter of a resource.
 *
 * @category services
 * @since 0.1.0
 */
export class ConcurrencyLimiter extends GateService<ConcurrencyLimiter, Service>()("effect-retry/ConcurrencyLimiter") {}

/**
 * Makes a limiter. Throws `InvalidOption` when an option is invalid.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options = {}): Effect.Effect<Service> => serviceFrom(concurrencyKind, options)

const makeShared = (options?: Options) => watched("ConcurrencyLimiter", make(options), capacityIn)

/**
 * A layer with its own limiter. Throws `InvalidOption` when an option is invalid.
 *
 * **Gotchas**
 *
 * Provided to a single call, it builds a limiter for that call, even if the layer is a constant. Build it once, in a
 * `ManagedRuntime` or around the program.
 *
 * **Example** (A call behind a limit)
 *
 * ```ts
 * const limiterLayer = ConcurrencyLimiter.layer()
 * const program = call.pipe(withRetry(awsStandard), Effect.provide([RetryQuota.layer(), limiterLayer]))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<ConcurrencyLimiter> =>
  Layer.effect(ConcurrencyLimiter, makeShared(options))

/**
 * A layer with its own limiter, with options from configuration: see {@link layer}. Fails with `InvalidOption` when an
 * option is invalid.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  options: Config.Wrap<Options>
): Layer.Layer<ConcurrencyLimiter, Config.ConfigError | InvalidOption> =>
  Layer.effect(ConcurrencyLimiter, configured(options, makeShared))

/**
 * The limiter's current state.
 *
 * @category getters
 * @since 0.1.0
 */
export const state: Effect.Effect<State, never, ConcurrencyLimiter> = /* @__PURE__ */ ConcurrencyLimiter.use(
  (limiter) => limiter.state
)

/**
 * Holds a slot until the scope is closed; see {@link Service}.
 *
 * **Gotchas**
 *
 * A send under `withRetry` that has this limiter in its context takes a slot of its own. Around or inside such a send
 * this is a second one: with a limit of one, neither passes. Make the limiter with {@link make}, keep it out of the
 * context, and use its `slot` inside each attempt.
 *
 * **Example** (A stream in one slot)
 *
 * ```ts
 * const lines = Stream.unwrap(Effect.as(ConcurrencyLimiter.slot, Stream.fromEffect(call)))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const slot: Effect.Effect<void, ConcurrencyLimitExceeded, ConcurrencyLimiter | Scope.Scope> = /* @__PURE__ */
  ConcurrencyLimiter.use((limiter) => limiter.slot)

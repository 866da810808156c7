/**
 * An adaptive rate limiter that a fleet of processes shares through Redis.
 *
 * A service throttles the fleet, not a process. If each process looks for its own rate, they compete, and the first to be cut
 * stays behind for a long time. Here all processes that name the same limiter share one rate: a throttle of any of them cuts
 * it once, and it recovers along the CUBIC curve. Each process has a fair part of it, and what a process does not use goes to
 * the others. Sends do not ask Redis: each process checks a few times per second while it sends, and not at all otherwise.
 *
 * Redis is a convenience, never a requirement: while it does not respond, each process continues from the part it had, by its
 * own throttles, like an `AdaptiveRateLimiter`. No call fails because of it, and no send waits for it.
 *
 * Requires the `Redis` service of `effect/persistence/Redis`, such as `NodeRedis.layer` of `@effect/platform-node`, and
 * Redis 5 or later, or a compatible server.
 *
 * @since 0.1.0
 */

import type * as Config from "effect/Config"
import type * as Duration from "effect/Duration"
import * as AdaptiveRateLimiter from "../gates/AdaptiveRateLimiter.ts"
import { capacityIn, watched } from "../internal/sharing.ts"
import { fleetLayers, type SharedOptions } from "./internal/fleet.ts"
import { over, validated } from "./internal/limiter.ts"

/**
 * Options of a shared limiter. Rates are those of the fleet. All processes should use the same options.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends AdaptiveRateLimiter.Options, SharedOptions {
  /**
   * How often a sending process reports its rate and asks for its part: a finite duration above 0, shortened at
   * random by up to half. A process counts for four times as long after its last send. Default 250 milliseconds.
   */
  readonly lookInterval?: Duration.Input | undefined
  /**
   * How long Redis keeps the rate while no process sends: a finite duration above 0. Then the fleet starts over, without a
   * limit. Default 10 minutes.
   */
  readonly idleTimeToLive?: Duration.Input | undefined
}

const shared = /* @__PURE__ */ fleetLayers(
  AdaptiveRateLimiter.AdaptiveRateLimiter,
  (options: Options) => validated(options),
  over,
  (make) => watched("AdaptiveRateLimiter", make, capacityIn)
)

/**
 * Makes a limiter shared through Redis, for as long as the scope is open. Throws `InvalidOption` when an option is invalid.
 *
 * **Details**
 *
 * A throttle is reported to Redis immediately, and cuts the rate of the fleet once: throttles of sends made before all
 * processes knew of it, within twice the `lookInterval`, count as the same one. The others see it at their next check. The rate follows the CUBIC curve,
 * and is at most twice what the fleet sends. The parts are max-min fair: a process that sends less than the fair part gets
 * what it sends, and the others share the rest equally. `state` shows the part of this process.
 *
 * While Redis does not respond within the `timeout`, the process follows the curve from its part on, and its own throttles cut
 * that. If Redis has lost its data, the first process to report restores the rate.
 *
 * **Gotchas**
 *
 * Until a process has sent for half a second it has measured nothing, and an earlier throttle cuts the rate to nearly
 * nothing, from where it takes seconds to climb. The limiter of a single process does the same.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = shared.make

/**
 * A layer with a limiter shared through Redis: see {@link make}. Throws `InvalidOption` when an option is invalid.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = shared.layer

/**
 * A layer with a shared limiter, with options from configuration: see {@link layer}. Fails with `InvalidOption` when an
 * option is invalid.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (options: Config.Wrap<Options>) => shared.layerConfig(options)

/**
 * A layer with a shared limiter that connects in the background: the process decides alone until then, and if Redis cannot be
 * reached when the program starts, it is tried again after each `fallbackTime`. Throws `InvalidOption` when an option is
 * invalid.
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
export const layerConnecting = shared.layerConnecting

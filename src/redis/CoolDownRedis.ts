/**
 * A cool-down that a fleet of processes shares through Redis.
 *
 * A server that asks one process to wait means the fleet. Here the first hint to any process closes the resource for
 * all that name the same cool-down; when it is over, one process makes one send, and the others follow when that has
 * succeeded. Sends do not ask Redis: each process checks a few times per second while it sends, and not at all
 * otherwise.
 *
 * Redis is a convenience, never a requirement: while it does not respond, each process follows its own hints, like a
 * `CoolDown`. No call fails because of it, and no send waits for it.
 *
 * Requires the `Redis` service of `effect/persistence/Redis`, such as `NodeRedis.layer` of `@effect/platform-node`, and
 * Redis 5 or later, or a compatible server.
 *
 * @since 0.1.0
 */

import type * as Config from "effect/Config"
import type * as Duration from "effect/Duration"
import * as CoolDown from "../gates/CoolDown.ts"
import { capacityIn, watched } from "../internal/sharing.ts"
import { over, validated } from "./internal/coolDown.ts"
import { fleetLayers, type SharedOptions } from "./internal/fleet.ts"

/**
 * Options of a shared cool-down.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends CoolDown.Options, SharedOptions {
  /**
   * How often a sending process checks whether another was asked to wait, and a process waiting for a probe whether it
   * is over: a finite duration above 0, shortened at random by up to half. Default 250 milliseconds.
   */
  readonly lookInterval?: Duration.Input | undefined
  /**
   * How long the process that opens the resource has for its first success before another one tries, and how long a
   * send that opens it holds back others of its process if it does not end: a finite duration above 0. Default 10
   * seconds.
   */
  readonly probeTime?: Duration.Input | undefined
}

const shared = /* @__PURE__ */ fleetLayers(
  CoolDown.CoolDown,
  (options: Options) => validated(options),
  over,
  (make) => watched("CoolDown", make, capacityIn)
)

/**
 * Makes a cool-down shared through Redis, for as long as the scope is open. Throws `InvalidOption` when an option is
 * invalid.
 *
 * **Details**
 *
 * The hint to one process is sent to Redis immediately, and the others find it at their next check: until then, they
 * may keep sending. When the hint is over, plus up to a `spread` of it, the first process with a send to make asks for
 * the probe, and the others wait. When the probe succeeds, each process lets its own sends follow, one more for each
 * that succeeds. If none of its sends succeeds within the `probeTime`, another process probes.
 *
 * While Redis does not respond within the `timeout`, the process follows its own hints, and opens on its own. Hints
 * received meanwhile are shared as soon as Redis responds again.
 *
 * **Gotchas**
 *
 * If Redis loses its data (a restart without persistence, a failover, an eviction), a closed process stays closed until
 * the hint is over, and then opens without a fleet-wide probe.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = shared.make

/**
 * A layer with a cool-down shared through Redis: see {@link make}. Throws `InvalidOption` when an option is invalid.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = shared.layer

/**
 * A layer with a shared cool-down, with options from configuration: see {@link layer}. Fails with `InvalidOption` when
 * an option is invalid.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (options: Config.Wrap<Options>) => shared.layerConfig(options)

/**
 * A layer with a shared cool-down that connects in the background: the process decides alone until then, and if Redis
 * cannot be reached when the program starts, it is tried again after each `fallbackTime`. Throws `InvalidOption` when
 * an option is invalid.
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

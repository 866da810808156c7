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
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redis from "effect/persistence/Redis"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import * as CoolDown from "../gates/CoolDown.ts"
import { CoolDownGate, type CoolDownOptions } from "../gates/internal/coolDownGate.ts"
import { checksOf } from "../internal/checks.ts"
import { configured } from "../internal/layerConfig.ts"
import { watchedGate } from "../internal/sharing.ts"
import type { InvalidOption } from "../InvalidOption.ts"
import { type Connect, connected, connecting } from "./internal/connection.ts"
import { CoolDownClient, type CoolDownTerms } from "./internal/coolDownClient.ts"
import { decisionLog } from "./internal/decisionLog.ts"
import { Exchanges, type Times } from "./internal/exchanges.ts"
import { validKey, validTimes } from "./internal/redisOptions.ts"

/**
 * Options of a shared cool-down.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends CoolDown.Options {
  /** The name of the resource. All processes with the same name (and prefix) share the cool-down. Not empty. */
  readonly name: string
  /**
   * The prefix of the key in Redis. After it comes the name, in which all but letters, digits, `_`, `.` and `-` becomes
   * `%` and its code in four hexadecimal digits. Default `"cool-down:"`.
   */
  readonly prefix?: string | undefined
  /** How long Redis has to respond: a finite duration above 0. No send waits for that. Default 50 milliseconds. */
  readonly timeout?: Duration.Input | undefined
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
  /** How long a process decides alone before Redis is tried again: a finite duration above 0. Default 1 second. */
  readonly fallbackTime?: Duration.Input | undefined
}

interface Valid {
  readonly name: string
  readonly gate: CoolDownOptions<CoolDown.CoolingDown>
  readonly terms: CoolDownTerms
  readonly times: Times
}

/**
 * Options with their defaults, checked.
 *
 * @internal
 */
export const validated = (options: Options): Valid => {
  const check = checksOf("CoolDownRedis.make", options)
  const key = validKey(check, options, "cool-down:")
  const lookMillis = check.positiveDuration("lookInterval", options.lookInterval ?? 250)
  const times = validTimes(check, options)
  const gate = CoolDown.validated(options, check)
  const { atMostMillis, probeMillis } = gate
  return { name: options.name, gate, terms: { settings: { key, probeMillis, atMostMillis }, lookMillis }, times }
}

const log = decisionLog("cool-down")

/**
 * Makes a gate one of a fleet, and returns what changes its options.
 *
 * @internal
 */
export const joined = (gate: CoolDownGate<CoolDown.CoolingDown>, { name, terms, times }: Valid, connect: Connect) =>
  Effect.gen(function*() {
    const exchanges = yield* Exchanges.make({ ...times, connect, onChange: (reason) => log(name, reason) })
    const client = new CoolDownClient(gate, terms, exchanges)
    yield* exchanges.start(client)
    return ({ terms, times }: Valid) => {
      exchanges.change(times)
      client.change(terms)
    }
  }).pipe(Effect.uninterruptible)

const over = (valid: Valid, connect: Connect) =>
  Effect.gen(function*() {
    const gate = new CoolDownGate(valid.gate, yield* Random.Random)
    yield* joined(gate, valid, connect)
    return CoolDown.serviceOf(gate)
  })

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
export const make = (options: Options): Effect.Effect<CoolDown.Service, never, Redis.Redis | Scope.Scope> => {
  const valid = validated(options)
  return Effect.flatMap(connected, (connect) => over(valid, connect))
}

const makeShared = (options: Options) => watchedGate("CoolDown", make(options))

/**
 * A layer with a cool-down shared through Redis: see {@link make}. Throws `InvalidOption` when an option is invalid.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<CoolDown.CoolDown, never, Redis.Redis> =>
  Layer.effect(CoolDown.CoolDown, makeShared(options))

/**
 * A layer with a shared cool-down, with options from configuration: see {@link layer}. Fails with `InvalidOption` when
 * an option is invalid.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  options: Config.Wrap<Options>
): Layer.Layer<CoolDown.CoolDown, Config.ConfigError | InvalidOption, Redis.Redis> =>
  Layer.effect(CoolDown.CoolDown, configured(options, makeShared))

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
export const layerConnecting = <E, R>(
  options: Options,
  redis: Layer.Layer<Redis.Redis, E, R>
): Layer.Layer<CoolDown.CoolDown, never, R> => {
  const valid = validated(options)
  return Layer.effect(
    CoolDown.CoolDown,
    watchedGate("CoolDown", Effect.flatMap(connecting(redis), (connect) => over(valid, connect)))
  )
}

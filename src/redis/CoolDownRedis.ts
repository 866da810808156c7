/**
 * A cool-down that a fleet of processes shares through Redis.
 *
 * A server that asks one process to wait means the fleet. Here the first hint that any process gets closes the resource
 * for all that name the same cool-down; when it is over, one process makes one send, and the others follow when that has
 * succeeded. A send asks nothing: each process looks a few times a second while it sends, and not at all otherwise.
 *
 * Redis is a convenience, never a condition: while it does not answer, each process heeds its own hints, as a `CoolDown`
 * does. No call fails for it, and none waits for it on its way.
 *
 * Needs the `Redis` service of `effect/persistence/Redis`, such as `NodeRedis.layer` of `@effect/platform-node`, and
 * Redis 5 or later, or what speaks its language.
 *
 * @since 0.1.0
 */

import type * as Config from "effect/Config"
import type * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import * as CoolDown from "../CoolDown.ts"
import { checks } from "../internal/checks.ts"
import { clockOf } from "../internal/clock.ts"
import { configured } from "../internal/config.ts"
import type { InvalidOption } from "../InvalidOption.ts"
import { CoolDownGate, type CoolDownOptions } from "../state/coolDown.ts"
import { closeWithin, connecting, type Connection } from "./internal/connection.ts"
import { CoolDownClient, type CoolDownTerms } from "./internal/coolDownClient.ts"

/**
 * How a shared cool-down is made.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends CoolDown.Options {
  /** What the resource is called. Who gives the same name (and prefix) shares the cool-down. Not empty. */
  readonly name: string
  /** What the key in Redis begins with, before the name. Default `"cool-down:"`. */
  readonly prefix?: string | undefined
  /** How long Redis has to answer: a finite duration above 0. No send waits for that. Default 50 milliseconds. */
  readonly timeout?: Duration.Input | undefined
  /**
   * How often a process that sends looks whether another was told to wait, and one that waits for a probe whether it is
   * over: a finite duration above 0, of which half to all passes at random. Default 250 milliseconds.
   */
  readonly lookInterval?: Duration.Input | undefined
  /**
   * How long the process that opens the resource has for its first success before another one tries: a finite duration
   * above 0. Default 10 seconds.
   */
  readonly probeTime?: Duration.Input | undefined
  /** How long a process decides alone before Redis is tried again: a finite duration above 0. Default 1 second. */
  readonly fallbackTime?: Duration.Input | undefined
}

interface Valid {
  readonly name: string
  readonly gate: CoolDownOptions<CoolDown.CoolingDown>
  readonly terms: Pick<CoolDownTerms, "settings" | "timeoutMillis" | "lookMillis" | "retryMillis">
}

const validated = (options: Options): Valid => {
  const constructorName = "CoolDownRedis.make"
  const check = checks(constructorName)
  const { name, prefix = "cool-down:" } = options
  if (typeof name !== "string" || name === "") check.reject("name", name, "a string that is not empty")
  if (typeof prefix !== "string") check.reject("prefix", prefix, "a string")
  return {
    name,
    gate: CoolDown.validated(options, constructorName),
    terms: {
      settings: {
        key: prefix + name,
        probeMillis: check.positiveDuration("probeTime", options.probeTime ?? 10_000)
      },
      timeoutMillis: check.positiveDuration("timeout", options.timeout ?? 50),
      lookMillis: check.positiveDuration("lookInterval", options.lookInterval ?? 250),
      retryMillis: check.positiveDuration("fallbackTime", options.fallbackTime ?? 1000)
    }
  }
}

/** Logs who decides from now on. */
const log = (name: string, reason: string | undefined): Effect.Effect<void> => {
  const line = reason === undefined
    ? Effect.logInfo(`cool-down ${JSON.stringify(name)}: Redis answers again, the fleet shares it`)
    : Effect.logWarning(
      `cool-down ${JSON.stringify(name)}: Redis does not answer, this process decides alone: ${reason}`
    )
  return Effect.ignoreCause(line)
}

const over = (
  { gate: settings, name, terms }: Valid,
  connect: (scope: Scope.Scope) => Connection
): Effect.Effect<CoolDown.Service, never, Scope.Scope> =>
  Effect.gen(function*() {
    // Of its own, because a connection that cannot be closed must hold nobody up.
    const scope = yield* Scope.make()
    const fiber = yield* Effect.withFiber(Effect.succeed)
    const random = fiber.getRef(Random.Random)
    const gate = new CoolDownGate(settings, random)
    const client = new CoolDownClient(
      gate,
      { ...terms, random, connection: connect(scope), onChange: (reason) => log(name, reason) },
      clockOf(fiber),
      scope
    )
    yield* Effect.forkIn(client.run, scope)
    yield* Effect.addFinalizer((exit) => closeWithin(scope, exit, terms.timeoutMillis))
    return CoolDown.serviceOf(gate)
  }).pipe(Effect.uninterruptible)

/**
 * Makes a cool-down that is shared through Redis, for as long as the scope is open. Throws `InvalidOption` when an option is
 * impossible.
 *
 * **Details**
 *
 * The hint of one process is told to Redis immediately, and the others find it with their next look: until then, each may
 * go on sending. When the hint is over, and up to a `spread` of it, the first process that has a send to make asks for the
 * probe, and the others wait. When the probe succeeds, each process lets its own sends follow, one more for each that
 * succeeds. When it does not succeed within the `probeTime`, another process probes.
 *
 * While Redis does not answer within the `timeout`, the process heeds its own hints alone, and opens by itself. What it was
 * told meanwhile is shared as soon as Redis answers again.
 *
 * **Gotchas**
 *
 * When Redis loses what it knew (a restart without persistence, a failover, an eviction), who is closed stays so until the
 * hint is over, and then opens without a probe of the fleet.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options): Effect.Effect<CoolDown.Service, never, Redis.Redis | Scope.Scope> => {
  const valid = validated(options)
  return Redis.Redis.use((redis) => over(valid, () => Effect.succeed(redis)))
}

/**
 * A layer with a cool-down that is shared through Redis: see {@link make}. Throws `InvalidOption` when an option is
 * impossible.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<CoolDown.CoolDown, never, Redis.Redis> =>
  Layer.effect(CoolDown.CoolDown, make(options))

/**
 * A layer with a shared cool-down whose options come from configuration: see {@link layer}. Fails with `InvalidOption` when
 * an option is impossible.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  options: Config.Wrap<Options>
): Layer.Layer<CoolDown.CoolDown, Config.ConfigError | InvalidOption, Redis.Redis> =>
  Layer.effect(CoolDown.CoolDown, configured(options, make))

/**
 * A layer with a shared cool-down, which connects by itself: the process decides alone until it has, and a Redis that cannot
 * be reached when the program starts is tried again after each `fallbackTime`. Throws `InvalidOption` when an option is
 * impossible.
 *
 * **Gotchas**
 *
 * The layer of Redis must fail when it cannot connect, as `NodeRedis.layer` does by default: one that goes on trying is
 * given up after 30 seconds.
 *
 * @see {@link make} for what is shared, and what happens when Redis does not answer
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
    Effect.contextWith((context: Context.Context<R>) => over(valid, connecting(redis, context)))
  )
}

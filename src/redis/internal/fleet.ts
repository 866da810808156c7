import type * as Config from "effect/Config"
import type * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redis from "effect/persistence/Redis"
import type * as Scope from "effect/Scope"
import { fleetOptions } from "../../config/internal/fleetStores.ts"
import type { Checks } from "../../internal/checks.ts"
import { configured } from "../../internal/layerConfig.ts"
import { readOptions } from "../../internal/options.ts"
import type { InvalidOption } from "../../InvalidOption.ts"
import { type Connect, connected, connecting, Exchanges, type LookTerms, type RegularTopic } from "./exchange.ts"

/**
 * The options of everything shared through Redis.
 *
 * @category models
 * @since 0.1.0
 */
export interface SharedOptions {
  /** The name of the resource. All processes with the same name (and prefix) share what is kept for it. Not empty. */
  readonly name: string
  /**
   * The prefix of the key in Redis. After it comes the name, in which all but letters, digits, `_`, `.` and `-` becomes
   * `%` and its code in four hexadecimal digits. Default `"retry-quota:"`, `"rate-limit:"` or `"cool-down:"`.
   */
  readonly prefix?: string | undefined
  /** How long Redis has to respond: a finite duration above 0. Default 50 milliseconds. */
  readonly timeout?: Duration.Input | undefined
  /** How long a process decides alone before Redis is tried again: a finite duration above 0. Default 1 second. */
  readonly fallbackTime?: Duration.Input | undefined
}

/** Names may be from requests: none is that of another prefix, or picks the slot of a cluster. */
const escaped = (name: string): string =>
  name.replace(/[^\w.-]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`)

/** The options of everything that is shared, checked. */
export const validShared = (check: Checks, options: SharedOptions, defaultPrefix: string) => {
  const { name, prefix } = options
  const { fallbackTimeMillis, timeoutMillis } = readOptions(check, fleetOptions, options)
  if (typeof name !== "string" || name === "") check.reject("name", name, "a non-empty string")
  if (prefix !== undefined && typeof prefix !== "string") check.reject("prefix", prefix, "a string")
  return {
    name,
    key: (prefix ?? defaultPrefix) + escaped(name),
    times: { timeoutMillis, retryMillis: fallbackTimeMillis }
  }
}

/** Logs which side decides from now on: Redis, or the process for a reason. */
export const decisionLog =
  (kind: string, shared = ", the fleet shares it", alone = "this process decides alone") =>
  (name: string, reason: string | undefined): Effect.Effect<void> => {
    const subject = `${kind} ${JSON.stringify(name)}`
    return Effect.ignoreCause(
      reason === undefined
        ? Effect.logInfo(`${subject}: Redis answers again${shared}`)
        : Effect.logWarning(`${subject}: Redis does not answer, ${alone}: ${reason}`)
    )
  }

/** The checked options of a gate that a fleet shares. */
export interface ValidGate<Gate, Settings> {
  readonly name: string
  readonly gate: Gate
  readonly terms: LookTerms<Settings>
}

/** Makes gates of a kind each one of a fleet until the scope is closed. */
export const joining = <Gate extends { peers: unknown; leave(): void }, Settings>(
  kind: string,
  client: new(
    gate: Gate,
    terms: LookTerms<Settings>,
    exchanges: Exchanges
  ) => RegularTopic<Gate, Settings, any> & Gate["peers"]
) => {
  const log = decisionLog(kind)
  return (gate: Gate, { name, terms }: ValidGate<unknown, Settings>, connect: Connect) =>
    Effect.gen(function*() {
      const exchanges = yield* Exchanges.make({ connect, onChange: (reason) => log(name, reason) })
      const peers = new client(gate, terms, exchanges)
      gate.peers = peers
      yield* exchanges.start()
      return peers
    }).pipe(Effect.uninterruptible)
}

/**
 * The constructor and the layers of something that a fleet shares, of what checks its options, what makes it, and what
 * warns if it is made for each call.
 */
export const fleetLayers = <I, S, Options extends object, Valid>(
  key: Context.Key<I, S>,
  validated: (options: Options) => Valid,
  over: (valid: Valid, connect: Connect) => Effect.Effect<S, never, Scope.Scope>,
  watched: <E, R>(make: Effect.Effect<S, E, R>) => Effect.Effect<S, E, R | Scope.Scope>
) => {
  const make = (options: Options): Effect.Effect<S, never, Redis.Redis | Scope.Scope> => {
    const valid = validated(options)
    return Effect.flatMap(connected, (connect) => over(valid, connect))
  }
  const makeShared = (options: Options) => watched(make(options))
  return {
    make,
    layer: (options: Options): Layer.Layer<I, never, Redis.Redis> => Layer.effect(key, makeShared(options)),
    layerConfig: (options: Config.Wrap<Options>): Layer.Layer<I, Config.ConfigError | InvalidOption, Redis.Redis> =>
      Layer.effect(key, configured(options, makeShared)),
    layerConnecting: <E, R>(options: Options, redis: Layer.Layer<Redis.Redis, E, R>): Layer.Layer<I, never, R> => {
      const valid = validated(options)
      return Layer.effect(key, watched(Effect.flatMap(connecting(redis), (connect) => over(valid, connect))))
    }
  }
}

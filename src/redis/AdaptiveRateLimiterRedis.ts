/**
 * An adaptive rate limiter that a fleet of processes shares through Redis.
 *
 * A service throttles the fleet, not a process. Where each process looks for its own rate, they cut and climb one against
 * the other, and who is cut first has less for long. Here the rate is one, that of all processes which name the same limiter:
 * cut once by a throttle of any of them, and then along the CUBIC curve; and each process has a fair part of it. Who sends
 * less than that leaves the rest to the others. A send asks nothing: each process looks a few times a second while it sends,
 * and not at all otherwise.
 *
 * Redis is a convenience, never a condition: while it does not answer, each process goes on from the part that it had, by its
 * own throttles, as an `AdaptiveRateLimiter` does. No call fails for it, and none waits for it on its way.
 *
 * Needs the `Redis` service of `effect/persistence/Redis`, such as `NodeRedis.layer` of `@effect/platform-node`, and
 * Redis 5 or later, or what speaks its language.
 *
 * @since 0.1.0
 */

import type * as Config from "effect/Config"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redis from "effect/persistence/Redis"
import type * as Scope from "effect/Scope"
import * as AdaptiveRateLimiter from "../AdaptiveRateLimiter.ts"
import { checks } from "../internal/checks.ts"
import { configured } from "../internal/config.ts"
import type { InvalidOption } from "../InvalidOption.ts"
import type { AdaptiveOptions } from "../state/adaptive.ts"
import { watchedGate } from "../state/sharing.ts"
import { type Connect, connected, connecting } from "./internal/connection.ts"
import { deciderLog } from "./internal/deciderLog.ts"
import { Exchanges, type Terms } from "./internal/exchanges.ts"
import { LimiterClient, type LimiterTerms } from "./internal/limiterClient.ts"
import { SharedAdaptiveGate } from "./internal/limiterGate.ts"
import { validKey, validTimes } from "./internal/options.ts"

/**
 * How a shared limiter is made. Rates are those of the fleet. All processes should give the same options.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends AdaptiveRateLimiter.Options {
  /** What the resource is called. Processes that give the same name (and prefix) share the limiter. Not empty. */
  readonly name: string
  /** What the key in Redis begins with, before the name. Default `"rate-limit:"`. */
  readonly prefix?: string | undefined
  /** How long Redis has to answer: a finite duration above 0. No send waits for that. Default 50 milliseconds. */
  readonly timeout?: Duration.Input | undefined
  /**
   * How often a process that sends tells what it sends and asks for its part: a finite duration above 0, of which half to
   * all passes at random. A process counts for four times as long after its last send. Default 250 milliseconds.
   */
  readonly lookInterval?: Duration.Input | undefined
  /**
   * How long Redis keeps the rate while no process sends: a finite duration above 0. Then the fleet starts over, without a
   * limit. Default 10 minutes.
   */
  readonly idleTimeToLive?: Duration.Input | undefined
  /** How long a process decides alone before Redis is tried again: a finite duration above 0. Default 1 second. */
  readonly fallbackTime?: Duration.Input | undefined
}

interface Valid {
  readonly name: string
  readonly gate: AdaptiveOptions<AdaptiveRateLimiter.RateLimitExceeded>
  readonly terms: LimiterTerms
  readonly times: Pick<Terms, "timeoutMillis" | "retryMillis">
}

const validated = (options: Options): Valid => {
  const constructorName = "AdaptiveRateLimiterRedis.make"
  const check = checks(constructorName)
  const key = validKey(check, options, "rate-limit:")
  const gate = AdaptiveRateLimiter.validated(options, constructorName)
  const lookMillis = check.positiveDuration("lookInterval", options.lookInterval ?? 250)
  const idleMillis = Math.ceil(check.positiveDuration("idleTimeToLive", options.idleTimeToLive ?? 600_000))
  const { beta, minFillRate, scaleConstant } = gate.cubic
  const memberMillis = 4 * lookMillis
  const cutMillis = 2 * lookMillis
  return {
    name: options.name,
    gate,
    terms: { settings: { key, beta, scaleConstant, minFillRate, memberMillis, cutMillis, idleMillis }, lookMillis },
    times: validTimes(check, options)
  }
}

const log = deciderLog("rate limiter")

const over = ({ gate: settings, name, terms, times }: Valid, connect: Connect) =>
  Effect.gen(function*() {
    const exchanges = yield* Exchanges.make({ ...times, connect, onChange: (reason) => log(name, reason) })
    const gate = new SharedAdaptiveGate(settings, exchanges.nowMillis)
    yield* exchanges.start(new LimiterClient(gate, terms, exchanges))
    return AdaptiveRateLimiter.serviceOf(gate)
  }).pipe(Effect.uninterruptible)

/**
 * Makes a limiter that is shared through Redis, for as long as the scope is open. Throws `InvalidOption` when an option is
 * impossible.
 *
 * **Details**
 *
 * A throttle is reported to Redis immediately, and cuts the rate of the fleet once: throttles of sends made before all
 * processes knew of it, within twice the `lookInterval`, count as the same one. The others see it with their next look. The rate follows the CUBIC curve,
 * and is at most twice what the fleet sends. Each process has its part by max-min fairness: who sends less than the fair
 * part has what it sends, and the others share the rest equally. A snapshot shows the part of this process.
 *
 * While Redis does not answer within the `timeout`, the process follows the curve on from its part, and its own throttles cut
 * that. When Redis has lost what it knew, the first process that comes back brings it along.
 *
 * **Gotchas**
 *
 * Until a process has sent for half a second it has measured nothing, and a throttle by then cuts the rate to nearly
 * nothing, from where it takes seconds to climb: so it is with the limiter of a single process too.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  options: Options
): Effect.Effect<AdaptiveRateLimiter.Service, never, Redis.Redis | Scope.Scope> => {
  const valid = validated(options)
  return Effect.flatMap(connected, (connect) => over(valid, connect))
}

const makeShared = (options: Options) => watchedGate("AdaptiveRateLimiter", make(options))

/**
 * A layer with a limiter that is shared through Redis: see {@link make}. Throws `InvalidOption` when an option is impossible.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  options: Options
): Layer.Layer<AdaptiveRateLimiter.AdaptiveRateLimiter, never, Redis.Redis> =>
  Layer.effect(AdaptiveRateLimiter.AdaptiveRateLimiter, makeShared(options))

/**
 * A layer with a shared limiter whose options come from configuration: see {@link layer}. Fails with `InvalidOption` when an
 * option is impossible.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  options: Config.Wrap<Options>
): Layer.Layer<AdaptiveRateLimiter.AdaptiveRateLimiter, Config.ConfigError | InvalidOption, Redis.Redis> =>
  Layer.effect(AdaptiveRateLimiter.AdaptiveRateLimiter, configured(options, makeShared))

/**
 * A layer with a shared limiter, which connects by itself: the process decides alone until it has, and a Redis that cannot be
 * reached when the program starts is tried again after each `fallbackTime`. Throws `InvalidOption` when an option is
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
): Layer.Layer<AdaptiveRateLimiter.AdaptiveRateLimiter, never, R> => {
  const valid = validated(options)
  return Layer.effect(
    AdaptiveRateLimiter.AdaptiveRateLimiter,
    watchedGate("AdaptiveRateLimiter", Effect.flatMap(connecting(redis), (connect) => over(valid, connect)))
  )
}

/**
 * Quotas, adaptive limiters and cool-downs of a `RetryConfig` document that a fleet of processes shares through Redis.
 *
 * The document says what is shared: a section with the key `redis`, which holds the options of `RetryQuotaRedis`,
 * `AdaptiveRateLimiterRedis` or `CoolDownRedis`, or nothing. The program says which Redis: with a layer of this module.
 *
 * **Example** (A document)
 *
 * ```json
 * {
 *   "resources": {
 *     "orders": {
 *       "quota": { "capacity": 500, "redis": { "fallback": { "capacity": 20 } } },
 *       "limiter": { "redis": {} },
 *       "coolDown": { "redis": { "lookInterval": "100 millis" } }
 *     }
 *   }
 * }
 * ```
 *
 * `name` is that of the resource unless the document gives another. All that a process shares over one connection goes
 * in one message per interval.
 *
 * The package's index does not export this module: import `effect-retry/RetryConfigRedis`.
 *
 * @since 0.1.0
 */

import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import type * as Redis from "effect/persistence/Redis"
import * as Scheduler from "effect/Scheduler"
import * as Scope from "effect/Scope"
import { CurrentFleet, type Fleet, type Sharing } from "../config/internal/fleetStores.ts"
import type { AdaptiveGate } from "../gates/internal/adaptiveGate.ts"
import type { CoolDownGate } from "../gates/internal/coolDownGate.ts"
import { CurrentResource } from "../RetryObserver.ts"
import * as CoolDown from "./internal/coolDown.ts"
import { type Connect, connected, connecting, kept } from "./internal/exchange.ts"
import * as Limiter from "./internal/limiter.ts"
import * as Quota from "./internal/quota.ts"

interface Terms {
  readonly settings: { readonly key: string }
}

/** What was made one of the fleet. */
interface Member<T> {
  readonly change: (terms: T, clock: Clock.Clock) => void
  /** It is used no more: closes it, as soon as it may be closed. */
  readonly end: (close: () => void) => void
}

/**
 * Options are checked for any resource, and joined for each: here and now, in a scope of its own within that of the
 * owner, until they change the key. What would have to wait throws: nothing in it does. Its fibers run as those of the
 * owner do.
 */
const sharing = <Subject, V extends { readonly terms: Terms }, M extends Member<V["terms"]>>(
  validated: (options: any) => V,
  join: (subject: Subject, valid: V) => Effect.Effect<M, never, Scope.Scope>
): Sharing<Subject, M> => ({
  check: (own, shared) => {
    const options = (resource: string) => validated({ name: resource, ...own, ...shared })
    options("any")
    return options
  },
  join: (subject, options, { context, resource }) => {
    const scope = Scope.forkUnsafe(Context.get(context as Context.Context<any>, Scope.Scope))
    const own = Context.add(context, CurrentResource, resource)
    const first = options(resource) as V
    const joined = Effect.provideService(
      join(subject, first),
      Scheduler.Scheduler,
      Context.get(own, Scheduler.Scheduler)
    )
    const member = Effect.runSyncWith(own)(Scope.provide(joined, scope))
    return {
      member,
      change: (next, clock) => {
        const { terms } = next(resource) as V
        if (terms.settings.key !== first.terms.settings.key) return false
        member.change(terms, clock)
        return true
      },
      close: () => member.end(() => void Effect.runForkWith(own)(Scope.close(scope, Exit.void)))
    }
  }
})

const fleetOver = (connect: Connect): Fleet => ({
  quota: sharing(Quota.validated, (tokens: number | undefined, valid) => Quota.opened(valid, connect, tokens)),
  limiter: sharing(
    Limiter.validated,
    (gate: AdaptiveGate, valid) => Limiter.joined(gate as Limiter.SharedAdaptiveGate, valid, connect)
  ),
  coolDown: sharing(CoolDown.validated, (gate: CoolDownGate, valid) => CoolDown.joined(gate, valid, connect)),
  limiterGate: (options, nowMillis) => new Limiter.SharedAdaptiveGate(options, nowMillis)
})

/**
 * Provide this layer to a layer of `RetryConfig`: sections with the key `redis` are shared through the `Redis` service.
 *
 * **Details**
 *
 * Without it, a document with such a section is refused: `InvalidOption` has the path of the section. A change of the
 * document may share a section, or no longer share it, or change its options: a quota keeps its share of tokens, tokens
 * that were taken go back to where they were taken, a cool-down stays closed, and a limiter keeps its rate.
 *
 * **Example** (A document that may share)
 *
 * ```ts
 * const configLive = (redis: Layer.Layer<Redis.Redis>) =>
 *   RetryConfig.layer({ default: { quota: { redis: {} } } }).pipe(
 *     Layer.provide(RetryConfigRedis.layer),
 *     Layer.provide(redis)
 *   )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<never, never, Redis.Redis> = /* @__PURE__ */ Layer.effect(
  CurrentFleet,
  /* @__PURE__ */ Effect.map(connected, fleetOver)
)

/**
 * Like {@link layer}, but connects in the background as soon as a section is shared: each process
 * decides alone until then, and if Redis cannot be reached, it is tried again. `RetryConfig.check` with this layer
 * checks a document without connecting.
 *
 * **Gotchas**
 *
 * The Redis layer must fail if it cannot connect, as `NodeRedis.layer` does by default: one that keeps trying is
 * abandoned after 30 seconds.
 *
 * @see {@link layer} for what is shared
 * @category layers
 * @since 0.1.0
 */
export const layerConnecting = <E, R>(redis: Layer.Layer<Redis.Redis, E, R>): Layer.Layer<never, never, R> =>
  Layer.effect(CurrentFleet, Effect.flatMap(connecting(redis), (connect) => Effect.map(kept(connect), fleetOver)))

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

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import type * as Redis from "effect/persistence/Redis"
import * as Scope from "effect/Scope"
import {
  CurrentFleet,
  type Fleet,
  type FleetOptions,
  type FleetPart,
  type Owner
} from "../config/internal/fleetStores.ts"
import { CurrentResource } from "../RetryObserver.ts"
import * as AdaptiveRateLimiterRedis from "./AdaptiveRateLimiterRedis.ts"
import * as CoolDownRedis from "./CoolDownRedis.ts"
import { type Connect, connected, connecting, kept } from "./internal/connection.ts"
import { SharedAdaptiveGate } from "./internal/limiterGate.ts"
import * as RetryQuotaRedis from "./RetryQuotaRedis.ts"

/** Options are checked for any resource, and made for each. */
const checking = <Valid>(validated: (options: any) => Valid) => (own: object, shared: object): FleetOptions => {
  const of = (resource: string) => validated({ name: resource, ...own, ...shared })
  of("any")
  return { of }
}

/** Opens something in a scope of its own, within that of the owner. Nothing in it waits, so it is there when this returns. */
const opening = <A>(effect: Effect.Effect<A, never, Scope.Scope>, { context, resource }: Owner) => {
  const scope = Scope.forkUnsafe(Context.get(context as Context.Context<any>, Scope.Scope))
  const run = Effect.runForkWith(Context.add(context, CurrentResource, resource))
  let made: A | undefined
  run(Effect.map(Scope.provide(effect, scope), (value) => {
    made = value
  }))
  return { made: made!, close: () => void run(Scope.close(scope, Exit.void)) }
}

type Quota = ReturnType<typeof RetryQuotaRedis.validated>
type Limiter = ReturnType<typeof AdaptiveRateLimiterRedis.validated>
type CoolDown = ReturnType<typeof CoolDownRedis.validated>

interface Keyed {
  readonly terms: { readonly settings: { readonly key: string } }
}

const keyOf = (options: FleetOptions, { resource }: Owner): string => (options.of(resource) as Keyed).terms.settings.key

/** Makes a gate one of the fleet. */
const joining = <Valid extends Keyed>(
  join: (valid: Valid) => Effect.Effect<(valid: Valid) => void, never, Scope.Scope>,
  leave: () => void
) =>
(options: FleetOptions, owner: Owner): FleetPart => {
  const key = keyOf(options, owner)
  const { close, made: change } = opening(join(options.of(owner.resource) as Valid), owner)
  return {
    change: (next) => {
      if (keyOf(next, owner) !== key) return false
      change(next.of(owner.resource) as Valid)
      return true
    },
    close: () => {
      leave()
      close()
    }
  }
}

const fleetOver = (connect: Connect): Fleet => ({
  quota: {
    check: checking(RetryQuotaRedis.validated),
    make: (options, owner, tokens) => {
      const valid = (options: FleetOptions) => options.of(owner.resource) as Quota
      const first = valid(options)
      const { close, made } = opening(RetryQuotaRedis.opened(first, connect, tokens), owner)
      return {
        store: made.store,
        change: (next, clock) => {
          if (keyOf(next, owner) !== first.terms.settings.key) return false
          made.change(valid(next), clock)
          return true
        },
        close: () => made.store.whenSettled(close)
      }
    }
  },
  limiter: {
    check: checking(AdaptiveRateLimiterRedis.validated),
    gate: (options, nowMillis) => new SharedAdaptiveGate(options, nowMillis),
    join: (gate, options, owner) => {
      const shared = gate as SharedAdaptiveGate<any>
      const join = (valid: Limiter) => AdaptiveRateLimiterRedis.joined(shared, valid, connect)
      return joining(join, () => shared.leave())(options, owner)
    }
  },
  coolDown: {
    check: checking(CoolDownRedis.validated),
    join: (gate, options, owner) => {
      const join = (valid: CoolDown) => CoolDownRedis.joined(gate, valid, connect)
      return joining(join, () => gate.leave())(options, owner)
    }
  }
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

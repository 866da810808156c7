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
import {
  CurrentFleet,
  type Fleet,
  type FleetOptions,
  type FleetPart,
  type Owner
} from "../config/internal/fleetStores.ts"
import { CurrentResource } from "../RetryObserver.ts"
import * as CoolDown from "./internal/coolDown.ts"
import { type Connect, connected, connecting, kept } from "./internal/exchange.ts"
import * as Limiter from "./internal/limiter.ts"
import * as Quota from "./internal/quota.ts"

/** Options are checked for any resource, and made for each. */
const checking = (validated: (options: any) => unknown) => (own: object, shared: object): FleetOptions => {
  const of = (resource: string) => validated({ name: resource, ...own, ...shared })
  of("any")
  return { of }
}

interface Valid {
  readonly terms: { readonly settings: { readonly key: string } }
}

/**
 * Opens something, here and now, in a scope of its own within that of the owner, and changes it while it keeps its key.
 * What would have to wait throws: nothing in it does. Its fibers run as those of the owner do.
 */
const opened = <V extends Valid, A>(
  options: FleetOptions,
  { context, resource }: Owner,
  open: (valid: V) => Effect.Effect<A, never, Scope.Scope>,
  change: (made: A, valid: V, clock: Clock.Clock) => void
): FleetPart & { readonly made: A } => {
  const scope = Scope.forkUnsafe(Context.get(context as Context.Context<any>, Scope.Scope))
  const own = Context.add(context, CurrentResource, resource)
  const first = options.of(resource) as V
  const opening = Effect.provideService(open(first), Scheduler.Scheduler, Context.get(own, Scheduler.Scheduler))
  const made = Effect.runSyncWith(own)(Scope.provide(opening, scope))
  return {
    made,
    change: (next, clock) => {
      const valid = next.of(resource) as V
      if (valid.terms.settings.key !== first.terms.settings.key) return false
      change(made, valid, clock)
      return true
    },
    close: () => void Effect.runForkWith(own)(Scope.close(scope, Exit.void))
  }
}

/** Makes a gate one of the fleet. */
const joining = <V extends Valid>(
  options: FleetOptions,
  owner: Owner,
  join: (valid: V) => Effect.Effect<(valid: V) => void, never, Scope.Scope>,
  leave: () => void
): FleetPart => {
  const { change, close } = opened(options, owner, join, (change, valid) => change(valid))
  return {
    change,
    close: () => {
      leave()
      close()
    }
  }
}

const fleetOver = (connect: Connect): Fleet => ({
  quota: {
    check: checking(Quota.validated),
    make: (options, owner, tokens) => {
      const open = (valid: ReturnType<typeof Quota.validated>) => Quota.opened(valid, connect, tokens)
      const { change, close, made } = opened(options, owner, open, (made, valid, clock) => made.change(valid, clock))
      return { store: made.store, change, close: () => made.store.whenSettled(close) }
    }
  },
  limiter: {
    check: checking(Limiter.validated),
    gate: (options, nowMillis) => new Limiter.SharedAdaptiveGate(options, nowMillis),
    join: (gate, options, owner) => {
      const shared = gate as Limiter.SharedAdaptiveGate
      const join = (valid: ReturnType<typeof Limiter.validated>) => Limiter.joined(shared, valid, connect)
      return joining(options, owner, join, () => shared.leave())
    }
  },
  coolDown: {
    check: checking(CoolDown.validated),
    join: (gate, options, owner) => {
      const join = (valid: ReturnType<typeof CoolDown.validated>) => CoolDown.joined(gate, valid, connect)
      return joining(options, owner, join, () => gate.leave())
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

/**
 * A quota, a limiter and gates for every resource.
 *
 * An outage hits one thing: a table, a region, a tenant. With one quota for everything, retries of the part that is
 * down use up what the rest needs, and one throttled table slows down all of them. Here each key has its own quota and
 * limiter, made on first use and forgotten when idle, or when there are too many. The key is on the span events,
 * metrics and logs of its retries. Options of the layer add a concurrency limit, a throttle, a cool-down, and hedging.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import * as AdaptiveRateLimiter from "../gates/AdaptiveRateLimiter.ts"
import type * as ClientThrottle from "../gates/ClientThrottle.ts"
import type * as ConcurrencyLimiter from "../gates/ConcurrencyLimiter.ts"
import type * as CoolDown from "../gates/CoolDown.ts"
import * as Adaptive from "../gates/internal/adaptiveGate.ts"
import type { GateKind } from "../gates/internal/gate.ts"
import * as Hedge from "../hedge/Hedge.ts"
import { homeOf, serviceOf, validHome } from "../hedge/internal/hedgeOptions.ts"
import type { Home } from "../hedge/internal/race.ts"
import { also, checksOf, rejectUnknown } from "../internal/checks.ts"
import { monotonicMillis, withMillis } from "../internal/clock.ts"
import { type Bounds, Entry, Keyed } from "../internal/keyed.ts"
import { shared } from "../internal/shared.ts"
import { warnUnsharedQuotas } from "../internal/sharing.ts"
import { MemoryStore, validStore } from "../quota/internal/memoryStore.ts"
import { CurrentResource } from "../RetryObserver.ts"
import * as RetryQuota from "../RetryQuota.ts"
import { type GateName, gateNames, type Gates, resourceGates, type Services } from "./internal/resourceGates.ts"

/**
 * What every resource has: its quota and its limiter.
 *
 * @category models
 * @since 0.1.0
 */
export type Limiters = RetryQuota.RetryQuota | AdaptiveRateLimiter.AdaptiveRateLimiter

/**
 * A resource in use.
 *
 * @category models
 * @since 0.1.0
 */
export interface Resource {
  readonly key: string
  readonly quota: RetryQuota.Service
  /** Made when first needed, like all below. */
  readonly limiter: AdaptiveRateLimiter.Service
  /** `undefined` without options for it, like the other gates. */
  readonly concurrency: ConcurrencyLimiter.Service | undefined
  readonly throttle: ClientThrottle.Service | undefined
  readonly coolDown: CoolDown.Service | undefined
  readonly hedge: Hedge.Service
}

/**
 * The resources, by key.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service {
  /**
   * The resource of a key, in use until the scope is closed. Unlike {@link quota} and {@link get}, it does not name it
   * for observers.
   */
  readonly use: (key: string) => Effect.Effect<Resource, never, Scope.Scope>
  /** How many resources there are, in use or idle: at most `capacity`. */
  readonly count: Effect.Effect<number>
}

/**
 * The quotas and limiters, by resource key.
 *
 * @category services
 * @since 0.1.0
 */
export class ResourceLimiters extends Context.Service<ResourceLimiters, Service>()("effect-retry/ResourceLimiters") {}

/**
 * Options for all keys, or by key: `undefined` where a key has none.
 *
 * @category models
 * @since 0.1.0
 */
export type ByKey<Options> = Options | ((key: string) => Options | undefined)

/**
 * Options of the resources.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<out R = never> {
  /**
   * The quota of a resource, the same for all or by key: its options, or a layer that provides one, such as a shared
   * quota.
   */
  readonly quota?:
    | RetryQuota.Options
    | ((key: string) => RetryQuota.Options | Layer.Layer<RetryQuota.RetryQuota, never, R>)
    | undefined
  /**
   * The limiter of a resource, the same for all or by key. After a throttle it slows the sends of every policy, first
   * attempts too. `"unlimited"` limits nothing: for policies other than `awsAdaptive`, whose calls are held back by the
   * gates below. Default: that of `AdaptiveRateLimiter.layer()`.
   */
  readonly limiter?:
    | AdaptiveRateLimiter.Options
    | ((key: string) => AdaptiveRateLimiter.Options)
    | "unlimited"
    | undefined
  /** The limit on its sends in flight. Default: none; `{}` gives it the defaults, as for the other gates. */
  readonly concurrency?: ByKey<ConcurrencyLimiter.Options> | undefined
  /** Its throttle. Default: none. */
  readonly throttle?: ByKey<ClientThrottle.Options> | undefined
  /** Its cool-down. Default: none. */
  readonly coolDown?: ByKey<CoolDown.Options> | undefined
  /** Its hedging. Default: that of `Hedge.layer()`. It costs nothing until {@link hedge} is used. */
  readonly hedge?: ByKey<Hedge.Options> | undefined
  /** How long an unused resource is kept: a finite duration above 0. Default 10 minutes. */
  readonly idleTimeToLive?: Duration.Input | undefined
  /** How many resources are kept: a whole number of at least 1, or `Infinity`. Default 100,000. */
  readonly capacity?: number | undefined
}

type QuotaLayer<R> = Layer.Layer<RetryQuota.RetryQuota, never, R>

const isLayer = <R>(input: unknown): input is QuotaLayer<R> => Layer.isLayer(input)

/** The valid options of each key. Options for all keys are checked once, here, before anything runs. */
const byKey = <Input, Valid>(
  options: Input | ((key: string) => Input),
  validated: (input: Input) => Valid
): (key: string) => Valid => {
  if (typeof options === "function") {
    const optionsOf = options as (key: string) => Input
    return (key) => validated(optionsOf(key))
  }
  const valid = validated(options)
  return () => valid
}

/** Makes the gates of a resource; `undefined` if no resource has any. */
const gatesOf = <R>(options: Options<R>) => {
  const made = gateNames.filter((name) => options[name] !== undefined).map((name) => {
    const { make, validated }: GateKind<any, any, any, any> = resourceGates[name]
    const validOf = byKey<any, any>(options[name], (input) => input === undefined ? undefined : validated(input))
    return (key: string, random: Random.Random, nowMillis: number) => {
      const valid = validOf(key)
      return [name, valid && make(valid, random, nowMillis)] as const
    }
  })
  return made.length === 0
    ? undefined
    : (key: string, random: Random.Random, nowMillis: number) =>
      Object.fromEntries(made.map((gateOf) => gateOf(key, random, nowMillis))) as unknown as Gates
}

/** How resources are made; valid. */
const recipeOf = <R>({ hedge, limiter = {}, quota = {}, ...options }: Options<R>) => ({
  quota: byKey(quota, (input: RetryQuota.Options | QuotaLayer<R>) => isLayer<R>(input) ? input : validStore(input)),
  /** `undefined` where nothing is limited. */
  limiter: limiter === "unlimited"
    ? undefined
    : byKey(limiter, (input: AdaptiveRateLimiter.Options = {}) => Adaptive.validated(input)),
  gates: gatesOf(options),
  hedge: byKey(hedge, (input: Hedge.Options = {}) => validHome(input)),
  isHedged: hedge !== undefined
})

type Recipe<R> = ReturnType<typeof recipeOf<R>>

/** There may be very many, most of them idle: what can be rebuilt on each use is not kept. */
abstract class Kept<R> extends Entry implements Resource {
  private gate: Adaptive.AdaptiveGate | undefined = undefined
  /** Set only where used, so that otherwise they take no memory. */
  declare private made?: Gates
  declare private hedging?: Home

  constructor(key: string, protected readonly home: Resources<R>) {
    super(key)
  }

  abstract readonly quota: RetryQuota.Service

  get limiter(): AdaptiveRateLimiter.Service {
    const { limiter } = this.home.recipe
    if (limiter === undefined) return Adaptive.unlimited
    const { make, serviceOf } = Adaptive.limiterKind
    return serviceOf(this.gate ??= make(limiter(this.key), undefined, this.sinceMillis))
  }

  get concurrency(): Services["concurrency"] {
    return this.serviceOf("concurrency")
  }

  get throttle(): Services["throttle"] {
    return this.serviceOf("throttle")
  }

  get coolDown(): Services["coolDown"] {
    return this.serviceOf("coolDown")
  }

  get hedge(): Hedge.Service {
    const { recipe, scope } = this.home
    return serviceOf(this.hedging ??= homeOf(recipe.hedge(this.key), scope))
  }

  /** Nothing has been throttled, cut, rejected or closed. */
  get isBlank(): boolean {
    return [this.gate, ...Object.values(this.made ?? {})].every((gate) => gate?.isBlank ?? true)
  }

  private serviceOf<Name extends GateName>(name: Name): Services[Name] {
    const { serviceOf }: GateKind<any, any, any, any> = resourceGates[name]
    const { random, recipe } = this.home
    const gate = recipe.gates && (this.made ??= recipe.gates(this.key, random, this.sinceMillis))[name]
    return gate && serviceOf(gate)
  }
}

class InMemory<R> extends Kept<R> {
  constructor(key: string, home: Resources<R>, readonly store: MemoryStore) {
    super(key, home)
  }

  get quota(): RetryQuota.Service {
    return RetryQuota.fromStore(this.store)
  }

  override get isBlank(): boolean {
    return this.store.isBlank && super.isBlank
  }

  dropped(): void {}
}

/** A resource whose quota comes from a layer. */
class Built<R> extends Kept<R> {
  quota!: RetryQuota.Service
  private scope: Scope.Closeable
  /** Builds the layer, for all that wait for it. */
  private building: Fiber.Fiber<unknown> | undefined = undefined

  constructor(key: string, home: Resources<R>, private readonly layer: QuotaLayer<R>) {
    super(key, home)
    this.scope = Scope.forkUnsafe(home.scope)
  }

  /** Waits for the quota. */
  get ready(): Effect.Effect<this> {
    if (this.quota !== undefined) return Effect.succeed(this)
    // If it has ended without a quota, it has failed.
    if (this.building === undefined || this.building.pollUnsafe() !== undefined) {
      this.building = this.home.fork(this.built)
    }
    return Effect.as(Fiber.join(this.building), this)
  }

  dropped(): void {
    this.home.fork(Scope.close(this.scope, Exit.void))
  }

  private get built(): Effect.Effect<unknown, never, R> {
    return Layer.buildWithMemoMap(this.layer, this.home.memoMap, this.scope).pipe(
      Effect.tap((context) =>
        Effect.sync(() => {
          this.quota = Context.get(context, RetryQuota.RetryQuota)
        })
      ),
      Effect.provideService(CurrentResource, this.key),
      Effect.onError(() => {
        const { scope } = this
        this.scope = Scope.forkUnsafe(this.home.scope)
        return Scope.close(scope, Exit.void)
      })
    )
  }
}

class Resources<R> implements Service {
  readonly scope: Scope.Scope
  readonly memoMap: Layer.MemoMap
  readonly random: Random.Random
  private readonly kept: Keyed<InMemory<R> | Built<R>>
  private readonly madeAtMillis: number
  private isSweeping = false

  constructor(bounds: Bounds, readonly recipe: Recipe<R>, private readonly services: Context.Context<R | Scope.Scope>) {
    this.kept = new Keyed(bounds, (key, nowMillis) => {
      const quota = recipe.quota(key)
      return isLayer<R>(quota)
        ? new Built(key, this, quota)
        : new InMemory(key, this, new MemoryStore(quota, nowMillis))
    })
    this.random = Context.get(services, Random.Random)
    this.madeAtMillis = monotonicMillis(Context.get(services, Clock.Clock))
    this.scope = Context.get(services, Scope.Scope)
    this.memoMap = Layer.CurrentMemoMap.forkOrCreate(services)
    if (recipe.isHedged) shared.marking = true
  }

  /** Runs while the layer lives. */
  fork<A>(effect: Effect.Effect<A, never, R>): Fiber.Fiber<A> {
    return Fiber.runIn(Effect.runForkWith(this.services)(effect), this.scope)
  }

  use(key: string): Effect.Effect<Resource, never, Scope.Scope> {
    const entered = Effect.acquireRelease(
      withMillis((nowMillis) => this.kept.enter(key, nowMillis)),
      (resource) => withMillis((nowMillis) => this.leave(resource, nowMillis))
    )
    return Effect.flatMap(
      entered,
      (resource): Effect.Effect<Resource> => resource instanceof Built ? resource.ready : Effect.succeed(resource)
    )
  }

  get count(): Effect.Effect<number> {
    return withMillis((nowMillis) => this.kept.count(nowMillis))
  }

  /** The layer is dropped. */
  dropped({ context }: Fiber.Fiber<unknown, unknown>): void {
    const stores = [...this.kept.all].flatMap((kept) => kept instanceof InMemory ? [kept.store] : [])
    warnUnsharedQuotas(context, stores, this.madeAtMillis)
  }

  private leave(resource: InMemory<R> | Built<R>, nowMillis: number): void {
    this.kept.release(resource, nowMillis)
    if (resource instanceof InMemory || this.isSweeping) return
    this.isSweeping = true
    this.fork(this.sweeping)
  }

  /** Closes idle layers in time, even if no call comes. */
  private get sweeping(): Effect.Effect<void> {
    return Effect.flatMap(
      withMillis((nowMillis) => (this.kept.sweep(nowMillis) ?? Infinity) - nowMillis),
      (millis) => {
        if (millis < Infinity) return Effect.andThen(Effect.sleep(Math.max(1, Math.ceil(millis))), this.sweeping)
        this.isSweeping = false
        return Effect.void
      }
    )
  }
}

/**
 * A layer with a quota, a limiter, and the gates it has options for, for every key. Throws `InvalidOption` when an
 * option is invalid.
 *
 * **Details**
 *
 * A resource idle for `idleTimeToLive` is forgotten, and starts again with a full quota: so make it longer than outages
 * last. With more than `capacity`, the one idle longest is forgotten early, of those that are as a new one would be
 * (a full quota, nothing throttled, cut, rejected or closed) if there are any: keys that strangers invent wipe out no
 * outage. If none is idle, the one whose last use began first goes. Calls that use it keep it until they end.
 *
 * No timer runs for idle resources: they are removed the next time a resource is used. Only resources whose quota is a
 * layer are closed in time, by one timer for all.
 *
 * **Example** (What ends an outage, per resource)
 *
 * ```ts
 * const resources = ResourceLimiters.layer({
 *   quota: () => RetryQuota.layerStore(RetryBudget.all([RetryBudget.bucket(), RetryBudget.share()])),
 *   limiter: "unlimited",
 *   concurrency: (key) => key === "reports" ? { rule: ConcurrencyLimiter.fixed(2) } : {},
 *   coolDown: {}
 * })
 * const program = call.pipe(
 *   withRetry(awsStandard),
 *   Effect.provide(ResourceLimiters.get("orders")),
 *   Effect.provide(resources)
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <R = never>(options: Options<R> = {}): Layer.Layer<ResourceLimiters, never, R> => {
  const check = checksOf("ResourceLimiters.layer", options)
  const bounds = {
    idleMillis: check.positiveDuration("idleTimeToLive", options.idleTimeToLive ?? 600_000),
    maxEntries: check.count("capacity", options.capacity ?? 100_000, 1)
  }
  also(check, "quota", "limiter", ...gateNames, "hedge")
  const recipe = rejectUnknown(check, options, recipeOf(options))
  return Layer.effect(
    ResourceLimiters,
    Effect.contextWith((services: Context.Context<R | Scope.Scope>) =>
      Effect.acquireRelease(
        Effect.sync(() => new Resources(bounds, recipe, services)),
        (resources) => Effect.withFiber((fiber) => Effect.sync(() => resources.dropped(fiber)))
      )
    )
  )
}

/** What a call of the resource is provided with, and its name. */
const providing = <A>(
  key: string,
  of: (resource: Resource) => Context.Context<A>
): Layer.Layer<A, never, ResourceLimiters> =>
  Layer.effectContext(
    Effect.flatMap(ResourceLimiters, (limiters) =>
      Effect.map(limiters.use(key), (resource) => Context.add(of(resource), CurrentResource, key)))
  )

/**
 * The quota of a resource, as a layer to provide a call with: for policies without a send rate. It also names the
 * resource for observers: `RetryObserver.CurrentResource`.
 *
 * **Example** (A call of one table)
 *
 * ```ts
 * callDynamo.pipe(withRetry(awsStandard), Effect.provide(ResourceLimiters.quota("dynamodb:orders")))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const quota = (key: string): Layer.Layer<RetryQuota.RetryQuota, never, ResourceLimiters> =>
  providing(key, ({ quota }) => Context.make(RetryQuota.RetryQuota, quota))

/**
 * The quota, the limiter and the gates of a resource, as a layer to provide a call with. An attempt uses them under any
 * policy; {@link quota} omits them. It also names the resource for observers: `RetryObserver.CurrentResource`.
 *
 * **Gotchas**
 *
 * Gates refuse sends with errors that no type shows, such as `ConcurrencyLimitExceeded`, since the layer decides which
 * gates there are. {@link Service} has the gates of a resource individually.
 *
 * **Example** (A call of one table)
 *
 * ```ts
 * callDynamo.pipe(withRetry(awsAdaptive), Effect.provide(ResourceLimiters.get("dynamodb:orders")))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const get = (key: string): Layer.Layer<Limiters, never, ResourceLimiters> =>
  providing(key, (resource) => {
    const services: Context.Context<Limiters> = Context.make(RetryQuota.RetryQuota, resource.quota).pipe(
      Context.add(AdaptiveRateLimiter.AdaptiveRateLimiter, resource.limiter)
    )
    return gateNames.reduce((services, name) => {
      const service = resource[name]
      return service === undefined ? services : Context.add(services, resourceGates[name].tag, service)
    }, services)
  })

/**
 * The hedging of a resource, as a layer to provide hedged calls with, next to {@link get} or {@link quota}.
 *
 * **Example** (A read that is hedged and retried)
 *
 * ```ts
 * const getItem = call.pipe(
 *   Hedge.hedged({ after: "200 millis" }),
 *   withRetry(awsAdaptive),
 *   Effect.provide([ResourceLimiters.get("dynamodb:orders"), ResourceLimiters.hedge("dynamodb:orders")])
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const hedge = (key: string): Layer.Layer<Hedge.Hedge, never, ResourceLimiters> =>
  providing(key, ({ hedge }) => Context.make(Hedge.Hedge, hedge))

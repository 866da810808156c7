import * as Limiter from "effect-retry/AdaptiveRateLimiter"
import { withRetry } from "effect-retry/Attempt"
import * as ClientThrottle from "effect-retry/ClientThrottle"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import { type Criticality, CurrentCriticality } from "effect-retry/Criticality"
import * as Hedge from "effect-retry/Hedge"
import * as RetryBudget from "effect-retry/RetryBudget"
import * as RetryDriver from "effect-retry/RetryDriver"

import * as RetryQuota from "effect-retry/RetryQuota"
import type { RetryQuotaStore } from "effect-retry/RetryQuotaStore"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as References from "effect/References"
import * as Scheduler from "effect/Scheduler"
import * as Scope from "effect/Scope"
import { storeOf } from "./budget.ts"
import type { Chance } from "./chance.ts"
import type { Failure } from "./failure.ts"
import { type AnyPolicy, type HedgeOptions, type Needs, paying, type Retrying } from "./policy.ts"
import type { VirtualTime } from "./time.ts"

/** The settings of a process. */
export interface ProcessOptions {
  readonly retrying: Retrying
  readonly time: VirtualTime
  readonly chance: Chance
}

/** For processes without a quota or a limiter: services that bound nothing and observe nothing. */
const unlimited = Effect.runSync(
  Effect.context<Needs>().pipe(
    Effect.provide(Layer.merge(RetryQuota.layerUnlimited, Limiter.layerUnlimited))
  )
)

/** Starts a fiber in virtual time: for anything that must wait. */
type Fork = <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>

/** What the calls of a process share: a quota, a budget, gates, and what pays for hedges. */
class Shared {
  readonly context: Context.Context<Needs>
  /** Connections that are open and free for a request. */
  connections = 0
  /** `undefined`: no retries. */
  readonly policy: AnyPolicy | undefined
  readonly hedge: HedgeOptions | undefined
  private readonly time: VirtualTime
  private readonly run: <A>(effect: Effect.Effect<A>) => A
  private readonly quota: RetryQuotaStore | undefined
  private readonly budget: RetryQuotaStore | undefined
  private readonly limiter: Limiter.Service | undefined

  constructor({ chance, retrying, time }: ProcessOptions) {
    const base = Context.make(Clock.Clock, time).pipe(
      Context.add(Scheduler.Scheduler, time.scheduler),
      Context.add(Random.Random, chance),
      Context.add(References.MinimumLogLevel, "None")
    )
    this.time = time
    this.run = Effect.runSyncWith(base)
    this.quota = retrying.quota && this.run(RetryBudget.bucket(retrying.quota))
    this.budget = retrying.budget && this.run(storeOf(retrying.budget))
    this.limiter = retrying.limiter && this.run(Limiter.make(retrying.limiter))
    this.context = this.contextOf(base, retrying)
    this.policy = retrying.policy && this.budget !== undefined ? paying(retrying.policy) : retrying.policy
    this.hedge = retrying.hedge
  }

  private contextOf(
    base: Context.Context<never>,
    { concurrency, coolDown, hedge, throttle }: Retrying
  ): Context.Context<Needs> {
    let context = Context.merge(unlimited, base)
    const { limiter, store } = this
    if (store !== undefined) context = Context.add(context, RetryQuota.RetryQuota, RetryQuota.fromStore(store))
    if (limiter !== undefined) context = Context.add(context, Limiter.AdaptiveRateLimiter, limiter)
    const add = <Id, Service>(tag: Context.Key<Id, Service>, made: Effect.Effect<Service> | undefined) => {
      if (made !== undefined) context = Context.add(context, tag, this.run(made))
    }
    add(CoolDown.CoolDown, coolDown && CoolDown.make(coolDown))
    add(ClientThrottle.ClientThrottle, throttle && ClientThrottle.make(throttle))
    add(ConcurrencyLimiter.ConcurrencyLimiter, concurrency && ConcurrencyLimiter.make(concurrency))
    // No scope is ever closed: the end of a run waits for nothing.
    add(Hedge.Hedge, hedge && Effect.flatMap(Scope.make(), (scope) => Scope.provide(Hedge.make(hedge.process), scope)))
    return context
  }

  /** Pays for retries: quota and budget must both grant one. */
  private get store(): RetryQuotaStore | undefined {
    const { budget, quota } = this
    return quota === undefined || budget === undefined
      ? quota ?? budget
      : this.run(RetryBudget.all([Effect.succeed(quota), Effect.succeed(budget)]))
  }

  /** The balance of the quota now. */
  get balance(): number | undefined {
    return this.quota?.balance(this.time)
  }

  /** What is left of the budget now. */
  get left(): number | undefined {
    return this.budget?.balance(this.time)
  }

  /** The fill rate of the limiter, once it has seen a throttle. */
  get fillRate(): number | undefined {
    if (this.limiter === undefined) return undefined
    const { enabled, fillRate } = this.run(this.limiter.state)
    return enabled ? fillRate : undefined
  }
}

/** A send, in a call that is hedged. */
type Send = Effect.Effect<void, Failure>

/** How the calls of a hedged process are made: the policy around, the hedges inside, as the library is used. */
const around = ({ hedge, policy }: Shared): ((send: Send) => Effect.Effect<void, unknown, any>) | undefined => {
  if (hedge === undefined || policy === undefined) return undefined
  const hedged = Hedge.hedged(hedge.call)
  return (send) => withRetry(hedged(send), policy)
}

/** One process of clients, for calls of one criticality. */
export class Process {
  /** `undefined`: no retries. */
  readonly driver: RetryDriver.Driver | undefined
  /** `undefined`: no hedges. */
  readonly hedged: ((send: Send) => Effect.Effect<void, unknown, any>) | undefined
  readonly fork: Fork

  private constructor(private readonly shared: Shared, criticality: Criticality) {
    const context = criticality === "normal"
      ? shared.context
      : Context.add(shared.context, CurrentCriticality, criticality)
    this.fork = Effect.runForkWith(context)
    this.driver = shared.policy && Effect.runSyncWith(context)(RetryDriver.make(shared.policy))
    this.hedged = around(shared)
  }

  static make(options: ProcessOptions, criticality: Criticality): Process {
    return new Process(new Shared(options), criticality)
  }

  /** The same process, for calls of another criticality. */
  as(criticality: Criticality): Process {
    return new Process(this.shared, criticality)
  }

  /** Connections that are open and free for a request. */
  get connections(): number {
    return this.shared.connections
  }

  set connections(count: number) {
    this.shared.connections = count
  }

  /** The balance of the quota now. */
  get balance(): number | undefined {
    return this.shared.balance
  }

  /** What is left of the budget now. */
  get left(): number | undefined {
    return this.shared.left
  }

  /** The fill rate of the limiter, once it has seen a throttle. */
  get fillRate(): number | undefined {
    return this.shared.fillRate
  }
}

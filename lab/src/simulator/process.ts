import * as Limiter from "effect-retry/AdaptiveRateLimiter"
import * as ClientThrottle from "effect-retry/ClientThrottle"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
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
import { storeOf } from "./budget.ts"
import type { Chance } from "./chance.ts"
import { type Needs, paying, type Retrying } from "./policy.ts"
import type { VirtualTime } from "./time.ts"

/** What a process is made with. */
export interface ProcessOptions {
  readonly retrying: Retrying
  readonly time: VirtualTime
  readonly chance: Chance
}

/** For processes without a quota or a limiter: services that bound nothing and hear of nothing. */
const unlimited = Effect.runSync(
  Effect.context<Needs>().pipe(
    Effect.provide(Layer.merge(RetryQuota.layerUnlimited, Limiter.layerUnlimited))
  )
)

/** Starts a fiber in the time of the simulation: for what has to wait. */
type Fork = <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>

/** One process of clients: its calls share a quota, a budget and gates. */
export class Process {
  /** `undefined`: no retries. */
  readonly driver: RetryDriver.Driver | undefined
  readonly fork: Fork
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
    const context = this.context(base, retrying)
    this.fork = Effect.runForkWith(context)
    const policy = retrying.policy && this.budget !== undefined ? paying(retrying.policy) : retrying.policy
    this.driver = policy && Effect.runSyncWith(context)(RetryDriver.make(policy))
  }

  private context(base: Context.Context<never>, { concurrency, coolDown, throttle }: Retrying): Context.Context<Needs> {
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
    return context
  }

  /** What pays for retries: quota and budget, each of which has to grant one. */
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
    const { enabled, fillRate } = this.run(this.limiter.snapshot)
    return enabled ? fillRate : undefined
  }
}

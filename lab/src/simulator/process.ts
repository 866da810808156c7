import * as Limiter from "effect-retry/AdaptiveRateLimiter"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as RetryDriver from "effect-retry/RetryDriver"
import * as RetryQuota from "effect-retry/RetryQuota"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as References from "effect/References"
import * as Scheduler from "effect/Scheduler"
import { type Budget, ClientThrottle, makeBudget } from "./budget.ts"
import type { Chance } from "./chance.ts"
import { type Needs, type Retrying, within } from "./policy.ts"
import type { VirtualTime } from "./time.ts"

/** What a process is made with. */
export interface ProcessOptions {
  readonly retrying: Retrying
  readonly throttle: { readonly k: number; readonly windowMillis: number } | undefined
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

/** One process of clients: its calls share a quota, a limiter and a budget. */
export class Process {
  /** `undefined`: no retries. */
  readonly driver: RetryDriver.Driver | undefined
  readonly budget: Budget | undefined
  readonly throttle: ClientThrottle | undefined
  readonly fork: Fork
  private readonly time: VirtualTime
  private readonly run: <A>(effect: Effect.Effect<A>) => A
  private readonly quota: RetryQuota.Service | undefined
  private readonly limiter: Limiter.Service | undefined
  private readonly concurrency: ConcurrencyLimiter.Service | undefined

  constructor({ chance, retrying, throttle, time }: ProcessOptions) {
    const base = Context.make(Clock.Clock, time).pipe(
      Context.add(Scheduler.Scheduler, time.scheduler),
      Context.add(Random.Random, chance),
      Context.add(References.MinimumLogLevel, "None")
    )
    this.time = time
    this.run = Effect.runSyncWith(base)
    this.quota = retrying.quota && this.run(RetryQuota.make(retrying.quota))
    this.limiter = retrying.limiter && this.run(Limiter.make(retrying.limiter))
    this.concurrency = retrying.concurrency && this.run(ConcurrencyLimiter.make(retrying.concurrency))
    const context = this.context(base)
    this.fork = Effect.runForkWith(context)
    this.budget = retrying.budget && makeBudget(retrying.budget)
    this.throttle = throttle && new ClientThrottle(throttle.k, throttle.windowMillis)
    const policy = retrying.policy && this.budget !== undefined
      ? within(retrying.policy, this.budget, () => time.nowMillis)
      : retrying.policy
    this.driver = policy && Effect.runSyncWith(context)(RetryDriver.make(policy))
  }

  private context(base: Context.Context<never>): Context.Context<Needs> {
    let context = Context.merge(unlimited, base)
    if (this.quota !== undefined) context = Context.add(context, RetryQuota.RetryQuota, this.quota)
    if (this.limiter !== undefined) context = Context.add(context, Limiter.AdaptiveRateLimiter, this.limiter)
    return this.concurrency === undefined
      ? context
      : Context.add(context, ConcurrencyLimiter.ConcurrencyLimiter, this.concurrency)
  }

  /** The balance of the quota now. */
  get balance(): number | undefined {
    return this.quota?.store.balance(this.time)
  }

  /** The fill rate of the limiter, once it has seen a throttle. */
  get fillRate(): number | undefined {
    if (this.limiter === undefined) return undefined
    const { enabled, fillRate } = this.run(this.limiter.snapshot)
    return enabled ? fillRate : undefined
  }
}

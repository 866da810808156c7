import * as Limiter from "effect-retry/AdaptiveRateLimiter"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import { CurrentObserver, type RetryObserver } from "effect-retry/RetryObserver"
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
import { type AnyPolicy, type Needs, type Retrying, within } from "./policy.ts"
import type { VirtualTime } from "./time.ts"

/** What a process is made with. */
export interface ProcessOptions {
  readonly retrying: Retrying
  readonly throttle: { readonly k: number; readonly windowMillis: number } | undefined
  readonly observer: RetryObserver
  readonly time: VirtualTime
  readonly chance: Chance
}

/** For processes without a quota or a limiter: services that bound nothing and hear of nothing. */
const unlimited = Effect.runSync(
  Effect.context<Needs>().pipe(
    Effect.provide(Layer.merge(RetryQuota.layerUnlimited, Limiter.layerUnlimited))
  )
)

/** Starts a fiber in the time of the simulation. */
type Fork = (effect: Effect.Effect<void, unknown, Needs>) => Fiber.Fiber<void, unknown>

/** One process of clients: its calls share a quota, a limiter and a budget. */
export class Process {
  readonly policy: AnyPolicy | undefined
  readonly budget: Budget | undefined
  readonly throttle: ClientThrottle | undefined
  readonly fork: Fork
  private readonly run: <A>(effect: Effect.Effect<A>) => A
  private readonly quota: RetryQuota.Service | undefined
  private readonly limiter: Limiter.Service | undefined
  private readonly concurrency: ConcurrencyLimiter.Service | undefined

  constructor({ chance, observer, retrying, throttle, time }: ProcessOptions) {
    const base = Context.make(Clock.Clock, time).pipe(
      Context.add(Scheduler.Scheduler, time.scheduler),
      Context.add(Random.Random, chance),
      Context.add(CurrentObserver, observer),
      Context.add(References.MinimumLogLevel, "None")
    )
    this.run = Effect.runSyncWith(base)
    this.quota = retrying.quota && this.run(RetryQuota.make(retrying.quota))
    this.limiter = retrying.limiter && this.run(Limiter.make(retrying.limiter))
    this.concurrency = retrying.concurrency && this.run(ConcurrencyLimiter.make(retrying.concurrency))
    this.fork = Effect.runForkWith(this.context(base))
    this.budget = retrying.budget && makeBudget(retrying.budget)
    this.throttle = throttle && new ClientThrottle(throttle.k, throttle.windowMillis)
    this.policy = retrying.policy && this.budget !== undefined
      ? within(retrying.policy, this.budget, () => time.nowMillis)
      : retrying.policy
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
    return this.quota && this.run(this.quota.balance)
  }

  /** The fill rate of the limiter, once it has seen a throttle. */
  get fillRate(): number | undefined {
    if (this.limiter === undefined) return undefined
    const { enabled, fillRate } = this.run(this.limiter.snapshot)
    return enabled ? fillRate : undefined
  }
}

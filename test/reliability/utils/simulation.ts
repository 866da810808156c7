import {
  AdaptiveRateLimiter,
  awsAdaptive,
  AwsModes,
  Backoff,
  RetryObserver,
  RetryPolicy,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as Kit from "effect-retry/testing"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import { Chance, Hash } from "./random.ts"
import { World } from "./world.ts"

type Services = RetryQuota.RetryQuota | AdaptiveRateLimiter.AdaptiveRateLimiter
type Policy = RetryPolicy.RetryPolicy<unknown, AdaptiveRateLimiter.RateLimitExceeded, Services>

const serviceFaults = ["errors", "throttles", "latency", "loss", "defects", "capacity"] as const
const worldFaults = ["wall clock", "stalls", "storms", "order"] as const
type Fault = typeof serviceFaults[number] | typeof worldFaults[number]

/** When the faults stop. */
const calmMillis = 60_000

const policies: ReadonlyArray<Policy> = [
  AwsModes.standard(),
  AwsModes.standard({ maxAttempts: 10 }),
  AwsModes.standard2026(),
  AwsModes.standard2026({ longPolling: true }),
  awsAdaptive,
  RetryPolicy.deadline("15 seconds")(awsAdaptive),
  RetryPolicy.deadline("5 seconds")(AwsModes.standard({ maxAttempts: 20 })),
  Backoff.decorrelated("20 millis", { cap: "5 seconds" }).pipe(
    RetryPolicy.maxAttempts(6),
    RetryPolicy.whileRetryable,
    RetryPolicy.quotaGated({ cost: 3, throttlingCost: 7, timeoutCost: 1 })
  ),
  RetryPolicy.fromSchedule(Schedule.exponential("50 millis")).pipe(
    RetryPolicy.maxAttempts(5),
    RetryPolicy.whileRetryable,
    RetryPolicy.quotaGated({ cost: 4 })
  )
]

type Send = Effect.Effect<number, Kit.Transient | Kit.Throttled | Kit.TimedOut>
type Call = Effect.Effect<number, unknown, Services>

const drivers: ReadonlyArray<(send: Send, policy: Policy) => Call> = [
  (send, policy) => withRetry(send, policy),
  (send, policy) => Effect.retry(send, policy),
  (send, policy) => Effect.timeout(withRetry(send, policy), "20 seconds"),
  (send, policy) => Effect.provide(RetryStrategy.run(send), RetryStrategy.layer(policy))
]

const hints = [undefined, 0, 1, 500, 60_000, 1e12, NaN, -5, Infinity]

/** What has happened in one run. */
export interface Run {
  readonly seed: number
  readonly faults: ReadonlyArray<Fault>
  readonly hash: string
  readonly sends: number
  readonly calls: number
  readonly cancelled: number
}

/** A fault in the library, with the seed that reproduces it. */
export class SeedFailure extends Error {
  constructor(seed: number, atMillis: number, what: unknown) {
    super(`SEED=${seed}: at ${atMillis} ms: ${String(what)}`, { cause: what })
    this.name = "SeedFailure"
  }
}

class Simulation {
  private readonly chance: Chance
  private readonly faults: ReadonlySet<Fault>
  private readonly world: World
  private readonly hash = new Hash()
  private readonly policy: Policy
  private readonly quotaOptions: {
    readonly capacity: number
    readonly initial: number
    readonly refillPerSecond: number
  }
  private readonly isExact: boolean
  private context!: Context.Context<Services>
  private sends = 0
  private calls = 0
  private cancelled = 0
  /** What the service has seen spent: the costs of retries that it did not answer with success. */
  private spent = 0
  private capacityPerSecond = 20
  private readonly second = { at: -1, served: 0 }
  readonly seed: number

  constructor(seed: number) {
    this.seed = seed
    const chance = this.chance = new Chance(seed)
    this.faults = new Set(chance.some([...serviceFaults, ...worldFaults]))
    const order = new Chance(seed + 0.5)
    this.world = new World(
      () => chance.next(),
      this.faults.has("order") ? (ready) => order.below(ready) : undefined
    )
    this.policy = chance.pick(policies)
    const capacity = chance.pick([5, 20, 100, 500])
    this.isExact = chance.isLikely(0.5)
    this.quotaOptions = {
      capacity,
      initial: Math.floor(capacity * chance.next()),
      refillPerSecond: this.isExact ? 0 : chance.pick([0.5, 5])
    }
  }

  private note(what: string): void {
    this.hash.add(`${this.world.nowMillis} ${what};`)
  }

  private get isCalm(): boolean {
    return this.world.nowMillis >= calmMillis
  }

  private goesWrong(fault: Fault, probability: number): boolean {
    return this.faults.has(fault) && !this.isCalm && this.chance.isLikely(probability)
  }

  /** The faulty service: one send. */
  private send(client: number): Send {
    return Effect.withFiber((fiber) => {
      const { attempt, output } = fiber.getRef(Schedule.CurrentMetadata)
      const cost = attempt > 0 && output !== undefined ? (output as { readonly cost: number }).cost : 0
      this.sends++
      this.note(`send ${client} ${attempt} ${cost}`)
      return Effect.onExit(this.answer(), (exit) =>
        Effect.sync(() => {
          this.note(`answer ${client} ${exit._tag}`)
          if (Exit.isFailure(exit)) this.spent += cost
        }))
    })
  }

  private answer(): Send {
    const { chance } = this
    const latency = this.goesWrong("latency", 0.3) ? chance.below(20_000) : 1 + chance.below(50)
    const answered: Send = Effect.suspend(() => this.outcome())
    const timed = Effect.timeoutOrElse(
      this.goesWrong("loss", 0.2) ? Effect.never : Effect.delay(answered, latency),
      { duration: "3 seconds", orElse: () => new Kit.TimedOut() }
    )
    return timed
  }

  private outcome(): Send {
    const second = Math.floor(this.world.nowMillis / 1000)
    if (second !== this.second.at) Object.assign(this.second, { at: second, served: 0 })
    if (this.goesWrong("defects", 0.05)) return Effect.die("a defect of the service")
    if (this.goesWrong("errors", 0.4)) return new Kit.Transient()
    const isOver = this.faults.has("capacity") && !this.isCalm && ++this.second.served > this.capacityPerSecond
    if (isOver || this.goesWrong("throttles", 0.4)) {
      return new Kit.Throttled({ retryAfter: this.chance.pick(hints) as number })
    }
    return Effect.succeed(this.sends)
  }

  /** A client: calls one after the other, with pauses. */
  private client(id: number): Effect.Effect<void, never, Services> {
    const { chance } = this
    const driver = chance.pick(drivers)
    const call = Effect.suspend(() => {
      this.calls++
      return Effect.exit(driver(this.send(id), this.policy))
    })
    const pause = Effect.suspend(() => Effect.sleep(chance.below(4000)))
    return Effect.repeat(
      Effect.andThen(pause, Effect.map(call, (exit) => this.note(`end ${id} ${exit._tag}`))),
      Schedule.recurs(3 + chance.below(8))
    )
  }

  private check(): void {
    const quota = Context.get(this.context, RetryQuota.RetryQuota)
    const { balance, held } = this.read(Effect.provideService(Kit.TestQuota.state, RetryQuota.RetryQuota, quota))
    if (!(balance >= 0 && balance <= quota.capacity)) throw new Error(`the balance is ${balance} of ${quota.capacity}`)
    if (!(held >= 0)) throw new Error(`${held} are held`)
    const limiter = this.limiter
    for (const [name, value] of Object.entries(limiter)) {
      if (typeof value === "number" && !(value >= 0 && value < 1e9)) {
        throw new Error(`the limiter's ${name} is ${value}`)
      }
    }
    if (limiter.capacity > limiter.maxCapacity + 1e-9) throw new Error("the limiter holds more than it can")
  }

  private get limiter(): AdaptiveRateLimiter.State {
    return this.read(Context.get(this.context, AdaptiveRateLimiter.AdaptiveRateLimiter).state)
  }

  private read<A>(self: Effect.Effect<A>): A {
    return Effect.runSyncWith(this.world.context)(self)
  }

  private build(): void {
    const wait = this.quotaOptions.refillPerSecond > 0 && this.chance.isLikely(0.4)
    const layer = Layer.mergeAll(
      Kit.TestQuota.layer({
        ...this.quotaOptions,
        successIncrement: this.isExact ? 0 : 1,
        onExceeded: wait ? "wait" : "stop"
      }),
      AdaptiveRateLimiter.layer({ maxWaiters: this.chance.pick([3, 1000]) }),
      RetryObserver.layer({
        onRetry: ({ delayMillis, retry }) => this.note(`retry ${retry} ${delayMillis}`),
        onStop: ({ attempts, reason }) => this.note(`stop ${attempts} ${reason}`)
      })
    )
    const built = this.world.fork(Effect.scoped(Layer.build(layer)))
    this.world.settle()
    const exit = built.pollUnsafe()
    if (exit === undefined || !Exit.isSuccess(exit)) throw new Error("the layer was not built")
    this.context = exit.value
  }

  /** What goes wrong in the world before the next second or so. */
  private disturb(fibers: ReadonlyArray<Fiber.Fiber<unknown, unknown>>): void {
    const { chance, world } = this
    if (this.goesWrong("wall clock", 0.1)) world.wallMillis += chance.pick([-3_600_000, -25_000, 3_600_000])
    if (this.goesWrong("stalls", 0.05)) world.stall(chance.below(10_000))
    if (this.goesWrong("capacity", 0.1)) this.capacityPerSecond = chance.below(30)
    if (!this.goesWrong("storms", 0.05)) return
    for (const fiber of fibers) {
      if (fiber.pollUnsafe() !== undefined || !chance.isLikely(0.3)) continue
      this.cancelled++
      fiber.interruptUnsafe()
    }
  }

  private play(): void {
    const { chance, world } = this
    this.build()
    const fibers = Array.from(
      { length: 4 + chance.below(8) },
      (_, id) => world.fork(Effect.provideContext(this.client(id), this.context))
    )
    while (fibers.some((fiber) => fiber.pollUnsafe() === undefined)) {
      // Once it is calm, those still there are done in an hour, or never.
      if (world.nowMillis > calmMillis + 3_600_000) throw new Error("somebody never comes to an end")
      this.disturb(fibers)
      world.advance(1 + chance.below(2000))
      this.check()
    }
    this.atRest()
  }

  private atRest(): void {
    const quota = Context.get(this.context, RetryQuota.RetryQuota)
    const { balance, held, waiting } = this.read(
      Effect.provideService(Kit.TestQuota.state, RetryQuota.RetryQuota, quota)
    )
    if (held !== 0) throw new Error(`${held} tokens are still held`)
    const limiter = this.limiter
    if (waiting + limiter.waiting > 0) throw new Error("somebody still waits")
    if (this.world.asleep > 0) throw new Error(`${this.world.asleep} timers are left`)
    const expected = this.quotaOptions.initial - this.spent
    if (this.isExact && Math.abs(balance - expected) > 1e-6) {
      throw new Error(`the balance is ${balance}, where what was spent leaves ${expected}`)
    }
    this.note(`balance ${balance}`)
  }

  run(): Run {
    try {
      this.play()
    } catch (error) {
      throw new SeedFailure(this.seed, this.world.nowMillis, error)
    }
    const { calls, cancelled, faults, hash, seed, sends } = this
    return { seed, faults: [...faults], hash: hash.text, sends, calls, cancelled }
  }
}

/** One run: the engine, a faulty service, virtual time; the seed determines everything random. */
export const simulate = (seed: number): Run => new Simulation(seed).run()

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import * as Scheduler from "effect/Scheduler"

interface Sleeper {
  readonly atMillis: number
  readonly order: number
  readonly wake: () => void
}

/**
 * Full control over time and the order of fibers: what is ready runs when {@link settle} is called, in the order that
 * `choose` gives, and time passes when {@link advance} is called. Nothing in it depends on the machine.
 */
export class World {
  /** Milliseconds since the beginning. */
  nowMillis = 0
  /** How far the wall clock is off. */
  wallMillis = 0
  /** Tasks that have run. */
  tasks = 0
  private order = 0
  private readonly sleepers = new Set<Sleeper>()
  private ready: Array<() => void> = []
  readonly context: Context.Context<never>
  private readonly choose: (ready: number) => number

  constructor(random: () => number = () => 0.5, choose: (ready: number) => number = () => 0) {
    this.choose = choose
    const source: Random.Random = {
      nextDoubleUnsafe: random,
      nextIntUnsafe: () => Math.floor(random() * Number.MAX_SAFE_INTEGER)
    }
    this.context = Context.empty().pipe(
      Context.add(Clock.Clock, this.clock),
      Context.add(Scheduler.Scheduler, this.scheduler),
      Context.add(Random.Random, source)
    ) as Context.Context<never>
  }

  private get clock(): Clock.Clock {
    const wall = () => 1_000_000_000_000 + this.nowMillis + this.wallMillis
    const nanos = (millis: number) => BigInt(Math.round(millis * 1e6))
    return {
      currentTimeMillisUnsafe: wall,
      currentTimeNanosUnsafe: () => nanos(wall()),
      monotonicTimeNanosUnsafe: () => nanos(this.nowMillis),
      currentTimeMillis: Effect.sync(wall),
      currentTimeNanos: Effect.sync(() => nanos(wall())),
      monotonicTimeNanos: Effect.sync(() => nanos(this.nowMillis)),
      sleep: (duration) => this.sleep(Duration.toMillis(duration))
    }
  }

  private sleep(millis: number): Effect.Effect<void> {
    if (millis <= 0) return Effect.yieldNow
    return Effect.callback<void>((resume) => {
      const sleeper = { atMillis: this.nowMillis + millis, order: this.order++, wake: () => resume(Effect.void) }
      this.sleepers.add(sleeper)
      return Effect.sync(() => this.sleepers.delete(sleeper))
    })
  }

  private get scheduler(): Scheduler.Scheduler {
    return {
      executionMode: "async",
      shouldYield: (fiber) => fiber.currentOpCount >= fiber.cache.maxOpsBeforeYield,
      makeDispatcher: () => ({ scheduleTask: (task) => void this.ready.push(task), flush: () => undefined })
    }
  }

  /** How many fibers sleep. */
  get asleep(): number {
    return this.sleepers.size
  }

  /** Starts a fiber, which runs as far as it can immediately. */
  fork<A, E>(self: Effect.Effect<A, E>): Fiber.Fiber<A, E> {
    return Effect.runForkWith(this.context)(self)
  }

  /** Runs what is ready, and what that makes ready. */
  settle(): void {
    let atMoment = 0
    while (this.ready.length > 0) {
      if (atMoment++ > 1_000_000) throw new Error("it goes on for ever though no time passes")
      this.tasks++
      const [task] = this.ready.splice(this.ready.length === 1 ? 0 : this.choose(this.ready.length), 1)
      task!()
    }
  }

  /** Lets time pass, and wakes sleeping fibers in order. */
  advance(millis: number): void {
    this.settle()
    const end = this.nowMillis + millis
    for (let next = this.next(); next !== undefined && next.atMillis <= end; next = this.next()) {
      this.nowMillis = Math.max(this.nowMillis, next.atMillis)
      this.sleepers.delete(next)
      next.wake()
      this.settle()
    }
    this.nowMillis = end
  }

  /** Time passes in which nothing runs, as when a machine sleeps: timers come late. */
  stall(millis: number): void {
    this.nowMillis += millis
    this.advance(0)
  }

  /** Milliseconds until the next sleeper wakes; `undefined` when there is none. */
  get untilNext(): number | undefined {
    const next = this.next()
    return next === undefined ? undefined : Math.max(0, next.atMillis - this.nowMillis)
  }

  private next(): Sleeper | undefined {
    let first: Sleeper | undefined
    for (const sleeper of this.sleepers) {
      if (first === undefined || sleeper.atMillis < first.atMillis) first = sleeper
    }
    return first
  }
}

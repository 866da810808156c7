import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Scheduler from "effect/Scheduler"
import { type Actor, Agenda } from "./agenda.ts"
import { Lane } from "./lane.ts"

/** How a stretch of virtual time ended. */
export type Stretch =
  /** Time has reached the limit; there may be more after it. */
  | "reached"
  /** Nothing is left that could happen. */
  | "idle"
  /** The steps are used up; the stretch continues with the next call. */
  | "paused"
  /** So much has happened at one moment that it seems to be a loop. */
  | "stalled"

/** A step in the life of a fiber that waits for it. */
class Timer implements Actor {
  place = -1

  constructor(private readonly run: () => void) {}

  act(): void {
    this.place = -1
    this.run()
  }
}

/**
 * Time that passes only when nothing is left to do now. It is the clock and the scheduler of the fibers that run in it:
 * it runs everything that is ready, then moves on to the next event in its agenda. The order is always the same: nothing
 * depends on the machine.
 */
export class VirtualTime implements Clock.Clock {
  /** Milliseconds since the beginning. */
  nowMillis = 0
  /** Ends the current stretch after the current step. */
  halted = false
  private readonly agenda = new Agenda()
  private ready: Array<() => void> = []
  private stepsAtMoment = 0
  private readonly maxStepsAtMoment: number
  readonly scheduler: SharedQueue = new SharedQueue((run) => this.enqueue(run))

  /** More steps than this at one moment count as a loop in which no time passes. */
  constructor(maxStepsAtMoment = Infinity) {
    this.maxStepsAtMoment = maxStepsAtMoment
  }

  /** Reports progress at this moment, though no time passes. */
  progresses(): void {
    this.stepsAtMoment = 0
  }

  /** Plans something, in milliseconds since the beginning; a time that has passed is now. */
  plan(atMillis: number, who: Actor, what: number): void {
    this.agenda.add(atMillis > this.nowMillis ? atMillis : this.nowMillis, this.agenda.nextOrder(), who, what)
  }

  /** For events that always come equally long after they were planned, and are mostly canceled. */
  lane(what: number): Lane {
    return new Lane(this.agenda, what)
  }

  /** Plans something for this moment, after everything that is ready. */
  soon(run: () => void): void {
    this.scheduler.soon(run)
  }

  private enqueue(run: () => void): () => void {
    this.ready.push(run)
    return () => {
      this.ready = this.ready.filter((other) => other !== run)
    }
  }

  /** Lets time pass up to the limit, in a limited number of steps. */
  pass(limitMillis: number, steps: number): Stretch {
    const { agenda } = this
    let left = steps
    this.halted = false
    while (!this.halted) {
      if (this.ready.length > 0) left -= this.settle(left)
      if (this.stepsAtMoment > this.maxStepsAtMoment) return "stalled"
      if (this.ready.length > 0 || left <= 0) return "paused"
      const place = agenda.peek()
      if (place < 0) return "idle"
      const at = agenda.atMillis(place)
      if (at > limitMillis) break
      if (at > this.nowMillis) this.stepsAtMoment = 0
      this.stepsAtMoment++
      this.nowMillis = at
      agenda.act(place)
      left--
    }
    if (!this.halted) this.nowMillis = limitMillis
    return "reached"
  }

  /** Runs what is ready, and what that makes ready; returns how many steps it took. */
  private settle(steps: number): number {
    let taken = 0
    while (this.ready.length > 0 && taken < steps) {
      const ready = this.ready
      this.ready = []
      for (const run of ready) run()
      taken += ready.length
    }
    this.stepsAtMoment += taken
    return taken
  }

  currentTimeMillisUnsafe(): number {
    return this.nowMillis
  }

  currentTimeNanosUnsafe(): bigint {
    return BigInt(Math.round(this.nowMillis * 1e6))
  }

  monotonicTimeNanosUnsafe(): bigint {
    return this.currentTimeNanosUnsafe()
  }

  readonly currentTimeMillis = Effect.sync(() => this.currentTimeMillisUnsafe())
  readonly currentTimeNanos = Effect.sync(() => this.currentTimeNanosUnsafe())
  readonly monotonicTimeNanos = Effect.sync(() => this.monotonicTimeNanosUnsafe())

  sleep(duration: Duration.Duration): Effect.Effect<void> {
    const millis = Duration.toMillis(duration)
    if (millis <= 0) return Effect.yieldNow
    if (millis === Infinity) return Effect.never
    return Effect.callback<void>((resume) => {
      const { agenda } = this
      const timer = new Timer(() => resume(Effect.void))
      timer.place = agenda.add(this.nowMillis + millis, agenda.nextOrder(), timer, 0)
      return Effect.sync(() => {
        if (timer.place >= 0) agenda.cancel(timer.place)
        timer.place = -1
      })
    })
  }
}

/** Effect's own scheduler, with one queue for all fibers, which its owner drains. */
class SharedQueue extends Scheduler.MixedScheduler {
  private readonly dispatcher: Scheduler.SchedulerDispatcher

  constructor(enqueue: (run: () => void) => () => void) {
    super("async", enqueue)
    this.dispatcher = super.makeDispatcher()
  }

  soon(run: () => void): void {
    this.dispatcher.scheduleTask(run, 0)
  }

  override makeDispatcher() {
    return this.dispatcher as ReturnType<Scheduler.MixedScheduler["makeDispatcher"]>
  }
}

/** Runs an effect to its end immediately; `undefined` when it waits. */
export const runVirtually = <A, E>(effect: Effect.Effect<A, E>, time: VirtualTime): Exit.Exit<A, E> | undefined => {
  const fiber = Effect.runFork(Effect.provideService(effect, Clock.Clock, time), { scheduler: time.scheduler })
  fiber.addObserver(() => {
    time.halted = true
  })
  if (fiber.pollUnsafe() === undefined) time.pass(Infinity, Infinity)
  const exit = fiber.pollUnsafe()
  if (exit !== undefined) return exit
  fiber.interruptUnsafe()
  time.pass(time.nowMillis, Infinity)
  return undefined
}

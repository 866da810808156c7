import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Scheduler from "effect/Scheduler"

interface Sleeper {
  readonly atMillis: number
  readonly wake: () => void
}

/** A clock that stands still until it is told to go on to its next sleeper. It begins at 0. */
export class VirtualClock implements Clock.Clock {
  /** Milliseconds since the beginning. */
  nowMillis = 0
  private readonly sleepers: Array<Sleeper> = []

  currentTimeMillisUnsafe(): number {
    return this.nowMillis
  }

  currentTimeNanosUnsafe(): bigint {
    return BigInt(Math.round(this.nowMillis * 1e6))
  }

  monotonicTimeNanosUnsafe(): bigint {
    return this.currentTimeNanosUnsafe()
  }

  get currentTimeMillis(): Effect.Effect<number> {
    return Effect.sync(() => this.currentTimeMillisUnsafe())
  }

  get currentTimeNanos(): Effect.Effect<bigint> {
    return Effect.sync(() => this.currentTimeNanosUnsafe())
  }

  get monotonicTimeNanos(): Effect.Effect<bigint> {
    return Effect.sync(() => this.monotonicTimeNanosUnsafe())
  }

  sleep(duration: Duration.Duration): Effect.Effect<void> {
    const millis = Duration.toMillis(duration)
    if (millis <= 0) return Effect.void
    return Effect.callback<void>((resume) => {
      const sleeper: Sleeper = { atMillis: this.nowMillis + millis, wake: () => resume(Effect.void) }
      const later = this.sleepers.findIndex(({ atMillis }) => atMillis > sleeper.atMillis)
      this.sleepers.splice(later === -1 ? this.sleepers.length : later, 0, sleeper)
      return Effect.sync(() => {
        const index = this.sleepers.indexOf(sleeper)
        if (index !== -1) this.sleepers.splice(index, 1)
      })
    })
  }

  /** Goes on to the next sleeper; `false` when there is none that ever wakes. */
  advance(): boolean {
    const next = this.sleepers.shift()
    if (next === undefined || next.atMillis === Infinity) return false
    this.nowMillis = next.atMillis
    next.wake()
    return true
  }
}

/** Runs an effect to its end on the clock, in no time; `undefined` when it waits for what no clock brings. */
export const runVirtually = <A, E>(effect: Effect.Effect<A, E>, clock: VirtualClock): Exit.Exit<A, E> | undefined => {
  const base = new Scheduler.MixedScheduler("sync")
  const dispatcher = base.makeDispatcher()
  const scheduler: Scheduler.Scheduler = {
    executionMode: base.executionMode,
    shouldYield: (fiber) => base.shouldYield(fiber),
    makeDispatcher: () => dispatcher
  }
  const fiber = Effect.runFork(Effect.provideService(effect, Clock.Clock, clock), { scheduler })
  for (;;) {
    dispatcher.flush()
    const exit = fiber.pollUnsafe()
    if (exit !== undefined) return exit
    if (clock.advance()) continue
    fiber.interruptUnsafe()
    dispatcher.flush()
    return undefined
  }
}

/** A limiter with a queue: what a grant costs, by the number of waiters. */
import { AdaptiveRateLimiter } from "effect-retry"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"

/** A clock that stands still until it is moved to its next timer. It counts the timers that fire. */
class Stepping implements Clock.Clock {
  fired = 0
  private nowMillis = 0
  private readonly timers = new Set<{ readonly at: number; readonly fire: () => void }>()

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
    return Effect.callback<void>((resume) => {
      const millis = Duration.toMillis(duration)
      const timer = { at: this.nowMillis + millis, fire: () => resume(Effect.void) }
      this.timers.add(timer)
      return Effect.sync(() => this.timers.delete(timer))
    })
  }

  get pending(): number {
    return this.timers.size
  }

  /** Goes to the next timer, if there is one. */
  advance(): void {
    let next: { readonly at: number; readonly fire: () => void } | undefined
    for (const timer of this.timers) {
      if (next === undefined || timer.at < next.at) next = timer
    }
    if (next === undefined) return
    this.timers.delete(next)
    this.nowMillis = next.at
    this.fired++
    next.fire()
  }
}

/** What the queue took, per grant. */
export interface Queued {
  readonly waiters: number
  readonly grants: number
  readonly fires: number
  readonly timersAtOnce: number
  readonly nanosPerGrant: number
}

const turn = () => new Promise<void>((done) => setImmediate(done))

/** Lets many sends wait for a token each, and serves them all, several times. */
export const queued = async (waiters: number, grants: number): Promise<Queued> => {
  const clock = new Stepping()
  const limiter = await Effect.runPromise(
    Effect.provideService(AdaptiveRateLimiter.make({ minFillRate: 100 }), Clock.Clock, clock)
  )
  await Effect.runPromise(Effect.provideService(limiter.update(true), Clock.Clock, clock))
  const acquire = Effect.provideService(Effect.orDie(limiter.acquire), Clock.Clock, clock)
  let granted = 0
  let timersAtOnce = 0
  let micros = 0
  while (granted < grants) {
    let left = waiters
    for (let n = 0; n < waiters; n++) {
      Effect.runFork(acquire).addObserver(() => {
        left--
      })
    }
    await turn()
    const before = process.cpuUsage()
    while (left > 0) {
      timersAtOnce = Math.max(timersAtOnce, clock.pending)
      clock.advance()
      await turn()
    }
    const { system, user } = process.cpuUsage(before)
    micros += system + user
    granted += waiters
  }
  return { waiters, grants: granted, fires: clock.fired, timersAtOnce, nanosPerGrant: micros * 1000 / granted }
}

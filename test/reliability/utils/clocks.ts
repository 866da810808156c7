import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"

/** The clock with its wall time and monotonic time shifted by these milliseconds. Sleeps last as long as before. */
export class SteppedClock {
  wallMillis = 0
  monotonicMillis = 0
  readonly clock: Clock.Clock
  constructor(base: Clock.Clock) {
    const wall = () => base.currentTimeMillisUnsafe() + this.wallMillis
    const nanos = () => base.currentTimeNanosUnsafe() + BigInt(this.wallMillis) * 1_000_000n
    const monotonic = () => base.monotonicTimeNanosUnsafe() + BigInt(this.monotonicMillis) * 1_000_000n
    this.clock = {
      ...base,
      currentTimeMillisUnsafe: wall,
      currentTimeNanosUnsafe: nanos,
      monotonicTimeNanosUnsafe: monotonic,
      currentTimeMillis: Effect.sync(wall),
      currentTimeNanos: Effect.sync(nanos),
      monotonicTimeNanos: Effect.sync(monotonic)
    }
  }

  readonly provide = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.provideService(self, Clock.Clock, this.clock)
}

export const steppedClock: Effect.Effect<SteppedClock> = Effect.clockWith((clock) =>
  Effect.sync(() => new SteppedClock(clock))
)

/** The clock, which counts who sleeps now, who ever did, how many slept at the same time, and readings of the monotonic time. */
export class CountedClock {
  asleep = 0
  sleeps = 0
  most = 0
  readings = 0
  readonly clock: Clock.Clock
  constructor(base: Clock.Clock) {
    this.clock = {
      ...base,
      monotonicTimeNanosUnsafe: () => {
        this.readings++
        return base.monotonicTimeNanosUnsafe()
      },
      sleep: (duration: Duration.Duration) =>
        Effect.acquireUseRelease(
          Effect.sync(() => {
            this.sleeps++
            this.most = Math.max(this.most, ++this.asleep)
          }),
          () => base.sleep(duration),
          () => Effect.sync(() => this.asleep--)
        )
    }
  }

  readonly provide = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.provideService(self, Clock.Clock, this.clock)
}

export const countedClock: Effect.Effect<CountedClock> = Effect.clockWith((clock) =>
  Effect.sync(() => new CountedClock(clock))
)

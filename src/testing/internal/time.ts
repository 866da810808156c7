import * as Cause from "effect/Cause"
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"

/**
 * The same clock, showing an earlier time.
 *
 * @internal
 */
export const earlier = (clock: Clock.Clock, millis: number): Clock.Clock => ({
  ...clock,
  sleep: (duration) => clock.sleep(duration),
  currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() - millis,
  currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe() - BigInt(millis) * 1_000_000n,
  monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe() - BigInt(millis) * 1_000_000n
})

/**
 * How time passes for the subject of a test.
 *
 * @internal
 */
export interface Time {
  readonly elapse: (millis: number) => Effect.Effect<void>
  /** Whether time is that of a `TestClock`. */
  readonly isVirtual: boolean
}

/**
 * Time moved by a `TestClock`.
 *
 * @internal
 */
export const virtual: Time = { elapse: (millis) => TestClock.adjust(millis), isVirtual: true }

/**
 * Interrupts a fiber. A defect of it is not lost.
 *
 * @internal
 */
export const stopped = (fiber: Fiber.Fiber<unknown, unknown>): Effect.Effect<void> =>
  Effect.gen(function*() {
    yield* Fiber.interrupt(fiber)
    const exit = yield* Fiber.await(fiber)
    if (Exit.isFailure(exit) && Cause.hasDies(exit.cause)) return yield* Effect.die(Cause.squash(exit.cause))
  })

/**
 * Lets fibers run as far as they can without time passing.
 *
 * @internal
 */
export const turns: Effect.Effect<void> = Effect.gen(function*() {
  for (let turn = 0; turn < 20; turn++) yield* Effect.yieldNow
})

/**
 * Lets time pass until the condition holds, up to the maximum. Returns whether it does.
 *
 * @internal
 */
export const until = (time: Time, atMostMillis: number, condition: () => boolean): Effect.Effect<boolean> =>
  Effect.gen(function*() {
    for (let waited = 0;;) {
      yield* turns
      if (condition()) return true
      if (waited >= atMostMillis) return false
      const step = Math.max(1, Math.floor(waited / 10))
      yield* time.elapse(step)
      waited += step
    }
  })

/**
 * Runs an effect as far as it comes in this time, and returns how it ended, if it has. Else it is interrupted.
 *
 * @internal
 */
export const ran = <A, E>(
  self: Effect.Effect<A, E>,
  atMostMillis: number,
  time: Time = virtual
): Effect.Effect<Exit.Exit<A, E> | undefined> =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(self)
    yield* until(time, atMostMillis, () => fiber.pollUnsafe() !== undefined)
    const exit = fiber.pollUnsafe()
    yield* stopped(fiber)
    return exit
  })

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { AnyFiber } from "./shared.ts"

/** The clock of the fiber. */
export const clockOf = (fiber: AnyFiber): Clock.Clock => fiber.getRef(Clock.Clock)

/** Milliseconds of the monotonic clock, unaffected by changes to the wall clock. */
export const monotonicMillis = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

/** Epoch milliseconds of the clock of the current fiber; NaN outside of a fiber. */
export const wallMillis = (): number => {
  const fiber = Fiber.getCurrent()
  return fiber === undefined ? Number.NaN : clockOf(fiber).currentTimeMillisUnsafe()
}

/** What follows from the clock. */
export const withClock = <A>(f: (clock: Clock.Clock) => A): Effect.Effect<A> =>
  Effect.withFiber((fiber) => Effect.sync(() => f(clockOf(fiber))))

/** What follows from the time, in milliseconds of the monotonic clock. */
export const withMillis = <A>(f: (nowMillis: number) => A): Effect.Effect<A> =>
  withClock((clock) => f(monotonicMillis(clock)))

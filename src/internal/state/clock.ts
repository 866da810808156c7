import * as Clock from "effect/Clock"
import type * as Fiber from "effect/Fiber"

/** A fiber of any effect. */
export type CallFiber = Fiber.Fiber<unknown, unknown>

/** The clock of the fiber. */
export const clockOf = (fiber: CallFiber): Clock.Clock => fiber.getRef(Clock.Clock)

/** Milliseconds of the monotonic clock, which no step of the wall clock moves. */
export const monotonicMillis = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

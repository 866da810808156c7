import * as Clock from "effect/Clock"
import type { AnyFiber } from "../shared.ts"

/** The clock of the fiber. */
export const clockOf = (fiber: AnyFiber): Clock.Clock => fiber.getRef(Clock.Clock)

/** Milliseconds of the monotonic clock, which no step of the wall clock moves. */
export const monotonicMillis = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"

/** How an effect ends, in a fiber for which this much time passes. */
export const inTime = <A, E, R>(self: Effect.Effect<A, E, R>, time: Duration.Input = "1 hour") =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(self)
    yield* TestClock.adjust(time)
    return yield* Fiber.await(fiber)
  })

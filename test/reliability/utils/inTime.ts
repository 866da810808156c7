import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"

/**
 * How a call ends in a fiber of its own, given all the time that it needs; `undefined` if it does not. `checked` runs when it
 * has ended, or had all that time, before it is interrupted.
 */
export const inTime = <A, E, R>(call: Effect.Effect<A, E, R>, checked: Effect.Effect<void> = Effect.void) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(call, { startImmediately: true })
    for (let turn = 0; turn < 50 && fiber.pollUnsafe() === undefined; turn++) {
      yield* TestClock.adjust("10 minutes")
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
    }
    const exit = fiber.pollUnsafe()
    yield* checked
    yield* Fiber.interrupt(fiber)
    return exit
  })

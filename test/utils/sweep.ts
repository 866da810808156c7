import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Scheduler from "effect/Scheduler"
import * as TestClock from "effect/testing/TestClock"

/**
 * Runs a program again and again, interrupting it at its first step, at its second, and so on to its last, and calls
 * `check` after each run. Time passes in steps of `tick` until the program ends. Returns how many steps there were.
 */
export const sweep = <A, E, R, R2>(
  program: Effect.Effect<A, E, R>,
  check: (step: number) => Effect.Effect<void, never, R2>,
  tick = 100
): Effect.Effect<number, never, R | R2> =>
  Effect.gen(function*() {
    const base = yield* Scheduler.Scheduler
    for (let at = 1;; at++) {
      let seen = 0
      const scheduler: Scheduler.Scheduler = {
        executionMode: base.executionMode,
        makeDispatcher: () => base.makeDispatcher(),
        shouldYield: (fiber) => {
          if (++seen === at) fiber.interruptUnsafe()
          return base.shouldYield(fiber)
        }
      }
      const fiber = yield* Effect.forkChild(program.pipe(Effect.provideService(Scheduler.Scheduler, scheduler)))
      while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust(tick)
      yield* Fiber.await(fiber)
      yield* check(at)
      if (seen < at) return at - 1
    }
  })

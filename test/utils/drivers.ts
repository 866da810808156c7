import { type awsStandard, withRetry } from "effect-retry"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"

type Standard = typeof awsStandard

/** The two ways to run a policy. */
export const drivers = [
  {
    form: "Effect.retry",
    run: <A, E, R>(self: Effect.Effect<A, E, R>, policy: Standard) => Effect.retry(self, policy)
  },
  { form: "withRetry", run: <A, E, R>(self: Effect.Effect<A, E, R>, policy: Standard) => withRetry(self, policy) }
] as const

/** How an effect ends, in a fiber for which this much time passes. */
export const inTime = <A, E, R>(
  self: Effect.Effect<A, E, R>,
  time: Parameters<typeof TestClock.adjust>[0] = "10 minutes"
) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(self)
    yield* TestClock.adjust(time)
    return yield* Fiber.await(fiber)
  })

import { type RetryDecision, RetryObserver, type RetryPolicy, type RetryQuota, withRetry } from "effect-retry"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"

export type Policy = RetryPolicy.RetryPolicy<unknown, never, RetryQuota.RetryQuota>

/** The two ways to retry an effect. */
export const drivers = [
  {
    form: "Effect.retry",
    run: <A, E>(self: Effect.Effect<A, E>, policy: Policy) => Effect.retry(self, policy)
  },
  { form: "withRetry", run: <A, E>(self: Effect.Effect<A, E>, policy: Policy) => withRetry(self, policy) }
] as const

/** What an observer sees of the end, and when the effect ended. */
export const ending = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const stops: Array<RetryDecision.Stop> = []
    const observer: RetryObserver.RetryObserver = { onStop: (stopped) => void stops.push(stopped) }
    const observed = Effect.provideService(Effect.exit(self), RetryObserver.CurrentObserver, observer)
    const fiber = yield* Effect.forkChild(Effect.zip(observed, Clock.currentTimeMillis))
    yield* TestClock.adjust("1 hour")
    const [exit, atMillis] = yield* Fiber.join(fiber)
    return {
      exit,
      atMillis,
      stops: stops.map(({ attempts, delayMillis, reason }) => ({ attempts, delayMillis, reason }))
    }
  })

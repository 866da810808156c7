/**
 * Testing with time travel: minutes of back-off in no time, to the millisecond.
 *
 * All waiting is done with Effect's `Clock`, all chance comes from its `Random`. `TestClock` replaces the one, a constant
 * or a seed the other; the program under test is the one that runs in production.
 */
import { Clock, Effect, Fiber, Random } from "effect"
import { awsStandard, RetryInfo, RetryQuota, withRetry } from "effect-retry"
import { TestClock } from "effect/testing"

class Unavailable extends RetryInfo.TaggedError("Unavailable", { fault: "server" }) {}

/** Chance without surprises: full jitter makes half the ceiling of it. */
const half: Random.Random = { nextDoubleUnsafe: () => 0.5, nextIntUnsafe: () => 0 }

/** The body of an `it.effect` test: when does a call send that never succeeds, and what is left of its quota? */
export const timesOfSends = Effect.gen(function*() {
  const times: Array<number> = []
  const call = Effect.gen(function*() {
    times.push(yield* Clock.currentTimeMillis)
    return yield* new Unavailable()
  })
  const fiber = yield* call.pipe(withRetry(awsStandard), Effect.exit, Effect.forkChild)
  yield* TestClock.adjust("1499 millis")
  const before = times.length
  yield* TestClock.adjust("1 millis")
  yield* Fiber.join(fiber)
  return { before, times, balance: yield* RetryQuota.balance }
}).pipe(
  Effect.provideService(Random.Random, half),
  Effect.provide(RetryQuota.layer())
)

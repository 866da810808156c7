/**
 * Testing with time travel: minutes of backoff in no time, exact to the
 * millisecond.
 *
 * All waiting uses Effect's `Clock`, all randomness its `Random`.
 * `TestClock` replaces the former, a constant or a seed the latter; the
 * program under test is the one that runs in production.
 */
import { Clock, Effect, Fiber, Random } from "effect"
import {
  awsStandard,
  RetryInfo,
  RetryQuota,
  withRetry
} from "effect-retry"
import { TestClock } from "effect/testing"
import { main, print } from "./support/program.ts"

class Unavailable
  extends RetryInfo.TaggedError("Unavailable", { fault: "server" })
{}

/** Predictable randomness: full jitter halves the ceiling. */
const half: Random.Random = {
  nextDoubleUnsafe: () => 0.5,
  nextIntUnsafe: () => 0
}

/**
 * The body of an `it.effect` test: when does a call that never succeeds
 * send, and what is left of its quota?
 */
export const timesOfSends = Effect.gen(function*() {
  const times: Array<number> = []
  const call = Effect.gen(function*() {
    times.push(yield* Clock.currentTimeMillis)
    return yield* new Unavailable()
  })
  const fiber = yield* call.pipe(
    withRetry(awsStandard),
    Effect.exit,
    Effect.forkChild
  )
  yield* TestClock.adjust("1499 millis")
  const before = times.length
  yield* TestClock.adjust("1 millis")
  yield* Fiber.join(fiber)
  return { before, times, balance: yield* RetryQuota.balance }
}).pipe(
  Effect.provideService(Random.Random, half),
  Effect.provide(RetryQuota.layer())
)

main(
  import.meta.url,
  Effect.provide(timesOfSends, TestClock.layer()).pipe(
    Effect.flatMap(({ balance, times }) =>
      print(
        `sent at ${times.join(", ")} ms; ${balance} tokens are left`
      )
    )
  )
)

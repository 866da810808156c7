import { assert, describe, it } from "@effect/vitest"
import { DefaultRateLimiter } from "@smithy/core/retry"
import { AdaptiveRateLimiter } from "effect-retry"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as TestClock from "effect/testing/TestClock"
import { budget } from "../utils/budget.ts"
import { agree, lockstep, nothing, ways } from "../utils/lockstep.ts"

/** Runs the SDK's limiter on our clock: it reads `Date.now`, and waits with its `setTimeoutFn`. */
const at = <A>(now: number, f: () => A): A => {
  const { now: real } = Date
  Date.now = () => now
  try {
    return f()
  } finally {
    Date.now = real
  }
}

describe("differential: AdaptiveRateLimiter and DefaultRateLimiter of @smithy/core", () => {
  const timers = DefaultRateLimiter as unknown as { setTimeoutFn: (resolve: () => void, delay: number) => void }
  const { setTimeoutFn } = timers

  for (const seed of Array.from({ length: budget(40, 6) }, (_, i) => i)) {
    it.effect(`seed ${seed}: the same rates, capacities and waits over 200 steps`, () =>
      Effect.gen(function*() {
        // The SDK treats a time of 0 as none.
        yield* TestClock.adjust("1000 seconds")
        const start = yield* Clock.currentTimeMillis
        const ours = yield* AdaptiveRateLimiter.make()
        const theirs = at(start, () => new DefaultRateLimiter())
        let waits = 0
        for (let i = 0; i < 200; i++) {
          yield* TestClock.adjust(Math.floor((yield* Random.next) * (yield* Random.next) * 900))
          const now = yield* Clock.currentTimeMillis
          const throttled = (yield* Random.next) < 0.15
          yield* ours.update(throttled)
          at(now, () => theirs.updateClientSendingRate({ errorType: throttled ? "THROTTLING" : "TRANSIENT" }))
          agree(yield* ours.state, theirs, { nowMillis: now }, `step ${i}`)
          if ((yield* Random.next) < 0.5) continue
          const { capacity, fillRate } = yield* ours.state
          const asked: Array<number> = []
          timers.setTimeoutFn = (_resolve, delay) => void asked.push(delay)
          at(now, () => void theirs.getSendToken())
          timers.setTimeoutFn = setTimeoutFn
          const [delay] = asked
          if (delay === undefined) {
            yield* ours.acquire
            agree(yield* ours.state, theirs, { nowMillis: now }, `step ${i}, sent`)
          } else {
            // Theirs waits forever now, and has taken nothing.
            waits++
            assert.closeTo((1 - capacity) / fillRate * 1000, delay, 1e-2 + delay * 1e-5, `step ${i}: the wait`)
          }
        }
        assert.isAbove(waits, 3)
      }).pipe(Random.withSeed(seed)))
  }
})

describe("differential: a limiter behind each driver, and AdaptiveRetryStrategy of @smithy/core", () => {
  // Failures of all classes follow each other in calls that overlap. What differs, and is allowed for: the SDK rounds
  // rates to 8 decimals, so one may wait a millisecond more for the same token.
  for (const [name, way] of Object.entries(ways)) {
    it(`${name}: the same decisions, waits, rates and quota after each step`, async () => {
      const seen = nothing()
      for (let seed = 0; seed < budget(40); seed++) await lockstep(way, seed, 500, seen)
      assert.strictEqual(seen.steps, budget(20_000))
      assert.isBelow(seen.lowest, 14, "the quota runs dry")
      const { arrivals, mixed, waits } = seen
      const least = Math.min(mixed, waits, ...Object.values(arrivals))
      assert.isAbove(least, budget(150), JSON.stringify(seen))
    })
  }
})

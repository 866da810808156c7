import { assert, describe, it } from "@effect/vitest"
import { DefaultRateLimiter } from "@smithy/core/retry"
import { AdaptiveRateLimiter } from "effect-retry"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as TestClock from "effect/testing/TestClock"
import { budget } from "../utils/budget.ts"

/** The state of the SDK's limiter, which its types keep private. */
interface Theirs {
  readonly enabled: boolean
  readonly fillRate: number
  readonly measuredTxRate: number
  readonly lastMaxRate: number
  readonly maxCapacity: number
  readonly availableTokens: number
}

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

const agree = (ours: AdaptiveRateLimiter.State, theirs: Theirs, step: string) => {
  const pairs = [
    ["fillRate", ours.fillRate, theirs.fillRate],
    ["measuredTxRate", ours.measuredTxRate, theirs.measuredTxRate],
    ["lastMaxRate", ours.lastMaxRate, theirs.lastMaxRate],
    ["maxCapacity", ours.maxCapacity, theirs.maxCapacity],
    ["capacity", theirs.enabled ? ours.capacity : 0, theirs.enabled ? theirs.availableTokens : 0]
  ] as const
  assert.strictEqual(ours.enabled, theirs.enabled, step)
  for (const [name, our, their] of pairs) {
    // The SDK rounds rates and windows to 8 decimals; a cubic curve amplifies that.
    assert.closeTo(our, their, 1e-5 * Math.max(1, Math.abs(their)), `${step}: ${name}`)
  }
}

describe("differential: AdaptiveRateLimiter and DefaultRateLimiter of @smithy/core", () => {
  const setTimeoutFn = DefaultRateLimiter as unknown as { setTimeoutFn: (resolve: () => void, delay: number) => void }

  for (const seed of Array.from({ length: budget(40, 12) }, (_, i) => i)) {
    it.effect(`seed ${seed}: the same rates, capacities and waits over 200 steps`, () =>
      Effect.gen(function*() {
        // The SDK treats a time of 0 as none.
        yield* TestClock.adjust("1000 seconds")
        const start = yield* Clock.currentTimeMillis
        const ours = yield* AdaptiveRateLimiter.make()
        const theirs = at(start, () => new DefaultRateLimiter())
        const state = theirs as unknown as Theirs
        let waits = 0
        for (let i = 0; i < 200; i++) {
          yield* TestClock.adjust(Math.floor((yield* Random.next) * (yield* Random.next) * 900))
          const now = yield* Clock.currentTimeMillis
          const throttled = (yield* Random.next) < 0.15
          yield* ours.update(throttled)
          at(now, () => theirs.updateClientSendingRate({ errorType: throttled ? "THROTTLING" : "TRANSIENT" }))
          agree(yield* ours.state, state, `step ${i}`)
          if ((yield* Random.next) < 0.5) continue
          const { capacity, fillRate } = yield* ours.state
          const asked: Array<number> = []
          setTimeoutFn.setTimeoutFn = (_resolve, delay) => void asked.push(delay)
          at(now, () => void theirs.getSendToken())
          const [delay] = asked
          if (delay === undefined) {
            yield* ours.acquire
            agree(yield* ours.state, state, `step ${i}, sent`)
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

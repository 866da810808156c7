/** What is known of Effect's own loops, and what a policy does where it is not: it pays first, and proves later. */
import { assert, describe, it } from "@effect/vitest"
import { attempt, awsStandard, Backoff, RetryObserver, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Schedule from "effect/Schedule"
import * as TestClock from "effect/testing/TestClock"
import { afterEach, beforeEach } from "vitest"
import { forget, isSupported, tried } from "../../src/engine/frames.ts"
import { scripted, Transient } from "../utils/call.ts"
import { inTime } from "../utils/inTime.ts"

const failing = Effect.fail(new Transient())

it("the loop of the version of Effect that is installed is as expected", () => {
  const restore = forget()
  try {
    assert.isTrue(isSupported())
    assert.include(tried, "4.1.0")
  } finally {
    restore()
  }
})

it("a runtime without the text of functions is seen to be one", () => {
  const restore = forget()
  const { toString } = Function.prototype
  Function.prototype.toString = () => "function () { [bytecode] }"
  try {
    assert.isFalse(isSupported())
  } finally {
    Function.prototype.toString = toString
    restore()
  }
})

describe("where the loop is not as expected", () => {
  let restore: () => void
  beforeEach(() => {
    restore = forget(true)
  })
  afterEach(() => restore())

  const small = Backoff.fixed(100).pipe(RetryPolicy.maxAttempts(3), RetryPolicy.quotaGated({ cost: 5 }))
  const balance = RetryQuota.balance

  it.effect("an outage is as expensive as everywhere: 1,100 sends of 1,000 calls, then no retry", () =>
    Effect.gen(function*() {
      let sends = 0
      const call = Effect.suspend(() => (sends++, failing))
      yield* inTime(Effect.forEach(Array.from({ length: 1000 }), () => Effect.exit(Effect.retry(call, awsStandard))))
      assert.deepStrictEqual([sends, yield* balance], [1100, 0])
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("successes refill a dry quota, the last one when its fiber ends", () =>
    Effect.gen(function*() {
      yield* RetryQuota.RetryQuota.use((quota) => quota.reserve(500))
      const good = Effect.forEach(Array.from({ length: 10 }), () => Effect.retry(Effect.void, small), { discard: true })
      yield* good
      assert.strictEqual(yield* balance, 9)
      yield* inTime(good)
      assert.strictEqual(yield* balance, 19)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("a retry that succeeds gives back its tokens when its fiber retries again, or ends", () =>
    Effect.gen(function*() {
      const seen: Array<number> = []
      const once = () => Effect.retry(scripted([new Transient()]).effect, small)
      const job = Effect.gen(function*() {
        yield* once()
        seen.push(yield* balance)
        yield* Effect.retry(Effect.void, small)
        seen.push(yield* balance)
        yield* once()
      })
      yield* inTime(job)
      assert.deepStrictEqual([...seen, yield* balance], [95, 100, 100])
    }).pipe(Effect.provide(RetryQuota.layer({ capacity: 100 }))))

  it.effect("a retry that fails is spent, one that is interrupted in its delay is not", () =>
    Effect.gen(function*() {
      yield* inTime(Effect.exit(Effect.retry(failing, small)))
      assert.strictEqual(yield* balance, 90)
      yield* inTime(Effect.timeoutOption(Effect.retry(failing, small), 50))
      assert.strictEqual(yield* balance, 90)
    }).pipe(Effect.provide(RetryQuota.layer({ capacity: 100 }))))

  it.effect("each retry and the stop are notified once", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const observer = RetryObserver.layer({
        onRetry: ({ cost }) => void seen.push(`r${cost}`),
        onStop: ({ reason }) => void seen.push(reason)
      })
      yield* inTime(Effect.provide(Effect.exit(Effect.retry(failing, small)), observer))
      assert.deepStrictEqual(seen, ["r5", "r5", "max-attempts"])
    }).pipe(Effect.provide(RetryQuota.layer({ capacity: 100 }))))

  it.effect("no gate is asked by Effect.retry, but by withRetry and by attempt", () =>
    Effect.gen(function*() {
      const inFlight = (run: (call: Effect.Effect<void>) => Effect.Effect<unknown, unknown, RetryQuota.RetryQuota>) =>
        Effect.gen(function*() {
          let [now, most] = [0, 0]
          const call = Effect.suspend(() => {
            most = Math.max(most, ++now)
            return Effect.ensuring(Effect.sleep(10), Effect.sync(() => now--))
          })
          yield* inTime(Effect.all(Array.from({ length: 10 }, () => run(call)), { concurrency: "unbounded" }))
          return most
        })
      assert.strictEqual(yield* inFlight((call) => Effect.retry(call, small)), 10)
      assert.strictEqual(yield* inFlight((call) => Effect.retry(attempt(call), small)), 2)
      assert.strictEqual(yield* inFlight((call) => withRetry(call, small)), 2)
    }).pipe(
      Effect.provide([
        RetryQuota.layer({ capacity: 100 }),
        ConcurrencyLimiter.layer({ rule: ConcurrencyLimiter.fixed(2) })
      ])
    ))

  it.effect("one warning has the cure, whatever is retried after it", () =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      const logger = Logger.layer([Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))])
      const calls = Effect.forEach([1, 2, 3], () => Effect.exit(Effect.retry(failing, small)))
      yield* inTime(Effect.provide(calls, logger))
      assert.strictEqual(lines.length, 1)
      assert.match(lines[0]!, /Use withRetry/)
    }).pipe(Effect.provide(RetryQuota.layer({ capacity: 100 }))))

  it.effect("withRetry and joins of the toolkit are exact as ever", () =>
    Effect.gen(function*() {
      const both = RetryPolicy.max([small, Schedule.recurs(1)])
      yield* inTime(Effect.exit(withRetry(failing, both)))
      assert.strictEqual(yield* balance, 95)
      yield* inTime(Effect.andThen(Effect.exit(Effect.retry(failing, both)), TestClock.adjust(0)))
      assert.strictEqual(yield* balance, 90)
    }).pipe(Effect.provide(RetryQuota.layer({ capacity: 100 }))))
})

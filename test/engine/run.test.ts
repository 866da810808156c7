/** What a call costs, when it ends and why, by both ways to retry. */
import { assert, describe, it } from "@effect/vitest"
import { AdaptiveRateLimiter, Backoff, RetryPolicy, RetryQuota } from "effect-retry"
import type { RetryQuotaStore } from "effect-retry"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { steppedClock } from "../reliability/utils/clocks.ts"
import { scripted, Terminal, Throttled, Transient } from "../utils/call.ts"
import { drivers, ending } from "../utils/ending.ts"

const fixed = Backoff.fixed(100)
const gated = (options: RetryPolicy.QuotaOptions) => fixed.pipe(RetryPolicy.quotaGated(options))
const waiting = (options: RetryQuota.Options) =>
  Effect.provide(RetryQuota.layer({ capacity: 10, initial: 0, refillPerSecond: 1, onExceeded: "wait", ...options }))

describe.each(drivers)("$form", ({ run }) => {
  it.effect("takes the plain cost for an error that the classifier does not know", () =>
    Effect.gen(function*() {
      const policy = gated({ cost: 3, timeoutCost: 7, throttlingCost: 8 }).pipe(RetryPolicy.maxAttempts(2))
      yield* ending(run(Effect.fail("no facts"), policy))
      assert.strictEqual(yield* RetryQuota.balance, 497)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("says of a send that the quota refused that it is not retryable, though the policy retries all errors", () =>
    Effect.gen(function*() {
      const { stops } = yield* ending(run(Effect.fail(new RetryQuota.QuotaExhausted({ cost: 1, balance: 0 })), fixed))
      assert.deepStrictEqual(stops, [{ attempts: 1, delayMillis: 0, reason: "vetoed" }])
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("does not retry a send that another copy of the library refused", () =>
    Effect.gen(function*() {
      const refused = { [Symbol.for("effect-retry/Refused")]: true }
      const { stops } = yield* ending(run(Effect.fail(refused), fixed))
      assert.deepStrictEqual(stops.map(({ reason }) => reason), ["vetoed"])
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("refuses a cost above the capacity for the capacity, not for the deadline, where it could wait", () =>
    Effect.gen(function*() {
      const policy = gated({ cost: 11 }).pipe(RetryPolicy.deadline("1 minute"))
      const { atMillis, stops } = yield* ending(run(Effect.fail(new Transient()), policy))
      assert.deepStrictEqual(stops, [{ attempts: 1, delayMillis: 0, reason: "quota-exhausted" }])
      assert.strictEqual(atMillis, 0)
    }).pipe(waiting({})))

  it.effect("waits for a cost that is the whole capacity", () =>
    Effect.gen(function*() {
      const { atMillis, exit } = yield* ending(run(scripted([new Transient()]).effect, gated({ cost: 10 })))
      assert.deepStrictEqual([exit, atMillis], [Exit.succeed("ok"), 10_100])
    }).pipe(waiting({})))

  it.effect("waits for no token where the delays have ended", () =>
    Effect.gen(function*() {
      const policy = RetryPolicy.fromDelay(() => undefined).pipe(RetryPolicy.quotaGated({ cost: 5 }))
      const { atMillis, stops } = yield* ending(run(Effect.fail(new Transient()), policy))
      assert.deepStrictEqual(stops, [{ attempts: 1, delayMillis: 0, reason: "schedule" }])
      assert.strictEqual(atMillis, 0)
    }).pipe(waiting({})))

  for (const [limit, ended] of [[1100, 0], [1101, 1100]] as const) {
    it.effect(`with a deadline of ${limit} ms, a token due in 1000 ms and a delay of 100 ms, ends after ${ended} ms`, () =>
      Effect.gen(function*() {
        const call = scripted([new Transient()])
        const policy = gated({ cost: 1 }).pipe(RetryPolicy.deadline(limit))
        const { atMillis, stops } = yield* ending(run(call.effect, policy))
        assert.strictEqual(atMillis, ended)
        assert.deepStrictEqual(stops.map(({ reason }) => reason), ended === 0 ? ["deadline"] : [])
      }).pipe(waiting({})))
  }

  it.effect("holds a long poll back for no time where its delay would pass the deadline", () =>
    Effect.gen(function*() {
      const policy = gated({ cost: 1, longPolling: true }).pipe(RetryPolicy.deadline(50))
      const { atMillis, stops } = yield* ending(run(Effect.fail(new Transient()), policy))
      assert.deepStrictEqual(stops, [{ attempts: 1, delayMillis: 0, reason: "quota-exhausted" }])
      assert.strictEqual(atMillis, 0)
    }).pipe(Effect.provide(RetryQuota.layer({ initial: 0 }))))

  it.effect("dies of what a delay function throws, also for a long poll that the quota refuses", () =>
    Effect.gen(function*() {
      const thrown = new Error("mine")
      const policy = RetryPolicy.fromDelay(() => {
        throw thrown
      }).pipe(RetryPolicy.quotaGated({ cost: 1, longPolling: true }))
      const { exit } = yield* ending(run(Effect.fail(new Transient()), policy))
      assert.isTrue(Exit.isFailure(exit) && Cause.squash(exit.cause) === thrown)
    }).pipe(Effect.provide(RetryQuota.layer({ initial: 0 }))))

  it.effect("counts a retry whose wait for a send token ended at the deadline as no attempt", () =>
    Effect.gen(function*() {
      const limiter = yield* AdaptiveRateLimiter.make({ minFillRate: 0.01 })
      yield* limiter.update(true)
      yield* limiter.acquire.pipe(Effect.timeoutOption("1 hour"), Effect.forkChild)
      yield* TestClock.adjust("1 hour")
      const call = { sends: 0 }
      const failing = Effect.suspend(() => {
        call.sends++
        return Effect.fail(new Transient())
      })
      const policy = gated({ cost: 5 }).pipe(RetryPolicy.deadline("1 minute"))
      const limited = Effect.provideService(run(failing, policy), AdaptiveRateLimiter.AdaptiveRateLimiter, limiter)
      const { stops } = yield* ending(limited)
      assert.strictEqual(call.sends, 1)
      assert.deepStrictEqual(stops, [{ attempts: 1, delayMillis: 0, reason: "deadline" }])
      assert.strictEqual(yield* RetryQuota.balance, 500)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("books a success with the limiter as no throttle, a throttle as one", () =>
    Effect.gen(function*() {
      const limiter = yield* AdaptiveRateLimiter.make()
      const limited = Effect.provideService(AdaptiveRateLimiter.AdaptiveRateLimiter, limiter)
      yield* ending(limited(run(scripted([new Terminal()]).effect, fixed)))
      assert.isFalse((yield* limiter.state).enabled)
      yield* limited(Effect.ignore(run(Effect.fail(new Throttled({})), RetryPolicy.maxAttempts(1)(fixed))))
      assert.isTrue((yield* limiter.state).enabled)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("sends no retry after the deadline, also where a limiter holds nothing back yet", () =>
    Effect.gen(function*() {
      const stepped = yield* steppedClock
      const limiter = yield* AdaptiveRateLimiter.make()
      const call = scripted([new Transient()])
      const late = Effect.andThen(Effect.sleep(50), Effect.sync(() => stepped.monotonicMillis += 60_000))
      const limited = Effect.provideService(
        run(call.effect, fixed.pipe(RetryPolicy.deadline("1 minute"))),
        AdaptiveRateLimiter.AdaptiveRateLimiter,
        limiter
      )
      yield* Effect.forkChild(late)
      const { stops } = yield* ending(stepped.provide(limited))
      assert.strictEqual(call.sends, 1)
      assert.deepStrictEqual(stops, [{ attempts: 1, delayMillis: 0, reason: "deadline" }])
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("interrupted in the wait of a first attempt for its send token, fails with the interruption alone", () =>
    Effect.gen(function*() {
      const limiter = yield* AdaptiveRateLimiter.make({ minFillRate: 0.01 })
      yield* limiter.update(true)
      const call = scripted([])
      const limited = Effect.provideService(
        run(call.effect, fixed),
        AdaptiveRateLimiter.AdaptiveRateLimiter,
        limiter
      )
      const exhausted = yield* Effect.forkChild(Effect.forever(limiter.acquire))
      yield* TestClock.adjust(0)
      const fiber = yield* Effect.forkChild(limited)
      yield* TestClock.adjust(0)
      yield* Fiber.interrupt(fiber)
      const exit = yield* Fiber.await(fiber)
      yield* Fiber.interrupt(exhausted)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
      assert.strictEqual(call.sends, 0)
    }).pipe(Effect.provide(RetryQuota.layer())))
})

describe("a quota that answers late, or not", () => {
  const minute = RetryPolicy.deadline("1 minute")
  /** A quota that has to be asked or waited for, with a delayed answer. */
  const answering = (
    options: { readonly remote: boolean; readonly grants: boolean; readonly millis: number; readonly word?: "refused" }
  ) =>
    Effect.gen(function*() {
      const stepped = yield* steppedClock
      const quota = yield* RetryQuota.make({ capacity: 10, refillPerSecond: 1e-6 })
      const onExceeded = options.remote ? "stop" : "wait"
      const store: RetryQuotaStore.RetryQuotaStore = {
        capacity: 10,
        successIncrement: 1,
        firstAttemptCost: 0,
        onExceeded,
        reserve: (cost, clock) => (_patience, hold) =>
          Effect.sync(() => {
            stepped.monotonicMillis += options.millis
            const answer = options.grants ? quota.store.reserve(cost, clock) : undefined
            if (typeof answer === "object") hold(answer)
            return options.word
          }),
        deposit: (tokens, clock) => quota.store.deposit(tokens, clock),
        balance: (clock) => quota.store.balance(clock)
      }
      return { quota, stepped, service: RetryQuota.fromStore(store) }
    })
  const cases = [
    ["says no", { remote: true, grants: false, millis: 0 }, gated({ cost: 5 }), "quota-exhausted"],
    ["says no", { remote: false, grants: false, millis: 0 }, gated({ cost: 5 }), "quota-exhausted"],
    ["says no in time", { remote: true, grants: false, millis: 1000 }, minute(gated({ cost: 5 })), "quota-exhausted"],
    ["says no in time", { remote: false, grants: false, millis: 1000 }, minute(gated({ cost: 5 })), "deadline"],
    [
      "refuses for good",
      { remote: false, grants: false, millis: 1000, word: "refused" },
      minute(gated({ cost: 5 })),
      "quota-exhausted"
    ],
    [
      "refuses for good",
      { remote: true, grants: false, millis: 1000, word: "refused" },
      minute(gated({ cost: 5 })),
      "quota-exhausted"
    ],
    ["says no too late", { remote: true, grants: false, millis: 60_000 }, minute(gated({ cost: 5 })), "deadline"],
    ["grants too late", { remote: true, grants: true, millis: 60_000 }, minute(gated({ cost: 5 })), "deadline"],
    ["grants too late", { remote: false, grants: true, millis: 60_000 }, minute(gated({ cost: 5 })), "deadline"]
  ] as const
  for (const { form, run } of drivers) {
    for (const [answer, options, policy, reason] of cases) {
      const name = `${options.remote ? "asked" : "waited for"}, ${answer}: ends for "${reason}", costs nothing: ${form}`
      it.effect(name, () =>
        Effect.gen(function*() {
          const { quota, service, stepped } = yield* answering(options)
          const call = Effect.provideService(run(Effect.fail(new Transient()), policy), RetryQuota.RetryQuota, service)
          const { stops } = yield* ending(stepped.provide(call))
          assert.deepStrictEqual(stops.map((stopped) => stopped.reason), [reason])
          assert.closeTo(yield* quota.balance, 10, 1e-3)
        }))
    }
  }
})

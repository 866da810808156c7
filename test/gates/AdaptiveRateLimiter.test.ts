import { assert, describe, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  awsAdaptive,
  Backoff,
  InvalidOption,
  RetryInfo,
  RetryPolicy,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import { TestLimiter } from "effect-retry/testing"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import { Terminal, Throttled } from "../utils/call.ts"
import { sweep } from "../utils/sweep.ts"
import { unmarked } from "../utils/unmarked.ts"

unmarked()

type Limiter = AdaptiveRateLimiter.Service

/** A limiter that one throttle has just enabled, at the least fill rate of one token in two seconds. */
const throttled = (options?: AdaptiveRateLimiter.Options) =>
  Effect.tap(AdaptiveRateLimiter.make(options), (limiter) => limiter.update(true))

/** A state that limits nothing. */
const unlimited: AdaptiveRateLimiter.State = {
  enabled: false,
  capacity: 0,
  maxCapacity: 1,
  fillRate: 0.5,
  measuredTxRate: 0,
  lastMaxRate: 0,
  sinceThrottle: 0,
  timeWindow: 0,
  waiting: 0
}

/** When each of the calls of `acquire` was granted, in milliseconds. */
const grants = (limiter: Limiter, count: number) =>
  Effect.gen(function*() {
    const times: Array<number> = []
    for (let i = 0; i < count; i++) {
      yield* Effect.forkChild(
        Effect.andThen(limiter.acquire, Effect.map(Clock.currentTimeMillis, (now) => times.push(now)))
      )
      yield* Effect.yieldNow
    }
    return times
  })

describe("AdaptiveRateLimiter", () => {
  it.effect("a measurement lasts at least a nanosecond, however short it should be", () =>
    Effect.gen(function*() {
      const rates = yield* Effect.forEach([1e-6, 5e-324, 1e-312], (measurementBucketDuration) =>
        Effect.gen(function*() {
          const limiter = yield* AdaptiveRateLimiter.make({ measurementBucketDuration })
          for (const _ of [1, 2, 3]) {
            yield* TestClock.adjust("1 second")
            yield* limiter.update(true)
          }
          return (yield* limiter.state).measuredTxRate
        }))
      assert.isAbove(rates[0]!, 0.5)
      for (const rate of rates) assert.closeTo(rate, rates[0]!, 1e-6)
    }))

  describe("restore", () => {
    const busy = (limiter: Limiter) =>
      Effect.gen(function*() {
        for (let response = 0; response < 40; response++) {
          yield* TestClock.adjust("100 millis")
          yield* limiter.update(response === 30)
        }
      })

    it.effect("continues as the limiter would have whose state was saved, whatever the clock shows", () =>
      Effect.gen(function*() {
        const first = yield* AdaptiveRateLimiter.make()
        yield* busy(first)
        const before = yield* first.state
        assert.isTrue(before.enabled)
        assert.closeTo(before.sinceThrottle, 0.9, 1e-9)
        const next = yield* AdaptiveRateLimiter.make({ restore: JSON.parse(JSON.stringify(before)) })
        assert.deepStrictEqual(yield* next.state, before)
        const rates = (limiter: Limiter) =>
          Effect.gen(function*() {
            yield* limiter.update(false)
            return [(yield* limiter.state).fillRate, yield* Effect.map(grants(limiter, 3), ({ length }) => length)]
          })
        assert.deepStrictEqual(yield* rates(next), yield* rates(first))
      }))

    it.effect("holds sends back from the first on, until other constants let them", () =>
      Effect.gen(function*() {
        const saved = yield* (yield* throttled()).state
        yield* TestClock.adjust("1 hour")
        const next = yield* AdaptiveRateLimiter.make({ restore: saved })
        const start = yield* Clock.currentTimeMillis
        const times = yield* grants(next, 2)
        yield* TestClock.adjust("4 seconds")
        assert.deepStrictEqual(times, [start + 2000, start + 4000])
        const quick = yield* AdaptiveRateLimiter.make({ minFillRate: 10, restore: saved })
        assert.strictEqual((yield* quick.state).fillRate, 10)
      }))

    it("rejects a saved state that cannot be, naming the field", () => {
      const { enabled, ...state } = { ...unlimited, enabled: true }
      for (
        const [restore, field, value] of [
          [{ ...state, enabled: "yes" }, "restore.enabled", "yes"],
          [state, "restore.enabled", undefined],
          [{ ...state, enabled, fillRate: null }, "restore.fillRate", null],
          [{ ...state, enabled, measuredTxRate: -1 }, "restore.measuredTxRate", -1],
          [{ ...state, enabled, lastMaxRate: Infinity }, "restore.lastMaxRate", Infinity],
          [{ ...state, enabled, capacity: "1" }, "restore.capacity", "1"],
          [{ ...state, enabled, sinceThrottle: -1 }, "restore.sinceThrottle", -1],
          [{ ...state, enabled, tokens: 1 }, "option", "restore.tokens"],
          [null, "restore", null]
        ] as const
      ) {
        try {
          AdaptiveRateLimiter.layer({ restore: restore as never })
          assert.fail("accepted")
        } catch (error) {
          assert.instanceOf(error, InvalidOption)
          const { constructorName, field: found, value: given } = error as InvalidOption
          assert.deepStrictEqual([constructorName, found, given], ["AdaptiveRateLimiter.make", field, value])
        }
      }
    })
  })

  it.effect("lets everything through until the first throttle", () =>
    Effect.gen(function*() {
      const limiter = yield* AdaptiveRateLimiter.make()
      for (let i = 0; i < 1000; i++) yield* limiter.acquire
      yield* limiter.update(false)
      yield* limiter.acquire
      assert.isFalse((yield* limiter.state).enabled)
    }))

  it.effect("holds sends back at the least rate after a throttle, to the millisecond", () =>
    Effect.gen(function*() {
      const limiter = yield* throttled()
      const times = yield* grants(limiter, 3)
      yield* TestClock.adjust("1999 millis")
      assert.deepStrictEqual(times, [])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(times, [2000])
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(times, [2000, 4000, 6000])
    }))

  it.effect("serves first come, first served", () =>
    Effect.gen(function*() {
      const limiter = yield* throttled()
      const served: Array<number> = []
      for (let i = 0; i < 20; i++) {
        yield* Effect.forkChild(Effect.andThen(limiter.acquire, Effect.sync(() => served.push(i))))
        yield* TestClock.adjust("100 millis")
      }
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(served, Array.from({ length: 20 }, (_, i) => i))
    }))

  it.effect("has one timer for any number of waiters, and fires it once per grant", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.clockWith(Effect.succeed)
      const count = { sleeping: 0, most: 0, fired: 0 }
      const counting: Clock.Clock = Object.assign(Object.create(clock), {
        sleep: (duration: Duration.Duration) =>
          Effect.suspend(() => {
            count.most = Math.max(count.most, ++count.sleeping)
            return Effect.ensuring(
              Effect.tap(clock.sleep(duration), () => Effect.sync(() => count.fired++)),
              Effect.sync(() => count.sleeping--)
            )
          })
      })
      const limiter = yield* throttled()
      const times = yield* Effect.provideService(grants(limiter, 200), Clock.Clock, counting)
      yield* TestClock.adjust("400 seconds")
      assert.strictEqual(times.length, 200)
      assert.deepStrictEqual(count, { sleeping: 0, most: 1, fired: 200 })
    }))

  it.effect("wakes the head early when the rate rises", () =>
    Effect.gen(function*() {
      const limiter = yield* throttled()
      const times = yield* grants(limiter, 1)
      for (let i = 0; i < 100; i++) {
        yield* TestClock.adjust("20 millis")
        yield* limiter.update(false)
      }
      assert.strictEqual(times.length, 1)
      assert.isBelow(times[0]!, 1900)
    }))

  it.effect("does not change when it is read", () =>
    Effect.gen(function*() {
      const [watched, unwatched] = [yield* AdaptiveRateLimiter.make(), yield* AdaptiveRateLimiter.make()]
      const steps: ReadonlyArray<boolean> = [false, false, true, false, true, false, false]
      for (const throttles of steps) {
        yield* watched.state
        yield* TestClock.adjust("300 millis")
        yield* watched.state
        yield* Effect.all([watched.update(throttles), unwatched.update(throttles)])
      }
      assert.deepStrictEqual(yield* watched.state, yield* unwatched.state)
    }))

  it.effect("keeps its rate when the wall clock steps back", () =>
    Effect.gen(function*() {
      yield* TestClock.adjust("1 hour")
      const limiter = yield* throttled()
      const fiber = yield* Effect.forkChild(limiter.acquire)
      yield* TestClock.adjust(0)
      yield* TestClock.setTime(0)
      const before = yield* limiter.state
      yield* limiter.update(false)
      assert.isAtLeast((yield* limiter.state).capacity, before.capacity)
      yield* Fiber.interrupt(fiber)
      const late = yield* Effect.forkChild(limiter.acquire)
      yield* TestClock.adjust("2 seconds")
      assert.isDefined(late.pollUnsafe())
    }))

  describe("an interrupted waiter", () => {
    it.effect("leaves no trace: twenty of them cost the next nothing", () =>
      Effect.gen(function*() {
        const limiter = yield* throttled()
        const fibers = yield* Effect.forEach(
          Array.from({ length: 20 }),
          () => Effect.forkChild(limiter.acquire)
        )
        yield* TestClock.adjust("50 millis")
        assert.strictEqual((yield* limiter.state).waiting, 20)
        yield* Fiber.interruptAll(fibers)
        assert.strictEqual((yield* limiter.state).waiting, 0)
        const times = yield* grants(limiter, 1)
        yield* TestClock.adjust("1950 millis")
        assert.deepStrictEqual(times, [2000])
      }))

    it.effect("lets those behind move up, from the head and from the middle", () =>
      Effect.gen(function*() {
        const limiter = yield* throttled()
        const served: Array<number> = []
        const fibers: Array<Fiber.Fiber<unknown, unknown>> = []
        for (let i = 0; i < 5; i++) {
          fibers.push(yield* Effect.forkChild(Effect.andThen(limiter.acquire, Effect.sync(() => served.push(i)))))
          yield* TestClock.adjust(0)
        }
        yield* Fiber.interrupt(fibers[0]!)
        yield* Fiber.interrupt(fibers[2]!)
        yield* TestClock.adjust("2 seconds")
        assert.deepStrictEqual(served, [1])
        yield* TestClock.adjust("4 seconds")
        assert.deepStrictEqual(served, [1, 3, 4])
      }))

    for (const tokens of [3, 0.999_999]) {
      it.effect(`has sent or gives its token back, at any step it is interrupted (of ${tokens} tokens)`, () =>
        Effect.gen(function*() {
          const fillRate = 1e-6
          const options = { fillRate, minFillRate: fillRate, minCapacity: 3, tokens }
          let limiter: Limiter | undefined = undefined
          let sent = 0
          let start = 0
          const program = Effect.gen(function*() {
            start = yield* Clock.currentTimeMillis
            const made = limiter = yield* AdaptiveRateLimiter.AdaptiveRateLimiter
            const send = { attempt: 1, nowMillis: 0, context: yield* Effect.context<never>(), hold: () => sent++ }
            yield* Effect.suspend(() => made.gate!.enter(send) ?? Effect.void)
          }).pipe(Effect.provide(Layer.fresh(TestLimiter.layer(options))))
          const outcomes = new Set<number>()
          yield* sweep(program, () =>
            Effect.gen(function*() {
              if (limiter === undefined) return
              const { capacity, waiting } = yield* limiter.state
              const flowedIn = fillRate * ((yield* Clock.currentTimeMillis) - start) / 1000
              assert.strictEqual(waiting, 0)
              assert.closeTo(capacity + sent, tokens + flowedIn, 1e-9)
              outcomes.add(sent)
              limiter = undefined
              sent = 0
            }))
          assert.deepStrictEqual([...outcomes].sort(), [0, 1])
        }))
    }
  })

  describe("a full queue", () => {
    it.effect("refuses with a typed error and loses no waiter", () =>
      Effect.gen(function*() {
        const limiter = yield* throttled({ maxWaiters: 2 })
        const times = yield* grants(limiter, 2)
        yield* TestClock.adjust(0)
        const error = yield* Effect.flip(limiter.acquire)
        assert.strictEqual(error._tag, "RateLimitExceeded")
        assert.strictEqual(error.reason, "queue-full")
        assert.strictEqual(Duration.toMillis(error.retryAfter), 4000)
        assert.strictEqual(error.message, "too many sends are waiting for a token")
        yield* TestClock.adjust("4 seconds")
        assert.deepStrictEqual(times, [2000, 4000])
      }))
  })

  describe("onExceeded: fail", () => {
    it.effect("fails immediately, says when to try again, and takes nothing", () =>
      Effect.gen(function*() {
        const limiter = yield* throttled({ onExceeded: "fail" })
        yield* TestClock.adjust("500 millis")
        const error = yield* Effect.flip(limiter.acquire)
        assert.strictEqual(error.reason, "no-token")
        assert.strictEqual(Duration.toMillis(error.retryAfter), 1500)
        assert.strictEqual(error.message, "no send token for another 1s 500ms")
        assert.propertyVal(Option.getOrThrow(RetryInfo.fromError(error)), "safety", "No")
        yield* TestClock.adjust("1500 millis")
        yield* limiter.acquire
      }))

    it.effect("is not retried, costs no quota, and is no attempt", () =>
      Effect.gen(function*() {
        yield* AdaptiveRateLimiter.update(true)
        let sends = 0
        const call = Effect.sync(() => ++sends)
        for (const program of [withRetry(call, awsAdaptive), Effect.retry(call, awsAdaptive)]) {
          const error = yield* Effect.flip(program)
          assert.strictEqual(error._tag, "RateLimitExceeded")
        }
        assert.strictEqual(sends, 0)
        assert.strictEqual(yield* RetryQuota.balance, 500)
      }).pipe(Effect.provide(Layer.merge(RetryQuota.layer(), AdaptiveRateLimiter.layer({ onExceeded: "fail" })))))

    it.effect("gives back what a refused retry held, and is retried by no policy", () =>
      Effect.gen(function*() {
        const eager = Backoff.fixed(0).pipe(
          RetryPolicy.quotaGated({ cost: 5 }),
          RetryPolicy.requires(AdaptiveRateLimiter.AdaptiveRateLimiter)
        )
        const ends = ["Throttled", "RateLimitExceeded"]
        for (const run of [withRetry, (self: Effect.Effect<never, Throttled>) => Effect.retry(self, eager)]) {
          let sends = 0
          const call = Effect.suspend(() => {
            sends++
            return Effect.fail(new Throttled({}))
          })
          const error = yield* Effect.flip(run(call, eager))
          // The first call enables the limiter, which refuses its retry, then the first send of the second.
          assert.strictEqual(error._tag, ends.shift())
          assert.strictEqual(sends, ends.length)
          assert.strictEqual(yield* RetryQuota.balance, 500)
        }
      }).pipe(Effect.provide(Layer.merge(RetryQuota.layer(), AdaptiveRateLimiter.layer({ onExceeded: "fail" })))))
  })

  describe("an attempt", () => {
    const layer = Layer.merge(RetryQuota.layer(), AdaptiveRateLimiter.layer())

    it.effect("is measured, and waits for a token before every send once throttled", () =>
      Effect.gen(function*() {
        const times: Array<number> = []
        const call = Effect.flatMap(Clock.currentTimeMillis, (now) => {
          times.push(now)
          return times.length < 3 ? Effect.fail(new Throttled({})) : Effect.succeed("ok")
        })
        const fiber = yield* Effect.forkChild(withRetry(call, awsAdaptive))
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(yield* Fiber.join(fiber), "ok")
        assert.strictEqual(times.length, 3)
        assert.isAtLeast(times[1]!, 2000)
        assert.isAtLeast(times[2]!, times[1]! + 2000)
      }).pipe(Effect.provide(layer)))

    for (
      const [form, stepsOut, run] of [
        ["Effect.retry", 1, <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.retry(self, awsAdaptive)],
        ["withRetry", 1, <A, E, R>(self: Effect.Effect<A, E, R>) => withRetry(self, awsAdaptive)],
        [
          "RetryStrategy.run",
          5,
          <A, E, R>(self: Effect.Effect<A, E, R>) =>
            Effect.provide(RetryStrategy.run(self), RetryStrategy.layer(awsAdaptive))
        ]
      ] as const
    ) {
      it.effect(`${form}: interrupted at any step, leaves no waiter and loses no token`, () =>
        Effect.gen(function*() {
          const quota = yield* RetryQuota.make()
          const steady = { fillRate: 1e-6, minFillRate: 1e-6, minCapacity: 1000, tokens: 1000 }
          const limiter = yield* Effect.provide(AdaptiveRateLimiter.AdaptiveRateLimiter, TestLimiter.layer(steady))
          let tokens = 1000
          let sends = 0
          const call = Effect.suspend(() => {
            sends++
            return Effect.fail(new Throttled({}))
          })
          const program = run(call).pipe(
            Effect.provideService(RetryQuota.RetryQuota, quota),
            Effect.provideService(AdaptiveRateLimiter.AdaptiveRateLimiter, limiter)
          )
          const inBetween: Array<number> = []
          const steps = yield* sweep(program, (step) =>
            Effect.gen(function*() {
              const { capacity, waiting } = yield* limiter.state
              assert.strictEqual(waiting, 0)
              const left = Math.round(tokens - capacity)
              assert.closeTo(tokens - left, capacity, 0.01)
              // A send takes its first step a few scheduler steps after it leaves.
              assert.include([sends, sends + 1], left)
              if (left > sends) inBetween.push(step)
              tokens = capacity
              const spent = 500 - (yield* quota.balance)
              const retried = Math.max(0, sends - 1)
              assert.isTrue(spent === retried * 5 || spent === (retried + 1) * 5)
              yield* Effect.orDie(quota.deposit(500))
              sends = 0
            }))
          assert.isAbove(steps, 40)
          assert.isAtMost(inBetween.length, 3 * stepsOut)
        }))
    }

    it.effect("that times out while it waits for its token was never sent, and costs nothing", () =>
      Effect.gen(function*() {
        const call = Effect.fail(new Throttled({}))
        const policy = Backoff.fixed(0).pipe(
          RetryPolicy.maxAttempts(4),
          RetryPolicy.quotaGated({ cost: 10 }),
          RetryPolicy.requires(AdaptiveRateLimiter.AdaptiveRateLimiter)
        )
        const limited = Effect.timeout(Effect.retry(call, policy), "500 millis")
        const fiber = yield* Effect.forkChild(Effect.exit(limited))
        yield* TestClock.adjust("400 millis")
        assert.strictEqual(yield* RetryQuota.balance, 490)
        yield* TestClock.adjust("100 millis")
        yield* Fiber.join(fiber)
        assert.strictEqual(yield* RetryQuota.balance, 500)
      }).pipe(Effect.provide(Layer.fresh(layer))))

    it.effect("that ends by defect or interruption is booked neither as success nor as throttle", () =>
      Effect.gen(function*() {
        const before = yield* AdaptiveRateLimiter.state
        yield* Effect.exit(withRetry(Effect.die("boom"), awsAdaptive))
        yield* Effect.exit(withRetry(Effect.interrupt, awsAdaptive))
        const fiber = yield* Effect.forkChild(withRetry(Effect.never, awsAdaptive))
        yield* TestClock.adjust("2 seconds")
        yield* Fiber.interrupt(fiber)
        const after = yield* AdaptiveRateLimiter.state
        assert.deepStrictEqual(after, before)
        yield* Effect.exit(withRetry(Effect.fail(new Terminal()), awsAdaptive))
        assert.isAbove((yield* AdaptiveRateLimiter.state).measuredTxRate, 0)
      }).pipe(Effect.provide(Layer.fresh(layer))))
  })

  it.effect("layerUnlimited holds nothing back, whatever the responses", () =>
    Effect.gen(function*() {
      for (let i = 0; i < 10; i++) yield* AdaptiveRateLimiter.update(true)
      yield* AdaptiveRateLimiter.acquire
      assert.isFalse((yield* AdaptiveRateLimiter.state).enabled)
      let sends = 0
      const call = Effect.suspend(() => ++sends < 3 ? Effect.fail(new Throttled({})) : Effect.succeed(sends))
      const quick = awsAdaptive.pipe(RetryPolicy.capped("1 millis"))
      const fiber = yield* Effect.forkChild(withRetry(call, quick))
      yield* TestClock.adjust("2 millis")
      assert.strictEqual(yield* Fiber.join(fiber), 3)
    }).pipe(Effect.provide(Layer.merge(RetryQuota.layer(), AdaptiveRateLimiter.layerUnlimited))))

  describe("layerConfig", () => {
    const secondOf = (env: Record<string, string>) =>
      Effect.gen(function*() {
        yield* AdaptiveRateLimiter.update(true)
        yield* AdaptiveRateLimiter.acquire
        return yield* AdaptiveRateLimiter.state
      }).pipe(
        Effect.provide(AdaptiveRateLimiter.layerConfig({
          minFillRate: Config.Finite("MIN_FILL_RATE"),
          measurementBucketDuration: Config.Duration("BUCKET").pipe(Config.withDefault(Duration.millis(500))),
          onExceeded: Config.succeed("fail")
        })),
        Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(env))
      )

    it.effect("takes its options from configuration", () =>
      Effect.gen(function*() {
        const refused = yield* Effect.flip(secondOf({ MIN_FILL_RATE: "4" }))
        assert.instanceOf(refused, AdaptiveRateLimiter.RateLimitExceeded)
        assert.deepStrictEqual([refused.reason, Duration.toMillis(refused.retryAfter)], ["no-token", 250])
      }))

    it.effect("fails with a typed error for an impossible option, and for one that cannot be read", () =>
      Effect.gen(function*() {
        const impossible = yield* Effect.flip(secondOf({ MIN_FILL_RATE: "0" }))
        assert.instanceOf(impossible, InvalidOption)
        assert.deepStrictEqual(
          [impossible.constructorName, impossible.field, impossible.value],
          ["AdaptiveRateLimiter.make", "minFillRate", 0]
        )
        assert.instanceOf(yield* Effect.flip(secondOf({ MIN_FILL_RATE: "1", BUCKET: "soon" })), Config.ConfigError)
      }))
  })

  describe("refuses", () => {
    const bad: ReadonlyArray<readonly [string, AdaptiveRateLimiter.Options]> = [
      ["beta", { beta: NaN }],
      ["beta", { beta: 0 }],
      ["beta", { beta: 1 }],
      ["minFillRate", { minFillRate: 0 }],
      ["minFillRate", { minFillRate: Infinity }],
      ["minCapacity", { minCapacity: 0.5 }],
      ["minCapacity", { minCapacity: Infinity }],
      ["scaleConstant", { scaleConstant: 0 }],
      ["smoothing", { smoothing: 0 }],
      ["smoothing", { smoothing: 1.1 }],
      ["smoothing", { smoothing: NaN }],
      ["measurementBucketDuration", { measurementBucketDuration: 0 }],
      ["measurementBucketDuration", { measurementBucketDuration: NaN }],
      ["maxWaiters", { maxWaiters: -1 }],
      ["maxWaiters", { maxWaiters: 1.5 }],
      ["onExceeded", { onExceeded: "perhaps" as "wait" }]
    ]
    for (const [field, options] of bad) {
      it(`${field} of ${String(Object.values(options)[0])}`, () => {
        for (const make of [AdaptiveRateLimiter.make, AdaptiveRateLimiter.layer]) {
          try {
            make(options)
            assert.fail("made it")
          } catch (error) {
            assert.instanceOf(error, InvalidOption)
            assert.strictEqual(error.field, field)
          }
        }
      })
    }
  })
})

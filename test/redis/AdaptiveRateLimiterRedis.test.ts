import { assert, describe, it } from "@effect/vitest"
import { RetryPolicy, withRetry } from "effect-retry"
import * as AdaptiveRateLimiter from "effect-retry/AdaptiveRateLimiter"
import * as AdaptiveRateLimiterRedis from "effect-retry/AdaptiveRateLimiterRedis"
import * as Kit from "effect-retry/testing"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redis from "effect/persistence/Redis"
import * as TestClock from "effect/testing/TestClock"
import { FakeLimiter } from "../utils/fakeLimiter.ts"
import { sweep } from "../utils/sweep.ts"

const once = RetryPolicy.fromDelay(() => undefined)

const limiterOver = (fake: FakeLimiter, own: Partial<AdaptiveRateLimiterRedis.Options> = {}) =>
  AdaptiveRateLimiterRedis.make({ name: "orders", ...own }).pipe(Effect.provideService(Redis.Redis, fake.service))

const through = <A, E>(limiter: AdaptiveRateLimiter.Service, send: Effect.Effect<A, E>) =>
  withRetry(send, once).pipe(Effect.provideService(AdaptiveRateLimiter.AdaptiveRateLimiter, limiter))

const throttled = Effect.fail(new Kit.Throttled({}))

const lines = () => {
  const seen: Array<string> = []
  const logger = Logger.make(({ logLevel, message }) => void seen.push(`${logLevel}: ${[message].flat().join(" ")}`))
  return { seen, layer: Logger.layer([logger]) }
}

describe("a shared limiter", () => {
  it.effect("asks nothing before the first send, and a few times a second while sends are made", () =>
    Effect.gen(function*() {
      const fake = new FakeLimiter()
      const limiter = yield* limiterOver(fake)
      yield* TestClock.adjust("10 seconds")
      assert.lengthOf(fake.told, 0)
      for (let send = 0; send < 1000; send++) {
        yield* through(limiter, Effect.void)
        yield* TestClock.adjust(2)
      }
      assert.isAtLeast(fake.told.length, 8)
      assert.isAtMost(fake.told.length, 18)
      assert.approximately(fake.told.at(-1)!.rate, 500, 50)
      yield* TestClock.adjust("10 seconds")
      assert.isAtMost(fake.told.length, 19)
    }).pipe(Effect.scoped))

  it.effect("a throttle is reported immediately, once for all sends made before its cut", () =>
    Effect.gen(function*() {
      const fake = new FakeLimiter()
      const limiter = yield* limiterOver(fake)
      yield* Effect.forEach(
        [1, 2, 3, 4],
        () => Effect.forkChild(Effect.exit(through(limiter, Effect.andThen(Effect.sleep(10), throttled))))
      )
      const late = yield* Effect.forkChild(
        Effect.exit(through(limiter, Effect.andThen(Effect.sleep("1 second"), throttled))),
        { startImmediately: true }
      )
      yield* TestClock.adjust(10)
      const reports = () => fake.told.filter(({ isThrottled }) => isThrottled).length
      assert.deepStrictEqual([reports(), fake.cuts], [1, 1])
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(late)
      assert.deepStrictEqual([reports(), fake.cuts], [1, 1])
    }).pipe(Effect.scoped))

  it.effect("follows its share of the fleet's curve, from another's cut on", () =>
    Effect.gen(function*() {
      const fake = new FakeLimiter()
      const limiter = yield* limiterOver(fake)
      yield* fake.cut(100)
      yield* through(limiter, Effect.void)
      yield* TestClock.adjust(1)
      const rate = Effect.map(limiter.state, ({ fillRate }) => fillRate)
      // Cut to 70, of which this process has a tenth.
      assert.approximately(yield* rate, 7, 0.01)
      const { lastMaxRate, timeWindow } = yield* limiter.state
      assert.approximately(lastMaxRate, 10, 1e-9)
      assert.approximately(timeWindow, Math.cbrt(100 * 0.3 / 0.4), 1e-9)
      yield* TestClock.adjust(timeWindow * 1000)
      yield* through(limiter, Effect.void)
      yield* TestClock.adjust(250)
      assert.approximately(yield* rate, 10, 0.01)
      fake.share = 0.5
      yield* through(limiter, Effect.void)
      yield* TestClock.adjust(250)
      assert.approximately(yield* rate, 50, 0.1)
    }).pipe(Effect.scoped))

  it.effect("a new process has its part immediately, whatever it has measured", () =>
    Effect.gen(function*() {
      const fake = new FakeLimiter()
      const limiter = yield* limiterOver(fake)
      yield* fake.cut(100)
      let sent = 0
      const sending = Effect.forever(through(limiter, Effect.sync(() => sent++)).pipe(Effect.andThen(Effect.sleep(1))))
      const fiber = yield* Effect.forkChild(sending, { startImmediately: true })
      yield* TestClock.adjust("300 millis")
      sent = 0
      for (let step = 0; step < 100; step++) yield* TestClock.adjust("20 millis")
      assert.isAtLeast(sent, 14)
      assert.isAtMost(sent, 22)
      assert.isTrue(fake.told.at(-1)!.isHungry)
      yield* Fiber.interrupt(fiber)
    }).pipe(Effect.scoped))

  for (const mood of ["silent", "refusing", "garbage"] as const) {
    it.effect(`while Redis is ${mood}, the process goes on from its part by its own throttles; one line says so`, () => {
      const { layer, seen } = lines()
      return Effect.gen(function*() {
        const fake = new FakeLimiter()
        const limiter = yield* limiterOver(fake)
        yield* fake.cut(100)
        yield* through(limiter, Effect.void)
        yield* TestClock.adjust(1)
        fake.mood = mood
        for (let send = 0; send < 40; send++) {
          yield* Effect.forkChild(through(limiter, Effect.void), { startImmediately: true })
          yield* TestClock.adjust(200)
        }
        const before = (yield* limiter.state).fillRate
        const failing = yield* Effect.forkChild(Effect.exit(through(limiter, throttled)), { startImmediately: true })
        yield* TestClock.adjust("5 seconds")
        assert.isDefined(failing.pollUnsafe())
        assert.isBelow((yield* limiter.state).fillRate, 0.9 * before)
        assert.strictEqual(fake.cuts, 1)
        fake.mood = "fine"
        yield* TestClock.adjust("31 seconds")
        yield* through(limiter, Effect.void).pipe(Effect.timeoutOption("1 millis"))
        yield* TestClock.adjust("5 seconds")
        assert.strictEqual(seen.length, 2)
        assert.match(seen[0]!, /^Warn: rate limiter "orders": Redis does not answer, this process decides alone/)
        assert.match(seen[1]!, /^Info: rate limiter "orders": Redis answers again/)
      }).pipe(Effect.scoped, Effect.provide(layer))
    })
  }

  for (const mood of ["silent", "refusing", "garbage"] as const) {
    it.effect(`a throttle reported to a Redis that is ${mood} limits this process, once the timeout is over`, () =>
      Effect.gen(function*() {
        const fake = new FakeLimiter()
        const limiter = yield* limiterOver(fake)
        for (let send = 0; send < 200; send++) {
          yield* through(limiter, Effect.void)
          yield* TestClock.adjust(10)
        }
        fake.mood = mood
        const { measuredTxRate } = yield* limiter.state
        yield* Effect.exit(through(limiter, throttled))
        yield* TestClock.adjust(50)
        const { enabled, fillRate, lastMaxRate } = yield* limiter.state
        assert.isTrue(enabled)
        assert.isTrue(fake.told.at(-1)!.isThrottled)
        assert.approximately(lastMaxRate, measuredTxRate, measuredTxRate / 20)
        assert.approximately(fillRate, 0.7 * lastMaxRate, 1)
      }).pipe(Effect.scoped))
  }

  it.effect("reports the cuts that it knows to Redis, so that a Redis that has lost them has them again", () =>
    Effect.gen(function*() {
      const fake = new FakeLimiter()
      const limiter = yield* limiterOver(fake)
      yield* fake.cut(100)
      yield* through(limiter, Effect.void)
      yield* TestClock.adjust("1 second")
      yield* through(limiter, Effect.void)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(fake.told.at(-1)!.cuts, 1)
    }).pipe(Effect.scoped))

  it.effect("whatever interrupts them, calls leave nothing behind: the next one passes in its time", () =>
    Effect.gen(function*() {
      const fake = new FakeLimiter()
      fake.latencyMillis = 5
      const limiter = yield* limiterOver(fake)
      yield* fake.cut(100)
      const call = Effect.exit(through(limiter, Effect.andThen(Effect.sleep(5), throttled)))
      const steps = yield* sweep(Effect.all([call, call, call], { concurrency: 3 }), () =>
        Effect.gen(function*() {
          assert.strictEqual((yield* limiter.state).waiting, 0)
          const next = yield* Effect.forkChild(through(limiter, Effect.void), { startImmediately: true })
          yield* TestClock.adjust("1 minute")
          assert.isDefined(next.pollUnsafe())
        }))
      assert.isAtLeast(steps, 10)
    }).pipe(Effect.scoped))

  it.effect("its layers: of Redis, of configuration, and one that connects by itself", () =>
    Effect.gen(function*() {
      const fake = new FakeLimiter()
      const redis = Layer.succeed(Redis.Redis, fake.service)
      const layers = [
        Layer.provide(AdaptiveRateLimiterRedis.layer({ name: "orders" }), redis),
        Layer.provide(AdaptiveRateLimiterRedis.layerConfig({ name: Config.succeed("orders") }), redis),
        AdaptiveRateLimiterRedis.layerConnecting({ name: "orders" }, redis)
      ]
      for (const layer of layers) {
        fake.told.length = 0
        const context = yield* Layer.build(layer)
        yield* through(Context.get(context, AdaptiveRateLimiter.AdaptiveRateLimiter), Effect.void)
        yield* TestClock.adjust("1 second")
        assert.lengthOf(fake.told, 1)
      }
    }).pipe(Effect.scoped))

  const bad: ReadonlyArray<[Partial<AdaptiveRateLimiterRedis.Options>, field: string]> = [
    [{ name: "" }, "name"],
    [{ prefix: 3 as never }, "prefix"],
    [{ timeout: 0 }, "timeout"],
    [{ lookInterval: 0 }, "lookInterval"],
    [{ idleTimeToLive: -1 }, "idleTimeToLive"],
    [{ fallbackTime: Infinity }, "fallbackTime"],
    [{ beta: 1 }, "beta"]
  ]
  for (const [own, field] of bad) {
    it(`refuses ${JSON.stringify(own)}`, () => {
      assert.throws(
        () => AdaptiveRateLimiterRedis.make({ name: "orders", ...own }),
        new RegExp(`AdaptiveRateLimiterRedis.make: ${field} must be`)
      )
    })
  }
})

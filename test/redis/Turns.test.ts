import { assert, describe, it } from "@effect/vitest"
import { RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as AdaptiveRateLimiter from "effect-retry/AdaptiveRateLimiter"
import * as AdaptiveRateLimiterRedis from "effect-retry/AdaptiveRateLimiterRedis"
import * as CoolDown from "effect-retry/CoolDown"
import * as CoolDownRedis from "effect-retry/CoolDownRedis"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as Kit from "effect-retry/testing"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Redis from "effect/persistence/Redis"
import * as TestClock from "effect/testing/TestClock"
import { FakeShared } from "../utils/fakeShared.ts"

const once = RetryPolicy.fromDelay(() => undefined)

/** What one process shares for a resource: a quota that is not full, a limiter, a cool-down. */
const resource = (redis: FakeShared, name: string, initial = 0) =>
  Effect.gen(function*() {
    const quota = yield* RetryQuotaRedis.make({ name, capacity: 1_000_000, initial })
    const limiter = yield* AdaptiveRateLimiterRedis.make({ name })
    const coolDown = yield* CoolDownRedis.make({ name })
    return Context.make(RetryQuota.RetryQuota, quota).pipe(
      Context.add(AdaptiveRateLimiter.AdaptiveRateLimiter, limiter),
      Context.add(CoolDown.CoolDown, coolDown)
    )
  }).pipe(Effect.provideService(Redis.Redis, redis.service))

const names = ["orders", "payments", "search"]

/** Each resource gets a call every 5 ms, for this long. */
const traffic = (resources: ReadonlyArray<Context.Context<any>>, millis: number) =>
  Effect.gen(function*() {
    for (let passed = 0; passed < millis; passed += 5) {
      for (const context of resources) yield* Effect.provideContext(withRetry(Effect.void, once), context)
      yield* TestClock.adjust(5)
    }
  })

describe("all that a process shares over one connection", () => {
  it.effect("of three resources, with quota, limiter and cool-down each, goes in one message per interval, not nine", () =>
    Effect.gen(function*() {
      const redis = new FakeShared()
      const resources = yield* Effect.forEach(names, (name) => resource(redis, name))
      yield* traffic(resources, 1000)
      const [commands, messages] = [redis.commands, redis.messages]
      yield* traffic(resources, 10_000)
      // A quota that is not full sends 100 ms after a deposit, the others go along; now and then a look is due before.
      assert.isAtMost(redis.messages - messages, 120)
      assert.isAtLeast(redis.messages - messages, 90)
      // Three quotas ten times a second each, six looks about five times a second each.
      assert.isAtLeast(redis.commands - commands, 500)
      assert.isAtMost(redis.commands - commands, 800)
    }).pipe(Effect.scoped))

  it.effect("looks alone meet again, turn by turn, and stay apart at random from other processes", () =>
    Effect.gen(function*() {
      const redis = new FakeShared()
      const full = 1_000_000
      const resources = yield* Effect.forEach(names, (name) => resource(redis, name, full))
      yield* traffic(resources, 20_000)
      const gaps = redis.atMillis.slice(1).map((at, index) => at - redis.atMillis[index]!)
      const most = 20_000 / 125
      assert.isAtMost(redis.messages, most)
      assert.isAbove(new Set(gaps).size, 5)
      assert.isAtLeast(redis.commands / redis.messages, 5.5)
    }).pipe(Effect.scoped))

  it.effect("an urgent exchange waits for nothing, and takes along only what is nearly due", () =>
    Effect.gen(function*() {
      const redis = new FakeShared()
      const [first, ...others] = yield* Effect.forEach(names, (name) => resource(redis, name, 1_000_000))
      yield* traffic([first!, ...others], 2000)
      const { commands } = redis
      const quota = Context.get(first!, RetryQuota.RetryQuota) as RetryQuota.Service
      yield* Effect.forEach([1, 2, 3], () => quota.reserve(1))
      // What has just been asked is not asked again.
      assert.isAtMost(redis.commands - commands, 3 + 9)
    }).pipe(Effect.scoped))

  it.effect("each fails for itself: what Redis does not answer for one says nothing about the others", () =>
    Effect.gen(function*() {
      const redis = new FakeShared()
      const resources = yield* Effect.forEach(names, (name) => resource(redis, name))
      yield* traffic(resources, 1000)
      redis.limiter("rate-limit:orders").mood = "silent"
      redis.coolDown("cool-down:payments").mood = "refusing"
      yield* traffic(resources, 3000)
      const hint = Effect.fail(new Kit.Throttled({ retryAfter: "10 seconds" }))
      yield* Effect.exit(Effect.provideContext(withRetry(hint, once), resources[0]!))
      yield* traffic(resources.slice(1), 300)
      assert.isDefined(redis.coolDown("cool-down:orders").closed)
      assert.isAbove(redis.quotas.states.get("retry-quota:payments")!.tokens, 700)
    }).pipe(Effect.scoped))
})

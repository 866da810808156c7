import { assert, describe, it } from "@effect/vitest"
import { awsStandard, RetryQuota, withRetry } from "effect-retry"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as Kit from "effect-retry/testing"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redis from "effect/persistence/Redis"
import * as TestClock from "effect/testing/TestClock"
import { steppedClock } from "../reliability/utils/clocks.ts"
import { FakeRedis } from "../utils/fakeRedis.ts"

const key = "retry-quota:test"

const shared = (options?: Partial<RetryQuotaRedis.Options>, redis = new FakeRedis()) =>
  Effect.map(
    Effect.provideService(RetryQuotaRedis.make({ name: "test", ...options }), Redis.Redis, redis.service),
    (quota) => ({ redis, quota })
  )

/** Advances the clock until the effect has ended, and returns how long that took. */
const timed = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const begin = yield* Clock.currentTimeMillis
    const fiber = yield* Effect.forkChild(self)
    yield* TestClock.adjust(0)
    while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust(1)
    return [yield* Fiber.join(fiber), (yield* Clock.currentTimeMillis) - begin] as const
  })

/** A client over our own send, which Effect uses to run scripts. */
const sending = (send: (command: string) => Effect.Effect<unknown, Redis.RedisError>) =>
  Redis.make({
    send: ((command: string) => send(command)) as Redis.Redis["Service"]["send"],
    subscribe: () => Effect.die("no channels"),
    connect: Effect.die("no connections")
  })

const redisError = (message: string) => Effect.suspend(() => new Redis.RedisError({ cause: new Error(message) }))

describe("a Redis that fails", () => {
  const failures = [
    "connect ECONNREFUSED 127.0.0.1:6379",
    "WRONGPASS invalid username-password pair or user is disabled.",
    "NOAUTH Authentication required.",
    "Socket closed unexpectedly"
  ]
  for (const message of failures) {
    it.effect(`"${message}", at the start or later, leaves the decision to the local quota immediately`, () =>
      Effect.gen(function*() {
        for (const isLater of [false, true]) {
          const { quota, redis } = yield* shared({ fallback: { capacity: 20 } })
          if (isLater) yield* timed(quota.reserve(5))
          redis.mood = "refusing"
          redis.error = message
          const [taken, millis] = yield* timed(Effect.forEach([1, 2, 3, 4, 5], () => quota.reserve(5)))
          assert.deepStrictEqual(taken.map(Option.isSome), [true, true, true, true, false])
          assert.isAtMost(millis, 50)
        }
      }))
  }

  it.effect("while Redis is down 10,000 calls queue nothing up for it, and a call is never lost", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared()
      redis.mood = "silent"
      const call = Effect.provideService(withRetry(Effect.void, awsStandard), RetryQuota.RetryQuota, quota)
      yield* timed(Effect.forEach(Array.from({ length: 10_000 }), () => call))
      yield* timed(Effect.forEach(Array.from({ length: 500 }), () => quota.reserve(5), { concurrency: "unbounded" }))
      assert.isAtMost(redis.exchanges, 3)
      const flaky = Kit.outcomes([Kit.transient, Kit.ok("x")])
      yield* quota.deposit(500)
      const retried = Effect.provideService(withRetry(flaky.send, awsStandard), RetryQuota.RetryQuota, quota)
      assert.strictEqual((yield* timed(retried))[0], "x")
    }).pipe(Effect.provide(Kit.fixedRandom(0))))

  it.effect("a program starts without Redis, and shares as soon as there is one", () =>
    Effect.gen(function*() {
      const redis = new FakeRedis()
      let tries = 0
      const connecting = RetryQuotaRedis.layerConnecting(
        { name: "test" },
        Layer.effect(
          Redis.Redis,
          Effect.suspend(() => ++tries < 3 ? Effect.fail("no Redis") : Effect.succeed(redis.service))
        )
      )
      yield* Effect.gen(function*() {
        assert.isTrue(Option.isSome(yield* RetryQuota.reserve(5)))
        assert.strictEqual(redis.exchanges, 0)
        yield* TestClock.adjust("1 minute")
        yield* timed(RetryQuota.reserve(5))
        assert.isAbove(redis.exchanges, 0)
        assert.strictEqual(redis.leases(key), 1)
      }).pipe(Effect.provide(connecting))
    }))

  it.effect("a Redis that is slow is waited for as long as was said, and its late answer changes nothing", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared({ capacity: 100, timeout: "30 millis" })
      yield* timed(quota.reserve(0))
      redis.latencyMillis = 5000
      const [taken, millis] = yield* timed(quota.reserve(10))
      assert.isTrue(Option.isSome(taken))
      assert.isAtMost(millis, 60)
      yield* TestClock.adjust("10 seconds")
      redis.latencyMillis = 0
      yield* TestClock.adjust("1 minute")
      // The lease that came too late is back: the tokens were those of the local quota.
      assert.strictEqual(redis.leases(key), 0)
      assert.strictEqual((yield* timed(quota.balance))[0], 100)
    }))

  it.effect("after NOSCRIPT the script is loaded and run again, once, and after anything else it is not", () =>
    Effect.gen(function*() {
      const commands: Array<string> = []
      const answers: Array<Effect.Effect<unknown, Redis.RedisError>> = []
      const redis = yield* sending((command) => {
        commands.push(command)
        return command === "SCRIPT" ? Effect.succeed("sha") : answers.shift() ?? Effect.succeed(["500", 1, 0])
      })
      const quota = yield* Effect.provideService(RetryQuotaRedis.make({ name: "test" }), Redis.Redis, redis)
      answers.push(redisError("NOSCRIPT No matching script. Please use EVAL."))
      yield* timed(quota.reserve(5))
      assert.deepStrictEqual(commands, ["SCRIPT", "EVALSHA", "SCRIPT", "EVALSHA"])
      commands.length = 0
      answers.push(
        redisError("NOSCRIPT No matching script. Please use EVAL."),
        redisError("NOSCRIPT No matching script. Please use EVAL.")
      )
      yield* timed(quota.reserve(5))
      assert.deepStrictEqual(commands, ["EVALSHA", "SCRIPT", "EVALSHA"])
      const other = yield* Effect.provideService(RetryQuotaRedis.make({ name: "other" }), Redis.Redis, redis)
      commands.length = 0
      answers.push(redisError("ERR Error running script"))
      yield* timed(other.reserve(5))
      assert.deepStrictEqual(commands, ["EVALSHA"])
    }))

  it.effect("an exchange without an answer is not sent again; should it arrive after all, nothing is spent twice", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared({ capacity: 100 })
      yield* timed(quota.reserve(0))
      yield* timed(quota.balance)
      redis.mood = "deaf"
      const before = redis.exchanges
      const [taken] = yield* timed(quota.reserve(10))
      assert.strictEqual(redis.exchanges, before + 1)
      yield* Option.getOrThrow(taken).spend
      redis.mood = "fine"
      for (const arrives of redis.late.splice(0)) arrives()
      assert.strictEqual(redis.total(key), 100)
      yield* TestClock.adjust("40 seconds")
      assert.strictEqual((yield* timed(quota.balance))[0], 100)
      assert.strictEqual(redis.leases(key), 0)
    }))

  it.effect("a failover that forgets all admits one bucket more at most", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared({ capacity: 100 })
      const drain = Effect.map(
        timed(Effect.forEach(Array.from({ length: 30 }), () => quota.reserve(5))),
        ([taken]) => taken.filter(Option.isSome).map(({ value }) => value)
      )
      const first = yield* drain
      assert.strictEqual(first.length, 20)
      redis.states.clear()
      const second = yield* drain
      assert.isAtMost(second.length, 20)
      // Tokens given back that the new master never lent add nothing.
      for (const reservation of [...first, ...second]) yield* reservation.giveBack
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* timed(quota.balance))[0], 100)
      assert.isAtMost(redis.total(key), 100)
    }))

  it.effect("no clock of a client gets into an exchange, so clients may disagree about the time", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(Date.UTC(2026, 10, 20))
      const sent: Array<number> = []
      let lua = ""
      const redis = new FakeRedis()
      const spied: Redis.Redis["Service"] = {
        ...redis.service,
        eval: (script) => (...params) => {
          lua = script.lua
          sent.push(...(String(script.params(...params)[1]).match(/(?<=[:[,])\d[\d.e+]*/g) ?? []).map(Number))
          return redis.service.eval(script)(...params)
        }
      }
      for (const hours of [0, -1, 1, 24 * 365]) {
        const clocks = yield* steppedClock
        clocks.wallMillis = hours * 3_600_000
        const quota = yield* Effect.provideService(RetryQuotaRedis.make({ name: "test" }), Redis.Redis, spied)
        const [taken] = yield* timed(
          Effect.flatMap(
            clocks.provide(quota.reserve(5)),
            (taken) => Effect.as(Option.getOrThrow(taken).giveBack, taken)
          )
        )
        assert.isTrue(Option.isSome(taken))
      }
      assert.match(lua, /redis\.call\(['"]TIME['"]\)/)
      // Settings, ids and costs: nothing as large as a Unix time.
      assert.isAbove(sent.length, 20)
      assert.isBelow(Math.max(...sent), 1e9)
    }))

  it.effect("the one key of a quota is declared, and gets its time to live in the script that writes it", () =>
    Effect.gen(function*() {
      const redis = new FakeRedis()
      let seen: { readonly lua: string; readonly keys: number; readonly first: unknown } | undefined
      const spied: Redis.Redis["Service"] = {
        ...redis.service,
        eval: (script) => (...params) => {
          seen = { lua: script.lua, keys: script.numberOfKeys(...params), first: script.params(...params)[0] }
          return redis.service.eval(script)(...params)
        }
      }
      const quota = yield* Effect.provideService(RetryQuotaRedis.make({ name: "test" }), Redis.Redis, spied)
      yield* timed(quota.reserve(5))
      assert.deepStrictEqual([seen?.keys, seen?.first], [1, key])
      assert.match(seen!.lua, /PEXPIRE/)
      assert.isEmpty(seen!.lua.match(/KEYS\[[2-9]\]/) ?? [])
    }))

  const refusals = [
    "OOM command not allowed when used memory > 'maxmemory'.",
    "READONLY You can't write against a read only replica.",
    "MOVED 3999 127.0.0.1:6381",
    "ASK 3999 127.0.0.1:6381",
    "CLUSTERDOWN The cluster is down",
    "LOADING Redis is loading the dataset in memory",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
  ]
  for (const message of refusals) {
    it.effect(`"${message.slice(0, 40)}" is a failure of Redis: the local quota decides, and everything is sent later`, () =>
      Effect.gen(function*() {
        const { quota, redis } = yield* shared({ capacity: 100, fallback: { capacity: 10 } })
        const [held] = yield* timed(quota.reserve(40))
        redis.mood = "refusing"
        redis.error = message
        yield* Option.getOrThrow(held).spend
        const [taken, millis] = yield* timed(Effect.forEach([1, 2, 3], () => quota.reserve(5)))
        assert.deepStrictEqual(taken.map(Option.isSome), [true, true, false])
        assert.isAtMost(millis, 50)
        redis.mood = "fine"
        yield* TestClock.adjust("1 minute")
        assert.strictEqual((yield* timed(quota.balance))[0], 60)
        assert.strictEqual(redis.leases(key), 0)
      }))
  }
})

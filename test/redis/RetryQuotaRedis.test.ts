import { assert, describe, it } from "@effect/vitest"
import { awsStandard, InvalidOption, ResourceLimiters, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Redis from "effect/persistence/Redis"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { constantRandom, scripted, Transient } from "../utils/call.ts"
import { FakeRedis } from "../utils/fakeRedis.ts"
import {
  asking,
  badMoods,
  decisions,
  drivers,
  inTime,
  isOnFallback,
  key,
  logged,
  make,
  shared,
  within
} from "../utils/sharedQuota.ts"

describe("RetryQuotaRedis", () => {
  describe("its metrics", () => {
    const registry = () => Effect.provideService(Metric.MetricRegistry, new Map())
    const attributes = Effect.map(
      Metric.snapshot,
      (metrics) =>
        metrics.filter(({ id }) => id.startsWith("retry_quota_"))
          .map(({ attributes, id }): Record<string, string> => ({ id, ...attributes }))
    )

    it.effect("carry the resource that ResourceLimiters made it for, or else its name", () =>
      Effect.gen(function*() {
        const redis = new FakeRedis()
        const layer = ResourceLimiters.layer({ quota: (key) => RetryQuotaRedis.layer({ name: `quota of ${key}` }) })
        const reserved = Effect.flatMap(RetryQuota.RetryQuota, (quota) => quota.reserve(5))
        yield* inTime(Effect.provide(
          reserved,
          Layer.provide(ResourceLimiters.quota("orders"), layer).pipe(
            Layer.provide(Layer.succeed(Redis.Redis, redis.service))
          )
        ))
        yield* make(redis, { name: "customers" })
        const ids = yield* attributes
        assert.includeDeepMembers(ids, [
          { id: "retry_quota_decisions", resource: "orders", by: "redis" },
          { id: "retry_quota_fallback", resource: "orders" },
          { id: "retry_quota_fallback", resource: "customers" }
        ])
        assert.isEmpty(ids.filter((id) => !("resource" in id)))
      }).pipe(registry(), Effect.scoped))

    it.effect("name 100 resources, and count the rest as (others), without a gauge", () =>
      Effect.gen(function*() {
        const redis = new FakeRedis()
        for (let count = 0; count < 103; count++) {
          const quota = yield* make(redis, { name: `q${count}` })
          yield* inTime(quota.reserve(1))
        }
        const ids = yield* attributes
        const of = (name: string) => ids.filter(({ id }) => id === name).map(({ resource }: any) => resource)
        assert.lengthOf(of("retry_quota_fallback"), 100)
        const named = Array.from({ length: 100 }, (_, count) => `q${count}`)
        assert.sameMembers([...new Set(of("retry_quota_decisions"))], [...named, "(others)"])
      }).pipe(registry(), Effect.scoped))
  })

  it.effect("a quota that Redis has lost, by a flush or an eviction, starts over, and a line says so, once", () => {
    const lines: Array<string> = []
    const logger = Logger.make(({ logLevel, message }) => void lines.push(`${logLevel}: ${[message].flat().join(" ")}`))
    return Effect.gen(function*() {
      const redis = new FakeRedis()
      const options = { name: "lost", leaseTime: "1 minute", idleTimeToLive: "10 minutes" } as const
      const quota = yield* make(redis, options)
      const retries = Effect.forEach([1, 2], () => inTime(quota.reserve(5)))
      yield* retries
      // Redis forgets a process, and then a quota, that has not asked for so long.
      for (const idle of ["2 minutes", "11 minutes"] as const) {
        yield* TestClock.adjust(idle)
        redis.states.clear()
        yield* retries
      }
      assert.deepStrictEqual(lines, [])
      for (const _ of [1, 2]) {
        redis.states.clear()
        yield* retries
      }
      assert.deepStrictEqual(lines, ["Warn: effect-retry: Redis has lost the retry quota \"lost\": it starts over"])
    }).pipe(Effect.scoped, Effect.provide(Logger.layer([logger])))
  })

  describe("when Redis does not answer as it should", () => {
    for (const mood of badMoods) {
      it.effect(`(${mood}) decides locally within the timeout, logs it once, and neither loses nor doubles anything`, () => {
        const name = `mood-${mood}`
        const { layer, lines } = logged()
        return Effect.gen(function*() {
          const redis = new FakeRedis()
          const quota = yield* make(redis, { name, capacity: 100, fallback: { capacity: 20 } })
          const [first, second] = yield* Effect.all([quota.reserve(10), quota.reserve(10)])
          assert.strictEqual(yield* quota.balance, 80)
          redis.mood = mood
          yield* Option.getOrThrow(first).giveBack
          const asked = yield* Effect.forkChild(
            Effect.forEach([1, 2, 3, 4, 5], () => quota.reserve(10), { concurrency: "unbounded" })
          )
          yield* TestClock.adjust(50)
          const local = yield* Fiber.join(asked)
          assert.deepStrictEqual(local.map(Option.isSome), [true, true, false, false, false])
          assert.strictEqual(yield* quota.balance, 0)
          yield* Option.getOrThrow(second).spend
          yield* TestClock.adjust("5 seconds")
          for (const arrives of redis.late) arrives()
          redis.mood = "fine"
          yield* TestClock.adjust("40 seconds")
          assert.strictEqual(yield* quota.balance, 90)
          for (const lease of local) if (Option.isSome(lease)) yield* lease.value.giveBack
          assert.strictEqual(yield* quota.balance, 90)
          assert.strictEqual(redis.leases(`retry-quota:${name}`), 0)
          assert.strictEqual(lines.length, 2, lines.join("\n"))
          assert.deepStrictEqual([yield* decisions(name, "redis"), yield* decisions(name, "fallback")], [2, 5])
        }).pipe(Effect.scoped, Effect.provide(layer))
      })
    }

    it.effect("decides immediately while Redis is known not to answer", () =>
      Effect.gen(function*() {
        const { quota, redis } = yield* shared()
        redis.mood = "refusing"
        assert.isTrue(Option.isSome(yield* quota.reserve(5)))
        const exchanges = redis.exchanges
        for (let i = 0; i < 20; i++) yield* quota.reserve(5)
        assert.strictEqual(redis.exchanges, exchanges)
      }))

    it.effect("has one exchange in progress at most, however long Redis is silent", () =>
      Effect.gen(function*() {
        const { quota, redis } = yield* shared()
        redis.mood = "silent"
        const asked = yield* Effect.forkChild(quota.reserve(5))
        yield* TestClock.adjust("25 seconds")
        assert.isTrue(Option.isSome(yield* Fiber.join(asked)))
        assert.strictEqual(redis.exchanges, 1)
        yield* TestClock.adjust("35 seconds")
        assert.strictEqual(redis.exchanges, 2)
      }))

    it.effect("begins the fallback with the tokens there last were: an outage that has drained the quota stays without retries", () =>
      Effect.gen(function*() {
        const { quota, redis } = yield* shared({ capacity: 10 })
        yield* quota.reserve(10)
        redis.mood = "refusing"
        assert.isTrue(Option.isNone(yield* quota.reserve(1)))
        const { quota: other, redis: another } = yield* shared({ capacity: 10, fallback: { capacity: 4, initial: 3 } })
        yield* other.reserve(10)
        another.mood = "refusing"
        assert.isTrue(Option.isSome(yield* other.reserve(1)))
        assert.strictEqual(yield* other.balance, 2)
      }))

    it.effect("refills no fallback for a flapping Redis, until it has been back for the lease time", () =>
      Effect.gen(function*() {
        const { quota, redis } = yield* shared({ fallback: { capacity: 20, initial: 15 }, leaseTime: "1 minute" })
        const granted: Array<RetryQuota.Reservation> = []
        /** How often the fallback grants until Redis is back. */
        const outage = Effect.gen(function*() {
          redis.mood = "refusing"
          const taken = yield* Effect.forEach([1, 2, 3, 4, 5], () => quota.reserve(2))
          redis.mood = "fine"
          yield* TestClock.adjust("1 second")
          const before = granted.length
          for (const each of taken) if (Option.isSome(each)) granted.push(each.value)
          return granted.length - before
        })
        assert.deepStrictEqual([yield* outage, yield* outage, yield* outage], [5, 2, 0])
        yield* TestClock.adjust("58 seconds")
        assert.strictEqual(yield* outage, 0)
        // What comes back of what it granted is there the next time.
        for (const lease of granted.slice(0, 3)) yield* lease.giveBack
        assert.strictEqual(yield* outage, 3)
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(yield* outage, 5)
        assert.strictEqual(yield* quota.balance, 500)
      }))

    it.effect("shows who decides from the start to the end, and logs only changes", () => {
      const { layer, lines } = logged()
      const shown: Array<boolean> = []
      const look = Effect.map(isOnFallback("shown"), (is) => shown.push(is))
      return Effect.gen(function*() {
        const redis = new FakeRedis()
        redis.latencyMillis = 10
        const connecting = RetryQuotaRedis.layerConnecting({ name: "shown" }, Layer.succeed(Redis.Redis, redis.service))
        const scope = yield* Scope.make()
        yield* Layer.buildWithScope(connecting, scope)
        yield* look
        yield* TestClock.adjust(10)
        yield* look
        const quota = yield* Effect.map(
          Layer.buildWithScope(Layer.fresh(connecting), scope),
          (context) => Context.get(context, RetryQuota.RetryQuota)
        )
        yield* TestClock.adjust(10)
        assert.deepStrictEqual(lines, [])
        redis.mood = "refusing"
        redis.latencyMillis = 0
        yield* quota.reserve(5)
        yield* look
        yield* Scope.close(scope, Exit.void)
        yield* look
        assert.deepStrictEqual(shown, [true, false, true, false])
        assert.strictEqual(lines.length, 1)
      }).pipe(Effect.provide(layer))
    })

    it.effect("logs the code of an error without a message, as when a name has several addresses", () => {
      const { layer, lines } = logged()
      const cause = Object.assign(new AggregateError([], ""), { code: "ECONNREFUSED" })
      const quotaLayer = RetryQuotaRedis.layerConnecting(
        { name: "addresses" },
        Layer.effect(Redis.Redis, Effect.fail(new Redis.RedisError({ cause })))
      )
      return Effect.gen(function*() {
        yield* TestClock.adjust(1)
        assert.include(lines[0], "ECONNREFUSED")
      }).pipe(Effect.provide(Layer.provide(quotaLayer, layer)))
    })

    it.effect("answers thousands of asks to a slow Redis at the same time, 500 per exchange, while there are tokens", () =>
      Effect.gen(function*() {
        const { quota, redis } = yield* shared({ capacity: 700 })
        redis.latencyMillis = 49
        const asked = yield* Effect.forkChild(
          Effect.forEach(Array.from({ length: 2000 }), () => quota.reserve(1), { concurrency: "unbounded" })
        )
        yield* TestClock.adjust(4 * 49)
        const taken = (yield* Fiber.join(asked)).filter(Option.isSome)
        assert.strictEqual(taken.length, 700)
        assert.strictEqual(redis.exchanges, 4)
        redis.latencyMillis = 0
        for (const lease of taken) yield* lease.value.giveBack
        assert.strictEqual(yield* quota.balance, 700)
        assert.strictEqual(redis.leases(key), 0)
      }))

    for (const [driver, run] of Object.entries(drivers)) {
      it.effect(`${driver} never loses a call: it retries with the local tokens`, () =>
        Effect.gen(function*() {
          const { quota, redis } = yield* shared()
          redis.mood = "silent"
          const call = scripted([new Transient(), new Transient()])
          const exit = yield* inTime(Effect.provideService(run(call.effect), RetryQuota.RetryQuota, quota))
          assert.deepStrictEqual(exit, Exit.succeed("ok"))
          assert.strictEqual(call.sends, 3)
        }))
    }

    it.effect("a question to Redis does not hold a call beyond its deadline", () =>
      Effect.gen(function*() {
        const error = new Transient()
        const reasons: Array<string> = []
        for (const onExceeded of ["stop", "wait"] as const) {
          const { quota: own, redis: its } = yield* shared({ timeout: "10 seconds", onExceeded, refillPerSecond: 1 })
          its.mood = "silent"
          const fiber = yield* Effect.forkChild(
            Effect.retryOrElse(
              Effect.fail(error),
              awsStandard.pipe(RetryPolicy.deadline("500 millis")),
              (failure, decision) =>
                Effect.sync(() => {
                  assert.strictEqual(failure, error)
                  reasons.push((decision as { reason: string }).reason)
                })
            ).pipe(
              Effect.provideService(RetryQuota.RetryQuota, own),
              Effect.provideService(Random.Random, constantRandom(0))
            )
          )
          yield* TestClock.adjust(499)
          assert.isUndefined(fiber.pollUnsafe())
          yield* TestClock.adjust(1)
          assert.isDefined(fiber.pollUnsafe())
        }
        assert.deepStrictEqual(reasons, ["deadline", "deadline"])
        // The last exchange is still waited for, or the scope could not close.
        yield* TestClock.adjust("10 seconds")
      }))
  })

  it.effect.prop(
    "law: whatever Redis does, what was given back is back and what was spent is spent, once",
    [
      Schema.Array(Schema.Tuple([
        Schema.Literals(["fine", "silent", "deaf", "refusing", "garbage"]),
        Schema.Literals(["giveBack", "spend", "keep"]),
        Schema.Boolean
      ])).check(Schema.isMaxLength(25))
    ],
    ([steps]) =>
      Effect.gen(function*() {
        const { quota, redis } = yield* shared({
          capacity: 1000,
          fallback: { initial: 0 },
          leaseTime: "1 day",
          idleTimeToLive: "2 days"
        })
        const kept: Array<RetryQuota.Reservation> = []
        let spent = 0
        for (const [mood, settle, arrives] of steps) {
          redis.mood = mood
          const taken = yield* within(50, quota.reserve(7))
          if (Option.isSome(taken)) {
            if (settle === "spend") spent += 7
            if (settle === "keep") kept.push(taken.value)
            else yield* taken.value[settle]
          }
          // An exchange that was given up arrives after all, in the middle of others.
          if (arrives) redis.late.shift()?.()
          yield* TestClock.adjust("31 seconds")
        }
        redis.mood = "fine"
        yield* TestClock.adjust("2 minutes")
        for (const arrives of redis.late) arrives()
        assert.strictEqual(yield* quota.balance, 1000 - spent - 7 * kept.length)
        assert.strictEqual(redis.leases(key), kept.length)
        for (const lease of kept) yield* lease.giveBack
        assert.strictEqual(yield* quota.balance, 1000 - spent)
        assert.strictEqual(redis.total(key), 1000 - spent)
      }).pipe(Effect.scoped),
    { arbitrary: { runs: 60 } } as any
  )

  it.effect("gives back at once what a retry holds that a condition around the policy stops, though its fiber continues", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared()
      const call = Effect.ignore(Effect.retry(Effect.fail(new Transient()), {
        schedule: awsStandard,
        times: 0
      }))
      const fiber = yield* Effect.forkChild(
        Effect.andThen(call, Effect.never).pipe(
          Effect.provideService(RetryQuota.RetryQuota, quota),
          Effect.provideService(Random.Random, constantRandom(0.5))
        )
      )
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* quota.balance, 500)
      assert.strictEqual(redis.leases(key), 0)
      yield* Fiber.interrupt(fiber)
    }))

  for (const [driver, run] of Object.entries(drivers)) {
    it.effect(`spends the retries of ${driver} when they have failed, though their fiber continues`, () =>
      Effect.gen(function*() {
        const { quota, redis } = yield* shared()
        const call = Effect.ignore(run(Effect.fail(new Transient())))
        const program = Effect.provideService(Effect.andThen(call, Effect.never), RetryQuota.RetryQuota, quota)
        const fiber = yield* Effect.forkChild(program)
        yield* TestClock.adjust("10 seconds")
        yield* TestClock.adjust("1 second")
        assert.strictEqual(redis.leases(key), 0)
        assert.strictEqual(redis.states.get(key)?.tokens, 490)
        yield* Fiber.interrupt(fiber)
      }))
  }

  for (const [driver, run] of Object.entries(drivers)) {
    for (const cause of [Cause.die("defect"), Cause.interrupt()]) {
      it.effect(`spends the retry of ${driver} that ends like this: ${cause}, though its fiber continues`, () =>
        Effect.gen(function*() {
          const { quota, redis } = yield* shared()
          let sends = 0
          const send = Effect.suspend(() => ++sends === 1 ? Effect.fail(new Transient()) : Effect.failCause(cause))
          const program = Effect.provideService(
            Effect.andThen(Effect.exit(run(send)), Effect.never),
            RetryQuota.RetryQuota,
            quota
          )
          const fiber = yield* Effect.forkChild(program)
          yield* TestClock.adjust("10 seconds")
          yield* TestClock.adjust("1 second")
          assert.deepStrictEqual([sends, redis.leases(key), redis.states.get(key)?.tokens], [2, 0, 495])
          yield* Fiber.interrupt(fiber)
        }))
    }
  }

  for (const mood of ["fine", "refusing"] as const) {
    it.effect(`gets back what a first attempt paid that is abandoned before it is sent (${mood})`, () =>
      Effect.gen(function*() {
        const { quota, redis } = yield* shared({ capacity: 50, firstAttemptCost: 5 })
        redis.mood = mood
        const abandoned = Effect.gen(function*() {
          const strategy = yield* RetryStrategy.make(awsStandard)
          const token = yield* strategy.acquireInitialToken()
          return yield* token.abandon
        })
        const exit = yield* inTime(Effect.provideService(abandoned, RetryQuota.RetryQuota, quota))
        assert.deepStrictEqual(exit, Exit.succeed(true))
        assert.strictEqual(Exit.getSuccess(yield* inTime(quota.balance)).pipe(Option.getOrUndefined), 50)
      }))
  }

  describe("what need not be known immediately", () => {
    it.effect("costs a success no exchange, and many successes one", () =>
      Effect.gen(function*() {
        const { quota, redis } = yield* shared({ initial: 0 })
        const calls = Effect.forEach(Array.from({ length: 100 }), () => withRetry(Effect.succeed(1), awsStandard))
        yield* Effect.provideService(calls, RetryQuota.RetryQuota, quota)
        assert.strictEqual(redis.exchanges, 0)
        yield* TestClock.adjust(99)
        assert.strictEqual(redis.exchanges, 0)
        yield* TestClock.adjust(1)
        assert.strictEqual(redis.exchanges, 1)
        assert.strictEqual(redis.states.get(key)?.tokens, 100)
        yield* TestClock.adjust("1 hour")
        assert.strictEqual(redis.exchanges, 1)
      }))

    for (const [chance, seconds] of [[0, 2], [0.5, 2.5], [0.75, 2.75]] as const) {
      it.effect(`is what successes put into a full quota: sent every ${seconds} seconds at random ${chance}`, () =>
        Effect.gen(function*() {
          const { quota, redis } = yield* Effect.provideService(shared(), Random.Random, constantRandom(chance))
          yield* quota.balance
          const before = redis.exchanges
          const busy = yield* Effect.forkChild(Effect.forever(Effect.andThen(quota.deposit(1), Effect.sleep(10))))
          for (let passed = 0; passed < 60_000; passed += 10) yield* TestClock.adjust(10)
          yield* Fiber.interrupt(busy)
          assert.strictEqual(redis.exchanges - before, Math.floor(60 / seconds))
        }))
    }

    it.effect("does not hold up what a settled retry gives back, nor successes once the quota is not full", () =>
      Effect.gen(function*() {
        const { quota, redis } = yield* shared({ refillPerSecond: 1 })
        const taken = Option.getOrThrow(yield* quota.reserve(5))
        yield* TestClock.adjust("10 seconds")
        assert.strictEqual(yield* quota.balance, 500)
        yield* quota.deposit(1)
        yield* TestClock.adjust(500)
        assert.strictEqual(redis.leases(key), 1)
        yield* taken.giveBack
        yield* TestClock.adjust(99)
        assert.strictEqual(redis.leases(key), 1)
        yield* TestClock.adjust(1)
        assert.strictEqual(redis.leases(key), 0)
        yield* Option.getOrThrow(yield* quota.reserve(50)).spend
        yield* TestClock.adjust(100)
        const before = redis.exchanges
        yield* quota.deposit(1)
        yield* TestClock.adjust(100)
        assert.strictEqual(redis.exchanges, before + 1)
      }))

    it.effect("is sent when the scope closes", () =>
      Effect.gen(function*() {
        const redis = new FakeRedis()
        const scope = yield* Scope.make()
        const quota = yield* Scope.provide(make(redis), scope)
        const [first, second] = yield* Effect.all([quota.reserve(5), quota.reserve(5)])
        yield* Option.getOrThrow(first).giveBack
        yield* Option.getOrThrow(second).spend
        assert.strictEqual(redis.leases(key), 2)
        yield* Scope.close(scope, Exit.void)
        assert.strictEqual(redis.leases(key), 0)
        assert.strictEqual(redis.states.get(key)?.tokens, 495)
        // A caller that has kept the quota is served locally.
        assert.isTrue(Option.isSome(yield* quota.reserve(5)))
        assert.strictEqual(yield* quota.balance, 490)
      }))

    it.effect("does not delay the closing when the connection does not close", () =>
      Effect.gen(function*() {
        const connection = Effect.acquireRelease(Effect.succeed(new FakeRedis().service), () => Effect.never)
        const quotaLayer = RetryQuotaRedis.layerConnecting({ name: "test" }, Layer.effect(Redis.Redis, connection))
        const scope = yield* Scope.make()
        yield* Layer.buildWithScope(quotaLayer, scope)
        yield* TestClock.adjust(1)
        const closed = yield* Effect.forkChild(Scope.close(scope, Exit.void))
        yield* TestClock.adjust(50)
        assert.isDefined(closed.pollUnsafe())
      }))

    it.effect("does not delay the closing when Redis is silent", () =>
      Effect.gen(function*() {
        const redis = new FakeRedis()
        const scope = yield* Scope.make()
        const quota = yield* Scope.provide(make(redis), scope)
        yield* quota.deposit(1)
        redis.mood = "silent"
        const closed = yield* Effect.forkChild(Scope.close(scope, Exit.void))
        yield* TestClock.adjust(50)
        assert.isDefined(closed.pollUnsafe())
      }))
  })

  it.effect("decides locally, and immediately, when an ask comes late to a Redis that is down", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared()
      const { asked, held } = yield* asking(quota, 5)
      redis.mood = "refusing"
      yield* quota.reserve(5)
      yield* asked
      assert.strictEqual(redis.exchanges, 1)
      assert.isTrue(held[0]?.giveBack())
      assert.strictEqual(yield* quota.balance, 495)
    }))

  it.effect("never reports more tokens than its capacity, whatever the fallback's", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared({ capacity: 10, fallback: { capacity: 100, initial: 100 } })
      redis.mood = "refusing"
      yield* quota.reserve(1)
      const clock = yield* Clock.Clock
      assert.deepStrictEqual([quota.store.balance(clock), yield* quota.balance], [10, 10])
    }))

  it.effect("includes in the balance what was added before the request, though an exchange was in progress", () =>
    Effect.gen(function*() {
      const { quota, redis } = yield* shared({ capacity: 10, initial: 0 })
      redis.latencyMillis = 20
      yield* Effect.forkChild(quota.balance)
      yield* TestClock.adjust(10)
      yield* quota.deposit(5)
      const looked = yield* Effect.forkChild(quota.balance)
      yield* TestClock.adjust(30)
      redis.latencyMillis = 0
      assert.strictEqual(yield* Fiber.join(looked), 5)
    }))

  it.effect("lets processes with different options share: half full is half full for all, each refills at its own rate", () =>
    Effect.gen(function*() {
      const redis = new FakeRedis()
      const big = yield* make(redis, { capacity: 100, initial: 80, refillPerSecond: 0 })
      const small = yield* make(redis, { capacity: 50, refillPerSecond: 2 })
      assert.strictEqual(yield* big.balance, 80)
      assert.strictEqual(yield* small.balance, 40)
      yield* big.reserve(20)
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(yield* big.balance, 60)
      yield* TestClock.adjust("5 seconds")
      assert.closeTo(yield* small.balance, 40, 1e-9)
    }))

  it.effect("serves the pieces of one quota to the policies of many calls: a layer like any other", () =>
    Effect.gen(function*() {
      const redis = new FakeRedis()
      const layer = RetryQuotaRedis.layer({ name: "test", capacity: 10 }).pipe(
        Layer.provide(Layer.succeed(Redis.Redis, redis.service))
      )
      const balance = yield* Effect.provide(Effect.andThen(RetryQuota.reserve(4), RetryQuota.balance), layer)
      assert.strictEqual(balance, 6)
    }))

  it.effect("gives each resource a shared quota of its own", () =>
    Effect.gen(function*() {
      const redis = new FakeRedis()
      const fleet = ResourceLimiters.layer({ quota: (name) => RetryQuotaRedis.layer({ name, capacity: 10 }) }).pipe(
        Layer.provide(Layer.succeed(Redis.Redis, redis.service))
      )
      const balance = (name: string) => Effect.provide(RetryQuota.balance, ResourceLimiters.quota(name))
      yield* Effect.gen(function*() {
        yield* Effect.provide(RetryQuota.reserve(4), ResourceLimiters.quota("orders"))
        assert.deepStrictEqual([yield* balance("orders"), yield* balance("customers")], [6, 10])
      }).pipe(Effect.provide(Layer.fresh(fleet)))
      assert.deepStrictEqual([...redis.states.keys()], ["retry-quota:orders", "retry-quota:customers"])
    }))

  it.effect("has sent everything and is gone when its resource was idle, and is there again when it is used", () =>
    Effect.gen(function*() {
      const redis = new FakeRedis()
      const fleet = ResourceLimiters.layer({
        quota: (name) => RetryQuotaRedis.layer({ name, capacity: 10, flushInterval: "1 hour" }),
        idleTimeToLive: "1 minute"
      }).pipe(Layer.provide(Layer.succeed(Redis.Redis, redis.service)))
      const names = Array.from({ length: 50 }, (_, index) => `table-${index}`)
      const on = (name: string) => ResourceLimiters.quota(name)
      yield* Effect.gen(function*() {
        for (const name of names) {
          const taken = yield* Effect.provide(RetryQuota.reserve(4), on(name))
          yield* Option.getOrThrow(taken).spend
        }
        const asked = redis.exchanges
        yield* TestClock.adjust("59 seconds")
        assert.strictEqual(redis.exchanges, asked)
        yield* TestClock.adjust("2 minutes")
        assert.strictEqual(redis.exchanges, asked + 50)
        assert.deepStrictEqual(names.map((name) => redis.leases(`retry-quota:${name}`)), names.map(() => 0))
        yield* TestClock.adjust("2 hours")
        assert.strictEqual(redis.exchanges, asked + 50)
        assert.strictEqual(yield* Effect.provide(RetryQuota.balance, on("table-7")), 6)
      }).pipe(Effect.provide(Layer.fresh(fleet)))
    }))

  describe("refuses", () => {
    const bad: ReadonlyArray<readonly [string, Partial<RetryQuotaRedis.Options>]> = [
      ["name", { name: "" }],
      ["name", { name: 5 as unknown as string }],
      ["prefix", { prefix: 5 as unknown as string }],
      ["capacity", { capacity: 0 }],
      ["refillPerSecond", { onExceeded: "wait" }],
      ["maxWaiters", { maxWaiters: -1 }],
      ["maxWaiters", { maxWaiters: 1.5 }],
      ["maxWaiters", { maxWaiters: NaN }],
      ["timeout", { timeout: 0 }],
      ["timeout", { timeout: Infinity }],
      ["leaseTime", { leaseTime: 0 }],
      ["leaseTime", { leaseTime: NaN }],
      ["idleTimeToLive", { leaseTime: "1 minute", idleTimeToLive: "119 seconds" }],
      ["flushInterval", { flushInterval: -1 }],
      ["fallbackTime", { fallbackTime: 0 }],
      ["fallback.capacity", { fallback: { capacity: 0 } }],
      ["fallback.capacity", { firstAttemptCost: 5, fallback: { capacity: 4 } }],
      ["fallback.initial", { fallback: { capacity: 4, initial: 5 } }],
      ["fallback.refillPerSecond", { fallback: { refillPerSecond: -1 } }],
      ["fallback.refillPerSecond", { onExceeded: "wait", refillPerSecond: 1, fallback: { refillPerSecond: 0 } }]
    ]
    for (const [field, options] of bad) {
      it(`${field} in ${JSON.stringify(options)}`, () => {
        for (const make of [RetryQuotaRedis.make, RetryQuotaRedis.layer]) {
          try {
            make({ name: "test", ...options })
            assert.fail("made it")
          } catch (error) {
            assert.instanceOf(error, InvalidOption)
            assert.deepStrictEqual([error.constructorName, error.field], ["RetryQuotaRedis.make", field])
            assert.isNotEmpty(error.expected)
          }
        }
      })
    }

    it.effect("what comes from configuration, with a typed error", () =>
      Effect.gen(function*() {
        const configured = (env: Record<string, string>) =>
          RetryQuota.balance.pipe(
            Effect.provide(RetryQuotaRedis.layerConfig({
              name: Config.succeed("test"),
              capacity: Config.Number("CAPACITY"),
              fallback: { capacity: Config.Number("ALONE") }
            })),
            Effect.provideService(Redis.Redis, new FakeRedis().service),
            Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(env)),
            Effect.flip
          )
        const impossible = yield* configured({ CAPACITY: "10", ALONE: "0" })
        assert.instanceOf(impossible, InvalidOption)
        assert.deepStrictEqual([impossible.field, impossible.value], ["fallback.capacity", 0])
        assert.instanceOf(yield* configured({ CAPACITY: "many", ALONE: "1" }), Config.ConfigError)
      }))

    it("nothing at the limits", () => {
      for (
        const options of [{ leaseTime: 60_000, idleTimeToLive: 120_000, flushInterval: 0 }, { maxWaiters: 0 }, {
          maxWaiters: Infinity
        }, {
          leaseTime: "2 hours"
        }] as const
      ) {
        assert.isTrue(Layer.isLayer(RetryQuotaRedis.layer({ name: "test", ...options })))
      }
    })
  })
})

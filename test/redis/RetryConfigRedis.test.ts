import { assert, describe, it } from "@effect/vitest"
import * as Ajv from "ajv/dist/2020.js"
import { type InvalidOption, RetryQuota } from "effect-retry"
import * as AdaptiveRateLimiter from "effect-retry/AdaptiveRateLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import * as RetryConfig from "effect-retry/RetryConfig"
import * as RetryConfigRedis from "effect-retry/RetryConfigRedis"
import * as RetryConfigSchema from "effect-retry/RetryConfigSchema"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as Kit from "effect-retry/testing"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as Redis from "effect/persistence/Redis"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { firstOf } from "../utils/budget.ts"
import { FakeShared } from "../utils/fakeShared.ts"
import { sweep, thinned } from "../utils/sweep.ts"

const orders = (entry: object) => ({ resources: { orders: entry } })

const attempts = (maxAttempts: number, delay = "10 millis") => ({
  steps: [{ fixed: { delay } }, { maxAttempts }, "whileRetryable", { quotaGated: { cost: 4 } }]
})

/** A process with a document, over a Redis that others may use too. */
const processOf = (redis: FakeShared, json: unknown) =>
  Layer.build(
    RetryConfig.layer(json).pipe(
      Layer.provide(RetryConfigRedis.layer),
      Layer.provide(Layer.succeed(Redis.Redis, redis.service))
    )
  )

type Process = Context.Context<RetryConfig.RetryConfig>

const inside = (process: Process) => <A, E>(self: Effect.Effect<A, E, RetryConfig.RetryConfig>) =>
  Effect.provideContext(self, process)

/** Lets time pass in steps, in each of which Redis answers. */
const pass = (millis: number) => Effect.forEach(Array.from({ length: millis / 10 }), () => TestClock.adjust(10))

/** Something about the resource as the calls of a process see it. */
const seen = <A, S>(process: Process, self: Effect.Effect<A, never, S>, name = "orders"): Effect.Effect<A> =>
  self.pipe(Effect.provide(RetryConfig.resource(name) as any), inside(process) as any)

/** What a process knows without asking. */
const known = (process: Process) =>
  seen(
    process,
    RetryQuota.RetryQuota.use(({ store }) => Effect.clockWith((clock) => Effect.succeed(store.balance(clock))))
  )

/** What Redis has. */
const balance = (process: Process) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(seen(process, RetryQuota.balance))
    yield* TestClock.adjust(1)
    return yield* Fiber.join(fiber)
  })

const failing = Effect.suspend(() => Effect.fail(new Kit.Transient()))

const call = (process: Process, send: Effect.Effect<unknown, unknown> = failing) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(Effect.exit(send.pipe(RetryConfig.retry("orders"), inside(process))))
    for (let step = 0; fiber.pollUnsafe() === undefined && step < 1000; step++) yield* TestClock.adjust(10)
    return yield* Fiber.join(fiber)
  })

const change = (process: Process, json: unknown) => inside(process)(RetryConfig.set(json))

describe("a document with sections for Redis", () => {
  const everything = {
    default: { quota: { redis: { prefix: "shop:" } } },
    resources: {
      orders: {
        quota: {
          capacity: 200,
          redis: {
            name: "all-orders",
            prefix: "q:",
            timeout: "20 millis",
            fallbackTime: "2 seconds",
            leaseTime: "1 minute",
            idleTimeToLive: "1 hour",
            flushInterval: 50,
            fallback: { capacity: 20, initial: 5, refillPerSecond: 1 }
          }
        },
        limiter: { redis: { timeout: 20, lookInterval: "100 millis", idleTimeToLive: "1 minute" } },
        coolDown: { atMost: "30 seconds", probeTime: "5 seconds", redis: { lookInterval: 100 } }
      }
    }
  }

  const validate = new Ajv.Ajv2020({ strict: false }).compile(RetryConfigSchema.jsonSchema() as object)

  it.effect("is valid, by the JSON Schema too, and none of it asks Redis anything before a call", () =>
    Effect.gen(function*() {
      assert.isTrue(validate(everything), JSON.stringify(validate.errors))
      const redis = new FakeShared()
      const process = yield* processOf(redis, everything)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(redis.commands, 0)
      yield* call(process, Effect.void)
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(
        [[...redis.quotas.states.keys()], [...redis.limiters.keys()], [...redis.coolDowns.keys()]],
        [["q:all-orders"], ["rate-limit:orders"], ["cool-down:orders"]]
      )
    }))

  const bad: ReadonlyArray<readonly [path: string, section: object]> = [
    ["quota.redis", { quota: { redis: true } }],
    ["quota.redis.sharedBy", { quota: { redis: { sharedBy: "all" } } }],
    ["quota.redis.name", { quota: { redis: { name: "" } } }],
    ["quota.redis.timeout", { quota: { redis: { timeout: 0 } } }],
    ["quota.redis.fallback", { quota: { redis: { fallback: 5 } } }],
    ["quota.redis.fallback.size", { quota: { redis: { fallback: { size: 5 } } } }],
    ["quota.redis.fallback.capacity", { quota: { redis: { fallback: { capacity: 0 } } } }],
    ["quota.redis.idleTimeToLive", { quota: { redis: { leaseTime: "1 hour", idleTimeToLive: "1 hour" } } }],
    ["quota.capacity", { quota: { capacity: 0, redis: {} } }],
    ["limiter.redis.probeTime", { limiter: { redis: { probeTime: 1 } } }],
    ["limiter.redis.lookInterval", { limiter: { redis: { lookInterval: 0 } } }],
    ["coolDown.redis.lookInterval", { coolDown: { redis: { lookInterval: "soon" } } }],
    ["coolDown.probeTime", { coolDown: { probeTime: "soon", redis: {} } }],
    ["throttle.redis", { throttle: { redis: {} } }]
  ]

  it.effect("is refused with the path of what is wrong, also by check", () =>
    Effect.gen(function*() {
      for (const [path, section] of bad) {
        const provided = Effect.provide(RetryConfigRedis.layer)
        const found = yield* Effect.flip(provided(RetryConfig.check(orders(section))))
        assert.strictEqual(found.field, `resources.orders.${path}`)
      }
    }).pipe(Effect.provideService(Redis.Redis, new FakeShared().service)))

  it.effect("a default gives no name: each resource has its own", () =>
    Effect.gen(function*() {
      const named = { default: { quota: { redis: { name: "all" } } } }
      const { field } = yield* Effect.flip(Effect.provide(RetryConfig.check(named), RetryConfigRedis.layer))
      assert.strictEqual(field, "default.quota.redis.name")
    }).pipe(Effect.provideService(Redis.Redis, new FakeShared().service)))

  it.effect("is refused where no Redis is provided: the error has the path and the cure", () =>
    Effect.gen(function*() {
      for (const section of ["quota", "limiter", "coolDown"]) {
        const json = orders({ [section]: { redis: {} } })
        const errors: ReadonlyArray<InvalidOption> = [
          yield* Effect.flip(RetryConfig.check(json)),
          yield* Effect.flip(Effect.scoped(Layer.build(RetryConfig.layer(json)))),
          yield* Effect.flip(Effect.provide(RetryConfig.set(json), RetryConfig.layer({})))
        ]
        for (const { expected, field } of errors) {
          assert.strictEqual(field, `resources.orders.${section}.redis`)
          assert.include(expected, "RetryConfigRedis.layer")
        }
      }
    }))
})

describe("a quota of a document in Redis", () => {
  const shared = (options: object = {}, redis: object = {}) =>
    orders({ policy: attempts(2), quota: { capacity: 100, ...options, redis } })
  const own = (options: object = {}) => orders({ policy: attempts(2), quota: { capacity: 100, ...options } })
  const key = "retry-quota:orders"

  it.effect("is one for all processes, by any way to call", () =>
    Effect.gen(function*() {
      const redis = new FakeShared()
      const [one, two] = [yield* processOf(redis, shared()), yield* processOf(redis, shared())]
      yield* call(one)
      yield* call(two)
      const long = Effect.retry(failing, RetryConfig.live("orders")).pipe(
        Effect.provide(RetryConfig.resource("orders"))
      )
      const fiber = yield* Effect.forkChild(Effect.exit(inside(two)(long)))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual([yield* balance(one), yield* balance(two)], [88, 88])
    }))

  it.effect("keeps its share of tokens, for all processes, whichever sees a change of its capacity first", () =>
    Effect.gen(function*() {
      const redis = new FakeShared()
      const [one, two] = [
        yield* processOf(redis, shared({ initial: 50 })),
        yield* processOf(redis, shared({ initial: 50 }))
      ]
      assert.deepStrictEqual([yield* balance(one), yield* balance(two)], [50, 50])
      yield* change(one, shared({ capacity: 10 }))
      assert.strictEqual(yield* known(one), 5)
      assert.deepStrictEqual([yield* balance(one), yield* balance(two)], [5, 50])
      yield* call(one)
      assert.closeTo(yield* balance(two), 10, 1e-9)
      yield* change(two, shared({ capacity: 10 }))
      assert.closeTo(yield* balance(two), 1, 1e-9)
    }))

  it.effect("moves from memory to Redis and back with its share of tokens, unless the fleet has one already", () =>
    Effect.gen(function*() {
      const redis = new FakeShared()
      const [one, two] = [yield* processOf(redis, own({ initial: 40 })), yield* processOf(redis, own({ initial: 80 }))]
      assert.deepStrictEqual([yield* balance(one), yield* balance(two)], [40, 80])
      yield* change(one, shared({ capacity: 50 }))
      assert.strictEqual(yield* balance(one), 20)
      yield* change(two, shared({ capacity: 50 }))
      assert.strictEqual(yield* balance(two), 20)
      yield* call(one)
      assert.strictEqual(yield* balance(two), 16)
      yield* change(two, own({ capacity: 200 }))
      assert.strictEqual(yield* balance(two), 64)
      yield* call(two)
      assert.deepStrictEqual([yield* balance(two), yield* balance(one)], [60, 16])
    }))

  for (const [end, left] of [["succeeds", 100], ["fails", 96]] as const) {
    it.effect(`a retry that ${end} after its quota has moved is settled where it took its tokens`, () =>
      Effect.gen(function*() {
        const redis = new FakeShared()
        const process = yield* processOf(redis, shared())
        let sends = 0
        const send = Effect.suspend(() => {
          if (++sends === 1) return failing
          return Effect.andThen(Effect.sleep("1 second"), end === "succeeds" ? Effect.void : failing)
        })
        const fiber = yield* Effect.forkChild(Effect.exit(send.pipe(RetryConfig.retry("orders"), inside(process))))
        yield* pass(500)
        assert.strictEqual(redis.quotas.leases(key), 1)
        yield* change(process, own())
        yield* pass(2000)
        yield* Fiber.join(fiber)
        assert.deepStrictEqual([redis.quotas.leases(key), redis.quotas.total(key)], [0, left])
        assert.strictEqual(yield* balance(process), 96)
      }))
  }

  it.effect("a quota that moves away reports what is left, and is gone", () =>
    Effect.gen(function*() {
      const redis = new FakeShared()
      const process = yield* processOf(redis, shared({ initial: 50 }, { flushInterval: "1 hour" }))
      yield* balance(process)
      yield* call(process, Effect.void)
      yield* pass(1000)
      assert.strictEqual(redis.quotas.total(key), 50)
      yield* change(process, own())
      yield* pass(100)
      assert.strictEqual(redis.quotas.total(key), 51)
    }))

  it.effect("those who wait for tokens ask where the quota has moved, in their order", () =>
    Effect.gen(function*() {
      const redis = new FakeShared()
      const waiting = { initial: 0, refillPerSecond: 0.001, onExceeded: "wait" }
      const process = yield* processOf(redis, own(waiting))
      const order: Array<number> = []
      const fibers = yield* Effect.forEach([0, 1, 2], (index) => {
        let sends = 0
        const send = Effect.suspend(() => {
          if (++sends === 1) return failing
          order.push(index)
          return Effect.void
        })
        return Effect.forkChild(send.pipe(RetryConfig.retry("orders"), inside(process)), { startImmediately: true })
      })
      yield* pass(1000)
      assert.deepStrictEqual(order, [])
      yield* change(process, shared({ ...waiting, refillPerSecond: 8 }))
      yield* pass(400)
      assert.deepStrictEqual(order, [])
      yield* pass(5000)
      yield* Fiber.joinAll(fibers)
      assert.deepStrictEqual(order, [0, 1, 2])
    }))

  it.effect("while Redis does not respond, the fallback decides, and follows a change of the document", () =>
    Effect.gen(function*() {
      const redis = new FakeShared()
      const process = yield* processOf(redis, shared({}, { fallback: { capacity: 20 } }))
      yield* call(process)
      redis.be("refusing")
      yield* call(process)
      assert.strictEqual(yield* known(process), 16)
      yield* change(process, shared({}, { fallback: { capacity: 10 } }))
      assert.strictEqual(yield* known(process), 8)
      redis.be("fine")
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual(yield* known(process), 96)
    }))

  it.effect("is counted under the name of its resource, whatever it is called in Redis", () =>
    Effect.gen(function*() {
      const process = yield* processOf(new FakeShared(), shared({}, { name: "counted" }))
      const counter = (resource: string) =>
        Metric.value(Metric.withAttributes(RetryQuotaRedis.decisions, { resource, by: "redis" }))
      const [before, others] = [yield* counter("orders"), yield* counter("counted")]
      yield* call(process)
      assert.strictEqual((yield* counter("orders")).count, before.count + 1)
      assert.deepStrictEqual(yield* counter("counted"), others)
    }))

  it.effect("follows a change of how long Redis has to answer, and how long it is left alone", () =>
    Effect.gen(function*() {
      const redis = new FakeShared()
      redis.quotas.latencyMillis = 200
      const process = yield* processOf(redis, shared({}, { timeout: 50, fallbackTime: "1 minute" }))
      const decisions = (by: string) =>
        Effect.map(
          Metric.value(Metric.withAttributes(RetryQuotaRedis.decisions, { resource: "orders", by })),
          ({ count }) => count
        )
      const before = yield* decisions("redis")
      const byRedis: Array<number> = []
      const next = Effect.gen(function*() {
        yield* call(process)
        byRedis.push((yield* decisions("redis")) - before)
        yield* TestClock.adjust("1 minute")
      })
      yield* next
      yield* change(process, shared({}, { timeout: 500, fallbackTime: 1000 }))
      yield* next
      yield* next
      redis.be("refusing")
      yield* call(process)
      redis.be("fine")
      redis.quotas.latencyMillis = 0
      const { exchanges } = redis.quotas
      yield* TestClock.adjust("2 seconds")
      // The second call is what Redis is asked for again: it does not wait for the answer.
      assert.deepStrictEqual(byRedis, [0, 0, 1])
      assert.isAbove(redis.quotas.exchanges, exchanges)
    }))

  it.effect("another name is another quota, and what the old one holds comes back to it", () =>
    Effect.gen(function*() {
      const redis = new FakeShared()
      const process = yield* processOf(redis, shared())
      yield* call(process)
      yield* change(process, shared({}, { name: "more-orders" }))
      yield* call(process)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual([redis.quotas.total(key), redis.quotas.total("retry-quota:more-orders")], [96, 92])
    }))

  it.effect("a section that is gone asks Redis nothing more", () =>
    Effect.gen(function*() {
      const redis = new FakeShared()
      const process = yield* processOf(
        redis,
        orders({ quota: { redis: {} }, limiter: { redis: {} }, coolDown: { redis: {} } })
      )
      yield* call(process, Effect.void)
      yield* TestClock.adjust("5 seconds")
      yield* change(process, {})
      yield* TestClock.adjust("5 seconds")
      const { commands } = redis
      for (let calls = 0; calls < 100; calls++) yield* call(process, Effect.void)
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(redis.commands, commands)
    }))

  it.effect("whatever interrupts calls while the quota moves back and forth, no token is lost", () =>
    Effect.gen(function*() {
      const redis = new FakeShared()
      const process = yield* processOf(redis, shared())
      const send = () => {
        let sends = 0
        return Effect.suspend(() =>
          Effect.andThen(Effect.sleep(5), ++sends === 2 ? Effect.void : Effect.fail(new Kit.Transient()))
        )
      }
      const one = () => Effect.exit(send().pipe(RetryConfig.retry("orders")))
      const moves = Effect.gen(function*() {
        yield* Effect.sleep(12)
        yield* RetryConfig.set(own())
        yield* Effect.sleep(12)
        yield* RetryConfig.set(shared())
      })
      const both = Effect.suspend(() =>
        Effect.all([one(), moves, Effect.andThen(Effect.sleep(9), one())], { concurrency: 3 })
      )
      const steps = yield* sweep(inside(process)(both), () =>
        Effect.gen(function*() {
          yield* change(process, shared())
          yield* TestClock.adjust("3 seconds")
          // A retry that was sent and interrupted is spent.
          assert.strictEqual(redis.quotas.leases(key), 0)
          const total = redis.quotas.states.has(key) ? redis.quotas.total(key) : 100
          assert.strictEqual(total % 4, 0)
          assert.isAtMost(total, 100)
          redis.quotas.states.delete(key)
        }).pipe(Effect.orDie))
      assert.isAtLeast(steps, 30)
    }).pipe(thinned(5)))
})

describe("a cool-down of a document in Redis", () => {
  const shared = orders({ policy: attempts(1), coolDown: { spread: 0, redis: {} } })
  const own = orders({ policy: attempts(1), coolDown: { spread: 0 } })
  const phase = (process: Process) => seen(process, Effect.map(CoolDown.state, ({ phase }) => phase))
  const hint = (retryAfter: number) => Effect.fail(new Kit.Throttled({ retryAfter }))

  it.effect("closes all processes after a hint to one", () =>
    Effect.gen(function*() {
      const redis = new FakeShared()
      const [one, two] = [yield* processOf(redis, shared), yield* processOf(redis, shared)]
      yield* call(one, hint(60_000))
      yield* call(two, Effect.void)
      yield* TestClock.adjust(300)
      assert.deepStrictEqual([yield* phase(one), yield* phase(two)], ["closed", "closed"])
    }))

  it.effect("is joined and left while closed: a process that waits for another's probe opens by itself when it has left", () =>
    Effect.gen(function*() {
      const redis = new FakeShared()
      const [one, two] = [yield* processOf(redis, own), yield* processOf(redis, shared)]
      yield* call(two, hint(3000))
      yield* change(one, shared)
      yield* call(one, Effect.void)
      yield* TestClock.adjust(300)
      assert.strictEqual(yield* phase(one), "closed")
      yield* TestClock.adjust(2700)
      // The other process probes, and hangs.
      yield* Effect.forkChild(Effect.never.pipe(RetryConfig.retry("orders"), inside(two)), { startImmediately: true })
      yield* TestClock.adjust(10)
      const waits = yield* Effect.forkChild(Effect.void.pipe(RetryConfig.retry("orders"), inside(one)))
      yield* TestClock.adjust(500)
      assert.isUndefined(waits.pollUnsafe())
      yield* change(one, own)
      yield* TestClock.adjust(1)
      assert.isTrue(Exit.isSuccess(waits.pollUnsafe()!))
      const { exchanges } = redis.coolDown("cool-down:orders")
      yield* call(one, hint(3000))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(redis.coolDown("cool-down:orders").exchanges, exchanges)
      assert.strictEqual(yield* phase(one), "closed")
    }))
})

describe("a limiter of a document in Redis", () => {
  const shared = orders({ policy: attempts(1), limiter: { redis: {} } })
  const own = orders({ policy: attempts(1), limiter: {} })
  const limiter = (process: Process) => seen(process, AdaptiveRateLimiter.state)

  it.effect("has a part of the fleet's rate, keeps it when it is no longer shared, and finds its own way from there", () =>
    Effect.gen(function*() {
      const redis = new FakeShared()
      const process = yield* processOf(redis, shared)
      const fake = redis.limiter("rate-limit:orders")
      yield* fake.cut(100)
      yield* call(process, Effect.void)
      yield* TestClock.adjust(250)
      const before = yield* limiter(process)
      assert.approximately(before.fillRate, 7, 0.1)
      yield* change(process, own)
      const told = fake.told.length
      for (let calls = 0; calls < 20; calls++) {
        yield* call(process, Effect.void)
        yield* TestClock.adjust(200)
      }
      assert.strictEqual(fake.told.length, told)
      const alone = yield* limiter(process)
      assert.isTrue(alone.enabled)
      assert.notStrictEqual(alone.fillRate, before.fillRate)
      yield* call(process, Effect.fail(new Kit.Throttled({})))
      assert.isBelow((yield* limiter(process)).fillRate, alone.fillRate)
      yield* change(process, shared)
      yield* call(process, Effect.void)
      yield* TestClock.adjust(250)
      assert.isAbove(fake.told.length, told)
      assert.approximately((yield* limiter(process)).lastMaxRate, 10, 1e-9)
    }))

  it.effect("another name is another fleet, to which the process reports nothing of the cuts of the first", () =>
    Effect.gen(function*() {
      const redis = new FakeShared()
      const process = yield* processOf(redis, shared)
      yield* redis.limiter("rate-limit:orders").cut(100)
      yield* call(process, Effect.void)
      yield* TestClock.adjust(250)
      yield* call(process, Effect.void)
      yield* TestClock.adjust(250)
      assert.strictEqual(redis.limiter("rate-limit:orders").told.at(-1)!.cuts, 1)
      yield* change(process, orders({ policy: attempts(1), limiter: { redis: { name: "more-orders" } } }))
      yield* call(process, Effect.void)
      yield* TestClock.adjust(250)
      assert.deepStrictEqual(redis.limiter("rate-limit:more-orders").told.map(({ cuts }) => cuts), [0])
    }))

  it.effect("in memory it acts as in a program without Redis, to the digit", () =>
    Effect.gen(function*() {
      const without = yield* Layer.build(RetryConfig.layer(own))
      const withRedis = yield* processOf(new FakeShared(), own)
      const throttled = Effect.fail(new Kit.Throttled({}))
      for (const send of [throttled, Effect.void, Effect.void, throttled, Effect.void, Effect.void]) {
        for (const process of [without, withRedis]) {
          yield* Effect.exit(send.pipe(RetryConfig.retry("orders"), inside(process)))
        }
        yield* TestClock.adjust(2000)
        assert.deepStrictEqual(yield* limiter(withRedis), yield* limiter(without))
      }
    }))
})

describe("a program with a document in Redis", () => {
  const names = ["orders", "payments", "search"]
  const section = {
    quota: { capacity: 1_000_000, initial: 0, redis: {} },
    limiter: { redis: {} },
    coolDown: { redis: {} }
  }
  const documentOf = (names: ReadonlyArray<string>) => ({
    resources: Object.fromEntries(names.map((name) => [name, section]))
  })
  const three = documentOf(names)

  it.effect("has one message per interval for quota, limiter and cool-down of three resources", () =>
    Effect.gen(function*() {
      const redis = new FakeShared()
      const process = yield* processOf(redis, three)
      for (let passed = 0; passed < 10_000; passed += 5) {
        for (const name of names) yield* Effect.void.pipe(RetryConfig.retry(name), inside(process))
        yield* TestClock.adjust(5)
      }
      assert.isAtMost(redis.messages, 130)
      assert.isAtLeast(redis.commands, 450)
    }))

  it.effect("a bad document changes nothing, and is reported once", () => {
    const lines: Array<string> = []
    const logger = Logger.layer([
      Logger.make(({ logLevel, message }) => void lines.push(`${logLevel}: ${[message].flat().join(" ")}`))
    ])
    const redis = new FakeShared()
    return Effect.gen(function*() {
      const queue = yield* Queue.unbounded<unknown>()
      yield* Queue.offer(queue, orders({ policy: attempts(2), quota: { capacity: 100, redis: {} } }))
      const process = yield* Layer.build(
        RetryConfig.layerStream(Stream.fromQueue(queue)).pipe(
          Layer.provide(RetryConfigRedis.layer),
          Layer.provide(Layer.succeed(Redis.Redis, redis.service))
        )
      )
      yield* call(process)
      for (const _ of [1, 2, 3]) {
        yield* Queue.offer(queue, orders({ quota: { capacity: 10, redis: { timeout: "never" } } }))
      }
      yield* TestClock.adjust("1 second")
      const warnings = lines.filter((line) => line.startsWith("Warn"))
      assert.lengthOf(warnings, 1)
      assert.include(warnings[0], "resources.orders.quota.redis.timeout")
      yield* call(process)
      assert.strictEqual(yield* balance(process), 92)
      const { problem, version } = yield* inside(process)(RetryConfig.status)
      assert.deepStrictEqual([problem?.field, version], ["resources.orders.quota.redis.timeout", 1])
    }).pipe(Effect.provide(logger))
  })

  it.effect("connects in the background when a section is shared, once for all, and not to check a document", () =>
    Effect.gen(function*() {
      const redis = new FakeShared()
      const connections = { made: 0, open: 0 }
      const connecting = RetryConfigRedis.layerConnecting(
        Layer.effect(
          Redis.Redis,
          Effect.acquireRelease(
            Effect.gen(function*() {
              yield* Effect.sleep(20)
              if (++connections.made < 3) return yield* new Redis.RedisError({ cause: new Error("ECONNREFUSED") })
              connections.open++
              return redis.service
            }),
            () => Effect.sync(() => connections.open--)
          )
        )
      )
      yield* Effect.provide(RetryConfig.check(three), connecting)
      yield* Effect.gen(function*() {
        const process = yield* Layer.build(Layer.provide(RetryConfig.layer({}), connecting))
        for (const name of names) yield* Effect.void.pipe(RetryConfig.retry(name), inside(process))
        yield* TestClock.adjust("5 seconds")
        assert.deepStrictEqual(connections, { made: 0, open: 0 })
        yield* change(process, three)
        for (let passed = 0; passed < 5000; passed += 10) {
          for (const name of names) yield* Effect.void.pipe(RetryConfig.retry(name), inside(process))
          yield* TestClock.adjust(10)
        }
        assert.strictEqual(connections.open, 1)
        assert.isAtLeast(redis.quotas.exchanges, 3)
        assert.isAbove(redis.coolDown("cool-down:search").exchanges, 5)
        // What is left to report is reported, in no time.
        yield* Effect.void.pipe(RetryConfig.retry("orders"), inside(process))
      }).pipe(Effect.scoped)
      assert.strictEqual(connections.open, 0)
    }))

  it.effect("whatever interrupts it, nothing of it keeps running", () =>
    Effect.gen(function*() {
      const few = documentOf(firstOf(names, 1))
      const redis = new FakeShared()
      const connections = { open: 0 }
      const connecting = RetryConfigRedis.layerConnecting(
        Layer.effect(
          Redis.Redis,
          Effect.acquireRelease(
            Effect.sync(() => {
              connections.open++
              return redis.service
            }),
            () => Effect.sync(() => connections.open--)
          )
        )
      )
      const program = Effect.gen(function*() {
        yield* Effect.void.pipe(RetryConfig.retry("orders"))
        yield* Effect.sleep(200)
        yield* RetryConfig.set({})
        yield* Effect.void.pipe(RetryConfig.retry("orders"))
        yield* RetryConfig.set(few)
        yield* Effect.void.pipe(RetryConfig.retry("orders"))
      }).pipe(Effect.provide(Layer.provide(RetryConfig.layer(few), connecting)))
      const steps = yield* sweep(program, () =>
        Effect.gen(function*() {
          yield* TestClock.adjust(100)
          assert.strictEqual(connections.open, 0)
          const { commands } = redis
          yield* TestClock.adjust("10 seconds")
          assert.strictEqual(redis.commands, commands)
        }))
      assert.isAtLeast(steps, 20)
    }).pipe(thinned(7)))
})

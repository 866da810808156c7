/** A quota of each call's own limits nothing, and one smaller than a retry pays for none: a warning says so, once. */
import { assert, describe, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  Backoff,
  Hedge,
  InvalidOption,
  ResourceLimiters,
  RetryPolicy,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as SdkModes from "effect-retry/aws/SdkModes"
import * as CircuitBreakerGate from "effect-retry/CircuitBreakerGate"
import * as ClientThrottle from "effect-retry/ClientThrottle"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import * as CoolDownRedis from "effect-retry/CoolDownRedis"
import * as RetryBudget from "effect-retry/RetryBudget"
import * as RetryConfig from "effect-retry/RetryConfig"
import * as RetryPromise from "effect-retry/RetryPromise"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as SendGate from "effect-retry/SendGate"
import * as TokenLimiter from "effect-retry/TokenLimiter"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import * as Redis from "effect/persistence/Redis"
import * as TestClock from "effect/testing/TestClock"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Throttled, TimedOut, Transient } from "../utils/call.ts"
import { FakeCoolDown } from "../utils/fakeCoolDown.ts"
import { FakeRedis } from "../utils/fakeRedis.ts"

const policy = Backoff.fixed(1).pipe(
  RetryPolicy.maxAttempts(3),
  RetryPolicy.whileRetryable,
  RetryPolicy.quotaGated({ cost: 14, timeoutCost: 29 })
)
const options = { capacity: 28 }

/** A service that is down, and what is logged meanwhile. */
const outage = () => {
  const world = { sends: 0, warnings: Array<string>() }
  const call = Effect.suspend(() => {
    world.sends++
    return Effect.fail(new Transient())
  })
  const logger = Logger.make(({ logLevel, message }) => {
    if (logLevel === "Warn") world.warnings.push(String(message))
  })
  return Object.assign(world, {
    call: Effect.exit(withRetry(call, policy)),
    fine: withRetry(Effect.void, policy),
    logs: Logger.layer([logger])
  })
}

const moves = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(self)
    while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust("100 millis")
    return yield* Fiber.join(fiber)
  })

const ownOf = (what: string) => `effect-retry: each call has its own ${what}: docs/sharing.md`
const unshared = ownOf("RetryQuota. Build its layer once, or give its LayerMap an idleTimeToLive")

describe("a quota for each call", () => {
  it("on the clock of the process: 20 calls of Effect.runPromise send 60 times, and one line says why", async () => {
    const down = outage()
    const layer = RetryQuota.layer(options)
    for (let call = 0; call < 20; call++) {
      const provided = Effect.provide(down.call, layer)
      await Effect.runPromise(Effect.provide(provided, down.logs))
    }
    assert.strictEqual(down.sends, 60)
    assert.deepStrictEqual(down.warnings, [unshared])
  })

  it("in a runtime: 20 calls send 22 times, without a warning", async () => {
    const down = outage()
    const runtime = ManagedRuntime.make(RetryQuota.layer(options).pipe(Layer.merge(down.logs)))
    for (let call = 0; call < 20; call++) await runtime.runPromise(down.call)
    await runtime.dispose()
    assert.strictEqual(down.sends, 22)
    assert.deepStrictEqual(down.warnings, [])
  })

  const layer = RetryQuota.layer(options)
  const resources = ResourceLimiters.layer({ quota: options })
  const ofTable = Layer.provide(ResourceLimiters.quota("orders"), resources)
  const perCall: Record<string, () => Layer.Layer<RetryQuota.RetryQuota, unknown>> = {
    "a constant": () => layer,
    "a new layer": () => RetryQuota.layer(options),
    "from configuration": () => RetryQuota.layerConfig({ capacity: Config.succeed(28) }),
    "all of the resources": () => ofTable,
    "all of a configuration": () =>
      Layer.provide(RetryConfig.resource("orders"), RetryConfig.layer({ resources: { orders: { quota: options } } })),
    "over a store": () => RetryQuota.layerStore(RetryBudget.bucket(options)),
    "over gRPC's throttle": () => RetryQuota.layerStore(RetryBudget.grpc()),
    "shared through Redis": () =>
      Layer.provide(
        RetryQuotaRedis.layer({ name: "orders", ...options }),
        Layer.succeed(Redis.Redis, new FakeRedis().service)
      )
  }
  for (const [name, provided] of Object.entries(perCall)) {
    it.effect(`${name}, provided in one program: a warning at the tenth, once`, () => {
      const down = outage()
      return Effect.gen(function*() {
        for (let call = 1; call <= 30; call++) {
          yield* moves(Effect.provide(down.call, provided()))
          assert.deepStrictEqual(down.warnings, call < 10 ? [] : [unshared])
        }
        assert.strictEqual(down.sends, 90)
      }).pipe(Effect.provide(down.logs))
    })
  }

  it.effect("is said of requests with many calls, each with more than ten retries", () => {
    const down = outage()
    const request = Effect.replicateEffect(down.call, 6)
    return Effect.gen(function*() {
      for (let count = 1; count <= 20; count++) {
        yield* moves(Effect.provide(request, RetryQuota.layer()))
        assert.deepStrictEqual(down.warnings, count < 10 ? [] : [unshared])
      }
      assert.strictEqual(down.sends, 20 * 6 * 3)
    }).pipe(Effect.provide(down.logs))
  })

  it.effect("is said of an SDK's mode", () => {
    const down = outage()
    const { layer, policy } = SdkModes.go()
    const call = Effect.exit(withRetry(Effect.fail(new Transient()), policy))
    return Effect.gen(function*() {
      for (let count = 1; count <= 60; count++) {
        const fiber = yield* Effect.forkChild(Effect.provide(call, layer))
        yield* TestClock.adjust("40 seconds")
        yield* Fiber.join(fiber)
      }
      assert.deepStrictEqual(down.warnings, [unshared])
    }).pipe(Effect.provide(down.logs))
  })

  it.effect("warns for concurrent calls too", () => {
    const down = outage()
    const call = Effect.provide(down.call, RetryQuota.layer(options))
    return Effect.gen(function*() {
      yield* moves(Effect.all(Array.from({ length: 20 }, () => call), { concurrency: "unbounded" }))
      assert.deepStrictEqual(down.warnings, [unshared])
    }).pipe(Effect.provide(down.logs))
  })

  it.effect("warns once their total spending would have emptied one", () => {
    const down = outage()
    return Effect.gen(function*() {
      for (let call = 1; call <= 20; call++) {
        yield* moves(Effect.provide(down.call, RetryQuota.layer()))
        assert.strictEqual(down.warnings.length, call * 28 < 500 ? 0 : 1)
      }
    }).pipe(Effect.provide(down.logs))
  })
})

describe("no warning for", () => {
  const quiet: Record<string, (down: ReturnType<typeof outage>) => Effect.Effect<unknown, unknown>> = {
    "calls that succeed": ({ fine }) => Effect.provide(fine, RetryQuota.layer(options)),
    "quotas that are kept for more than a minute": ({ call }) =>
      Effect.andThen(call, Effect.sleep("61 seconds")).pipe(Effect.provide(RetryQuota.layer(options))),
    "calls that come more than a minute apart": ({ call }) =>
      Effect.andThen(Effect.provide(call, RetryQuota.layer(options)), Effect.sleep("61 seconds")),
    "quotas that are made on purpose": ({ call }) =>
      Effect.provideServiceEffect(call, RetryQuota.RetryQuota, RetryQuota.make(options))
  }
  for (const [name, run] of Object.entries(quiet)) {
    it.effect(name, () => {
      const down = outage()
      return Effect.gen(function*() {
        const fiber = yield* Effect.forkChild(Effect.replicateEffect(run(down), 100))
        yield* TestClock.adjust("1 day")
        yield* Fiber.join(fiber)
        assert.deepStrictEqual(down.warnings, [])
      }).pipe(Effect.provide(down.logs))
    })
  }

  const layer = RetryQuota.layer(options)
  const said: Array<string> = []
  for (let test = 0; test < 30; test++) {
    it.effect(`tests that share a layer: ${test}`, () => {
      const down = outage()
      return Effect.gen(function*() {
        yield* moves(Effect.provide(down.call, layer))
        said.push(...down.warnings)
        assert.deepStrictEqual(said, [])
      }).pipe(Effect.provide(down.logs))
    })
  }
})

describe("a gate for each call", () => {
  const once = Backoff.fixed(1).pipe(RetryPolicy.maxAttempts(1))
  const throttled = Effect.exit(withRetry(Effect.fail(new Throttled({ retryAfter: 30_000 })), once))
  const fine = withRetry(Effect.void, once)
  const hedged = Effect.succeed("answer").pipe(Hedge.hedged({ after: 100 }))
  const redis = Layer.succeed(Redis.Redis, new FakeCoolDown().service)
  const gates = [
    ["AdaptiveRateLimiter", AdaptiveRateLimiter.layer({ onExceeded: "fail" }), throttled, fine, 10],
    ["ClientThrottle", ClientThrottle.layer(), throttled, fine, 10],
    ["ConcurrencyLimiter", ConcurrencyLimiter.layer(), throttled, fine, 10],
    ["CoolDown", CoolDown.layer(), throttled, fine, 10],
    ["CoolDown", Layer.provide(CoolDownRedis.layer({ name: "orders" }), redis), throttled, fine, 10],
    ["TokenLimiter", TokenLimiter.layer({ requests: 20 }), fine, Effect.void, 20],
    ["Hedge", Hedge.layer(), hedged, Effect.void, 100]
  ] as const
  for (const [name, layer, learns, learnsNothing, most] of gates) {
    it.effect(`${name}: said after ${most} that had learned something, once`, () => {
      const said: Array<string> = []
      const logger = Logger.make(({ message }) => void said.push(String(message)))
      const run = (call: Effect.Effect<unknown, unknown, any>) =>
        Effect.scoped(Effect.provide(call, layer as Layer.Layer<any>, { local: true }))
      return Effect.gen(function*() {
        for (let call = 0; call < 30; call++) yield* run(learnsNothing)
        assert.deepStrictEqual(said, [])
        for (let call = 1; call <= 2 * most; call++) {
          yield* run(learns)
          assert.deepStrictEqual(
            said,
            call < most ? [] : [ownOf(`${name}. Build its layer once, or give its LayerMap an idleTimeToLive`)],
            String(call)
          )
        }
      }).pipe(Effect.provide(Logger.layer([logger])))
    })
  }
})

describe("what limits nothing when each call has its own, without a warning", () => {
  class OwnGate extends SendGate.Service<OwnGate>()("OwnGate") {}
  const own = Layer.effect(
    OwnGate,
    Effect.sync((): SendGate.SendGate<never> => {
      let sends = 0
      return {
        order: 1,
        enter: (send) => sends++ > 0 ? Effect.interrupt : send.hold({ settle: () => {}, cancel: () => {} }),
        isStrained: () => true
      }
    })
  )
  const breaker = CircuitBreaker.layer({ tripPolicy: CircuitBreaker.consecutive(5), openDuration: "1 minute" }).pipe(
    Layer.provide(CircuitBreaker.layerStoreMemory())
  )
  const twice = Backoff.fixed(1).pipe(RetryPolicy.maxAttempts(2), RetryPolicy.quotaGated({ cost: 1 }))
  // By what limits: the sends of ten calls at the same time, each with its own, and with one for all.
  const rows: Readonly<Record<string, readonly [Layer.Layer<RetryQuota.RetryQuota>, number, number]>> = {
    "RetryBudget.inFlight": [
      RetryQuota.layerStore(RetryBudget.inFlight({ share: 0, atLeast: 1 })),
      20,
      11
    ],
    "ConcurrencyLimiter.fixed": [
      ConcurrencyLimiter.layer({ rule: ConcurrencyLimiter.fixed(1), onExceeded: "fail" }).pipe(
        Layer.merge(RetryQuota.layerUnlimited)
      ),
      20,
      2
    ],
    CircuitBreakerGate: [
      CircuitBreakerGate.layer({ key: "orders" }).pipe(
        Layer.provide(breaker),
        Layer.merge(RetryQuota.layerUnlimited)
      ),
      20,
      10
    ],
    "a gate of one's own": [Layer.merge(own, RetryQuota.layerUnlimited), 10, 1]
  }
  for (const [name, [layer, apart, together]] of Object.entries(rows)) {
    it.effect(name, () => {
      const down = outage()
      const call = Effect.suspend(() => {
        down.sends++
        return Effect.delay(Effect.fail(new Transient()), 1)
      }).pipe(withRetry(twice), Effect.exit)
      const ten = <R>(one: Effect.Effect<unknown, never, R>) =>
        Effect.gen(function*() {
          down.sends = 0
          yield* moves(Effect.all(Array.from({ length: 10 }, () => one), { concurrency: "unbounded" }))
          return down.sends
        })
      return Effect.gen(function*() {
        for (let round = 0; round < 3; round++) {
          assert.strictEqual(yield* ten(Effect.provide(call, layer)), apart)
        }
        assert.strictEqual(yield* Effect.provide(ten(call), layer), together)
        assert.deepStrictEqual(down.warnings, [])
      }).pipe(Effect.provide(down.logs))
    })
  }
})

describe("promises", () => {
  setFlagsFromString("--expose-gc")
  const collect: () => void = runInNewContext("gc")
  /** Collects garbage, and notifies whoever waits for that. */
  const collected = async () => {
    for (let turn = 0; turn < 3; turn++) {
      await new Promise((resolve) => setImmediate(resolve))
      collect()
    }
    await new Promise((resolve) => setImmediate(resolve))
  }
  const fails = () => Promise.reject(new Transient())
  const standard = () => Backoff.fixed(0).pipe(RetryPolicy.maxAttempts(3), RetryPolicy.quotaGated({ cost: 14 }))

  /** What `console.log` gets in an application that has set up no logger. */
  const printed = async (run: () => Promise<unknown>): Promise<ReadonlyArray<string>> => {
    const lines: Array<string> = []
    const { log } = console
    console.log = (...args) => lines.push(args.join(" "))
    try {
      await run()
      await collected()
    } finally {
      console.log = log
    }
    return lines
  }

  it("a policy made for each call of retryPromise: said once", async () => {
    const lines = await printed(async () => {
      for (let call = 0; call < 40; call++) await RetryPromise.retryPromise(fails, standard()).catch(() => {})
    })
    assert.strictEqual(lines.length, 1, lines.join("\n"))
    assert.include(lines[0], ownOf("policy object for retryPromise. Keep the policy in a constant"))
  })

  it("a function made for each call by RetryPromise.make: said once, with the loggers of its context", async () => {
    const said: Array<string> = []
    const logger = Logger.make(({ message }) => void said.push(String(message)))
    const context = Context.make(Logger.CurrentLoggers, new Set([logger]))
    await printed(async () => {
      for (let call = 0; call < 20; call++) {
        await RetryPromise.make(standard(), { quota: { capacity: 28 }, context })(fails).catch(() => {})
      }
    })
    assert.deepStrictEqual(said, [ownOf("function of RetryPromise.make. Make it once")])
  })

  const policies = Array.from({ length: 40 }, standard)
  const policy = standard()
  const quiet: Record<string, () => Promise<unknown>> = {
    "one policy": () => RetryPromise.retryPromise(fails, policy),
    "policies that are kept, such as one for each table": (() => {
      let call = 0
      return () => RetryPromise.retryPromise(fails, policies[call++]!)
    })(),
    "calls that succeed": () => RetryPromise.retryPromise(() => 1, standard()),
    "calls with a quota of their context": () =>
      RetryPromise.retryPromise(fails, standard(), {
        context: Context.make(RetryQuota.RetryQuota, Effect.runSync(RetryQuota.make()))
      })
  }
  for (const [name, run] of Object.entries(quiet)) {
    it(`nothing is said of ${name}`, async () => {
      const lines = await printed(async () => {
        for (let call = 0; call < 40; call++) await run().catch(() => {})
      })
      assert.deepStrictEqual(lines, [])
      assert.strictEqual(policies.length, 40)
    })
  }
})

describe("a quota that holds less than a retry costs", () => {
  it.effect("gets a warning at the first retry that it cannot pay for, once for each cost", () => {
    const down = outage()
    return Effect.gen(function*() {
      const quota = Effect.provide(RetryQuota.layer({ capacity: 13 }))
      yield* moves(quota(Effect.replicateEffect(down.call, 5)))
      assert.strictEqual(down.sends, 5)
      assert.deepStrictEqual(down.warnings, ["effect-retry: a retry costs 14, its RetryQuota holds 13: none is made"])
      yield* moves(quota(Effect.exit(withRetry(Effect.fail(new TimedOut()), policy))))
      assert.strictEqual(down.warnings[1], "effect-retry: a retry costs 29, its RetryQuota holds 13: none is made")
    }).pipe(Effect.provide(down.logs))
  })

  it.effect("gets no warning if it holds exactly as much", () => {
    const down = outage()
    return Effect.gen(function*() {
      yield* moves(down.call)
      assert.strictEqual(down.sends, 2)
      assert.deepStrictEqual(down.warnings, [])
    }).pipe(Effect.provide([RetryQuota.layer({ capacity: 14 }), down.logs]))
  })

  const fallbacks = [[13, true], [14, false]] as const
  for (const [capacity, isSaid] of fallbacks) {
    it.effect(`${isSaid ? "is" : "is not"} said of a fallback of ${capacity} tokens while Redis responds, once`, () => {
      const down = outage()
      const layer = RetryQuotaRedis.layer({ name: "orders", fallback: { capacity } })
      return Effect.gen(function*() {
        yield* moves(Effect.provide(Effect.replicateEffect(down.call, 3), layer))
        assert.strictEqual(down.sends, 9)
        assert.deepStrictEqual(
          down.warnings,
          isSaid
            ? [
              "effect-retry: a retry costs 14, the fallback of its RetryQuota holds 13: none is made while Redis does not respond"
            ]
            : []
        )
      }).pipe(Effect.provide([Layer.succeed(Redis.Redis, new FakeRedis().service), down.logs]))
    })
  }

  it("is refused where policy and capacity are given together", () => {
    const refused = (capacity: number) => {
      try {
        RetryPromise.make(policy, { quota: { capacity } })
        return undefined
      } catch (error) {
        return error instanceof InvalidOption ? error.message : String(error)
      }
    }
    assert.strictEqual(
      refused(13),
      "RetryPromise.make: quota.capacity must be at least 14, the cost of a retry, got 13"
    )
    assert.isUndefined(refused(14))
  })
})

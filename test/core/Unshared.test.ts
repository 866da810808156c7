/** A quota that every call has to itself bounds nothing, and one that is smaller than a retry pays for none: both are said, once. */
import { assert, describe, it } from "@effect/vitest"
import { Backoff, InvalidOption, ResourceLimiters, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as RetryPromise from "effect-retry/RetryPromise"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as TestClock from "effect/testing/TestClock"
import { TimedOut, Transient } from "../utils/call.ts"

const policy = Backoff.fixed({ delay: 1 }).pipe(
  RetryPolicy.maxAttempts(3),
  RetryPolicy.whileRetryable,
  RetryPolicy.quotaGated({ cost: 14, timeoutCost: 29 })
)
const options = { capacity: 28 }

/** A service that is down, and what is said meanwhile. */
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
    yield* TestClock.adjust("1 second")
    return yield* Fiber.join(fiber)
  })

const unshared = "effect-retry: each call has its own RetryQuota. Build its layer once: docs/sharing.md"

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

  it("in a runtime: 20 calls send 22 times, and nothing is said", async () => {
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
    "all of the resources": () => ofTable
  }
  for (const [name, provided] of Object.entries(perCall)) {
    it.effect(`${name}, provided in one program: said at the tenth, once`, () => {
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

  it.effect("is said of calls at the same time too", () => {
    const down = outage()
    const call = Effect.provide(down.call, RetryQuota.layer(options))
    return Effect.gen(function*() {
      yield* moves(Effect.all(Array.from({ length: 20 }, () => call), { concurrency: "unbounded" }))
      assert.deepStrictEqual(down.warnings, [unshared])
    }).pipe(Effect.provide(down.logs))
  })

  it.effect("is said once what they spent together would have emptied one", () => {
    const down = outage()
    return Effect.gen(function*() {
      for (let call = 1; call <= 20; call++) {
        yield* moves(Effect.provide(down.call, RetryQuota.layer()))
        assert.strictEqual(down.warnings.length, call * 28 < 500 ? 0 : 1)
      }
    }).pipe(Effect.provide(down.logs))
  })
})

describe("nothing is said of", () => {
  const quiet: Record<string, (down: ReturnType<typeof outage>) => Effect.Effect<unknown, unknown>> = {
    "calls that succeed": ({ fine }) => Effect.provide(fine, RetryQuota.layer(options)),
    "one quota around all calls of a part of a program": ({ call }) =>
      Effect.replicateEffect(call, 20).pipe(Effect.provide(RetryQuota.layer({ capacity: 500 }))),
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

describe("a quota that holds less than a retry costs", () => {
  it.effect("is said at the first retry that it cannot pay for, once for each cost", () => {
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

  it.effect("is not said of one that holds just as much", () => {
    const down = outage()
    return Effect.gen(function*() {
      yield* moves(down.call)
      assert.strictEqual(down.sends, 2)
      assert.deepStrictEqual(down.warnings, [])
    }).pipe(Effect.provide([RetryQuota.layer({ capacity: 14 }), down.logs]))
  })

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

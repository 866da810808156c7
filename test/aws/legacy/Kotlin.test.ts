import { assert, describe, it } from "@effect/vitest"
import { AdaptiveRateLimiter, RetryClassifier, RetryInfo, type RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as Kotlin from "effect-retry/aws/legacy/Kotlin"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as TestClock from "effect/testing/TestClock"
import * as Example from "../../../examples/legacy-modes.ts"
import { scripted, Terminal, Throttled, TimedOut, Transient } from "../../utils/call.ts"
import { refuses } from "../../utils/refuses.ts"
import {
  drivers,
  playVector,
  type Policy,
  scriptedCall,
  sdkError,
  steppedDelays,
  withRandom
} from "../../utils/vectors.ts"
import { exponentials, kotlinRanges, kotlinThrottling } from "../../vectors/backoff.ts"
import { costs, delays, errors, firstAttempts, hints, presets, type ProviderConfig } from "../../vectors/kotlin.ts"
import { shared2026, standard2026 } from "../../vectors/standard2026.ts"
import { standardClassic } from "../../vectors/standardClassic.ts"

const transient = sdkError({ status: 500 })
const throttling = sdkError({ status: 400, code: "Throttling" })

/** The delays that a configuration gives, with constant randomness. */
const delaysOf = (config: Kotlin.ExponentialBackoffWithJitterConfig, count: number, error = transient, chance = 0) =>
  steppedDelays(Kotlin.exponentialBackoffWithJitter(config), count, error).pipe(
    withRandom(chance),
    Effect.provide(RetryQuota.layerUnlimited)
  )

const providerOf = ({ initialDelayMs, maxBackoffMs, retryAfterMaxOvershootMs, ...config }: ProviderConfig) => ({
  ...config,
  initialDelay: initialDelayMs,
  maxBackoff: maxBackoffMs === "none" ? Infinity : maxBackoffMs,
  retryAfterMaxOvershoot: retryAfterMaxOvershootMs
})

/** Three attempts of a strategy that fail. */
const appliesTo = (
  config: Kotlin.StandardRetryStrategyConfig,
  { delaysMs, error, quotaAfter, quotaBefore, random }: Omit<(typeof presets)[number], "name" | "basis" | "config">
) => {
  const { layer, policy } = Kotlin.standardRetryStrategy(config)
  return Effect.gen(function*() {
    const script = scriptedCall([error, error, error])
    assert.strictEqual(yield* RetryQuota.balance, quotaBefore)
    const fiber = yield* Effect.forkChild(withRetry(script.call, policy), { startImmediately: true })
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual(script.sentAt.slice(1).map((at, send) => at - script.sentAt[send]!), delaysMs)
    assert.strictEqual(yield* Effect.flip(Fiber.join(fiber)), script.errors[2])
    assert.strictEqual(yield* RetryQuota.balance, quotaAfter)
  }).pipe(withRandom(random), Effect.provide(layer))
}

/** The balance while a call that fails with the errors in turn waits for its first retry. */
const balanceAfter = <E, R, Err>(
  errors: ReadonlyArray<E>,
  policy: RetryPolicy.RetryPolicy<unknown, Err, R>
) =>
  Effect.gen(function*() {
    yield* Effect.forkChild(Effect.exit(withRetry(scripted(errors).effect, policy)), { startImmediately: true })
    return yield* RetryQuota.balance
  }).pipe(withRandom(0))

describe("Kotlin", () => {
  describe("defaults", () => {
    it.effect.each(presets)(
      "vector: apply to $name",
      ({ config, delaysMs, error, quotaAfter, quotaBefore, random }) =>
        appliesTo(config, { delaysMs, error, quotaAfter, quotaBefore, random })
    )

    const undefineds = {
      useNewRetries: undefined,
      maxAttempts: undefined,
      enableLongPollingBackoff: undefined,
      tokenBucket: { useNewRetries: undefined, maxCapacity: undefined, retryCost: undefined },
      delayProvider: { useNewRetries: undefined, initialDelay: undefined, maxBackoff: undefined }
    }
    it.effect("apply to undefined fields", () => appliesTo(undefineds, presets.find(({ name }) => name === "nothing")!))

    it.effect("give a success 1 token back, and never more than 500", () =>
      Effect.gen(function*() {
        const { layer, policy } = Kotlin.standardRetryStrategy()
        yield* Effect.gen(function*() {
          yield* RetryQuota.reserve(2)
          const balances: Array<number> = []
          for (let call = 0; call < 3; call++) {
            yield* withRetry(Effect.void, policy)
            balances.push(yield* RetryQuota.balance)
          }
          assert.deepStrictEqual(balances, [499, 500, 500])
        }).pipe(Effect.provide(layer))
      }))
  })

  describe("exponentialBackoffWithJitter", () => {
    it.effect.each(exponentials.filter(({ name }) => name.startsWith("Kotlin")))(
      "vector: $name",
      ({ base, cap, delays }) =>
        Effect.gen(function*() {
          const config = { initialDelay: base, scaleFactor: 2, jitter: 0, maxBackoff: cap ?? Infinity }
          assert.deepStrictEqual(yield* delaysOf(config, delays.length), delays)
        })
    )

    it.effect("vector: Kotlin, throttling", () =>
      Effect.gen(function*() {
        const { base, delays, throttlingBase } = kotlinThrottling
        const config = { initialDelay: base, scaleFactor: 2, jitter: 0, maxBackoff: Duration.infinity }
        assert.deepStrictEqual(yield* delaysOf(config, 3, throttling), delays)
        assert.deepStrictEqual(
          yield* delaysOf({ ...config, throttlingBaseDelay: throttlingBase }, 3, throttling),
          delays
        )
        assert.deepStrictEqual(yield* delaysOf({ ...config, throttlingBaseDelay: 7 }, 3, throttling), [7, 14, 28])
      }))

    it.effect("vector: Kotlin, jitter 0.6", () =>
      Effect.gen(function*() {
        const { base, jitter, ranges } = kotlinRanges
        const config = { initialDelay: base, scaleFactor: 2, jitter, maxBackoff: "Infinity" } as const
        const count = ranges.length
        assert.deepStrictEqual(yield* delaysOf(config, count, transient, 0), ranges.map(([, highest]) => highest))
        assert.deepStrictEqual(yield* delaysOf(config, count, transient, 1), ranges.map(([lowest]) => lowest))
        const drawn = yield* steppedDelays(Kotlin.exponentialBackoffWithJitter(config), count, transient).pipe(
          Random.withSeed("kotlin"),
          Effect.provide(RetryQuota.layerUnlimited)
        )
        for (const [retry, [lowest, highest]] of ranges.entries()) {
          assert.isTrue(lowest <= drawn[retry]! && drawn[retry]! <= highest)
        }
      }))

    it.effect.each(delays)("vector: $name", ({ config, delaysMs, random }) =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* delaysOf(providerOf(config), delaysMs.length, transient, random), delaysMs)
      }))

    it.effect("saturates", () =>
      Effect.gen(function*() {
        assert.strictEqual((yield* delaysOf({ scaleFactor: 10 }, 1100)).at(-1), 20_000)
        const endless = yield* delaysOf({ scaleFactor: 10, maxBackoff: Infinity }, 1100)
        assert.strictEqual(endless.at(-1), Number.MAX_SAFE_INTEGER)
      }))

    it.effect.each(hints)(
      "vector: a hint of $retryAfterMs ms leads to $delayMs ms",
      ({ config, delayMs, random, retryAfterMs }) =>
        Effect.gen(function*() {
          const retryAfter = retryAfterMs ?? undefined
          class Hinted extends RetryInfo.TaggedError("Hinted", { fault: "server", retryAfter }) {}
          const policy = Kotlin.exponentialBackoffWithJitter(providerOf(config))
          const call = scripted([new Hinted()])
          const fiber = yield* Effect.forkChild(withRetry(call.effect, policy), { startImmediately: true })
          yield* TestClock.adjust(delayMs - 1)
          assert.isUndefined(fiber.pollUnsafe())
          yield* TestClock.adjust(1)
          assert.deepStrictEqual(fiber.pollUnsafe(), Exit.succeed("ok"))
        }).pipe(withRandom(random))
    )

    const hinted = { $metadata: { httpStatusCode: 503 }, $response: { headers: { "x-amz-retry-after": "1500" } } }
    const followed: ReadonlyArray<readonly [string, Kotlin.StandardRetryStrategyConfig, number]> = [
      ["2.0 follows", {}, 1500],
      ["2.0 follows up to its bound", { delayProvider: { retryAfterMaxOvershoot: 900 } }, 910],
      ["2.1 follows", { useNewRetries: true }, 1500],
      [
        "delays of 2.0 in a strategy of 2.1 follow",
        { useNewRetries: true, delayProvider: { useNewRetries: false } },
        1500
      ]
    ]
    it.effect.each(followed)("%s a hint", ([, config, delay]) => {
      const { layer, policy } = Kotlin.standardRetryStrategy(config)
      return Effect.gen(function*() {
        const call = scripted([hinted])
        const sent = Effect.andThen(call.effect, Clock.currentTimeMillis)
        const fiber = yield* Effect.forkChild(withRetry(sent, policy), { startImmediately: true })
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(yield* Fiber.join(fiber), delay)
      }).pipe(withRandom(0), Effect.provide(layer))
    })
  })

  for (const driver of drivers) {
    describe(`standardRetryStrategy, by ${driver.name}`, () => {
      it.effect.each(standardClassic)("vector: classic $name", (vector) => {
        const { maxAttempts, maxBackoff } = vector.given
        const { policy } = Kotlin.standardRetryStrategy({
          maxAttempts,
          delayProvider: { initialDelay: "1 second", scaleFactor: 2, jitter: 0, maxBackoff }
        })
        return playVector(vector, policy, driver)
      })

      it.effect.each(standard2026)("vector: 2026 $name", (vector) => {
        const { dynamoDB, longPolling, maxAttempts, maxBackoff } = vector.given
        const { policy } = Kotlin.standardRetryStrategy({
          useNewRetries: true,
          maxAttempts: dynamoDB ? 4 : maxAttempts,
          delayProvider: { initialDelay: dynamoDB && "25 millis", jitter: 0, maxBackoff },
          enableLongPollingBackoff: longPolling
        })
        return playVector(vector, policy, driver)
      })

      it.effect("vector: 2026 9 shared multi-threaded scenarios", () => {
        const { layer, policy } = Kotlin.standardRetryStrategy({
          useNewRetries: true,
          maxAttempts: shared2026.given.maxAttempts,
          delayProvider: { jitter: 0 }
        })
        return Effect.gen(function*() {
          const calls = shared2026.calls.map(({ statuses }) =>
            driver.run(scriptedCall(statuses.map((status) => ({ status }))).call, policy, () => {})
          )
          const fiber = yield* Effect.forkChild(Effect.all(calls, { concurrency: "unbounded" }))
          yield* TestClock.adjust("150 millis")
          assert.deepStrictEqual(fiber.pollUnsafe(), Exit.succeed([200, 200]))
          assert.strictEqual(yield* RetryQuota.balance, shared2026.finalQuota)
        }).pipe(Effect.provide(layer))
      })
    })
  }

  describe("tokenBucket", () => {
    const modelled = { name: "Odd", $fault: "server", $retryable: {}, $metadata: { httpStatusCode: 501 } }
    const clientSide = { ...modelled, $fault: "client" }
    const typed = { Throttling: throttling, Transient: transient, ClientSide: clientSide, ServerSide: modelled }
    const reset = Object.assign(new Error("reset"), { code: "ECONNRESET" })

    describe.each([["classic", false], ["new", true]] as const)("%s", (behavior, useNewRetries) => {
      const cost = (error: unknown, config: Kotlin.StandardRetryTokenBucketConfig) =>
        Effect.suspend(() => {
          const { layer, policy } = Kotlin.standardRetryStrategy({ tokenBucket: { useNewRetries, ...config } })
          const full = config.maxCapacity!
          return Effect.map(balanceAfter([error], policy), (balance) => full - balance).pipe(Effect.provide(layer))
        })
      const underKotlin = Effect.provide(RetryClassifier.layer(Kotlin.awsRetryPolicy))

      it.effect.each(costs)(
        "vector: charges for $errorType",
        ({ config, errorType, ...expected }) =>
          Effect.gen(function*() {
            assert.strictEqual(yield* underKotlin(cost(typed[errorType], config)), expected[behavior])
          })
      )

      // What the classifiers make of errors: Transient by Kotlin, and timeouts alone by default.
      const [{ config }] = costs as [(typeof costs)[number]]
      const [server, transientCost] = ["ServerSide", "Transient"].map((type) =>
        costs.find(({ errorType }) => errorType === type)![behavior]
      ) as [number, number]
      it.effect.each(
        [
          ["a throttle", throttling, costs[0]![behavior], costs[0]![behavior]],
          ["a status", transient, server, transientCost],
          ["the client's fault", clientSide, server, server],
          ["the server's fault", modelled, server, server],
          ["a timeout", new TimedOut(), transientCost, transientCost],
          ["the network", reset, server, transientCost],
          ["no error to retry", new Terminal(), 0, 0]
        ] as const
      )("charges for %s by the classifier", ([, error, byDefault, byKotlin]) =>
        Effect.gen(function*() {
          assert.strictEqual(yield* cost(error, config), byDefault)
          assert.strictEqual(yield* underKotlin(cost(error, config)), byKotlin)
        }))
    })

    it.effect.each(firstAttempts)(
      "vector: a first attempt $name",
      ({ config, failures, quotaAfter, quotaDuring }) =>
        Effect.gen(function*() {
          const { layer, policy } = Kotlin.standardRetryStrategy({ tokenBucket: config })
          yield* Effect.gen(function*() {
            const { effect } = scripted(
              failures.map((failure) => failure === "final" ? new Terminal() : new Transient())
            )
            const seen: Array<number> = []
            const call = Effect.andThen(
              Effect.tap(RetryQuota.balance, (now) => Effect.sync(() => seen.push(now))),
              effect
            )
            const fiber = yield* Effect.forkChild(Effect.exit(withRetry(call, policy)))
            yield* TestClock.adjust("1 minute")
            assert.isDefined(fiber.pollUnsafe())
            assert.strictEqual(seen[0], quotaDuring)
            assert.strictEqual(yield* RetryQuota.balance, quotaAfter)
          }).pipe(Effect.provide(layer))
        })
    )

    it.effect("refuses a first attempt with QuotaExhausted in circuit-breaker mode", () =>
      Effect.gen(function*() {
        const { layer, policy } = Kotlin.standardRetryStrategy({ tokenBucket: { maxCapacity: 10, initialTryCost: 10 } })
        yield* Effect.gen(function*() {
          let sends = 0
          const call = withRetry(Effect.suspend(() => (++sends, Effect.fail(new Terminal()))), policy)
          yield* Effect.exit(call)
          const exit = yield* Effect.exit(call)
          const error = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
          assert.instanceOf(error, RetryQuota.QuotaExhausted)
          assert.deepStrictEqual([error.cost, error.balance, sends], [10, 0, 1])
        }).pipe(Effect.provide(layer))
      }))

    it.effect("refills in circuit-breaker mode too, and keeps the fraction that Kotlin drops", () =>
      Effect.gen(function*() {
        const { layer } = Kotlin.standardRetryStrategy({ tokenBucket: { maxCapacity: 10, refillUnitsPerSecond: 10 } })
        yield* Effect.gen(function*() {
          assert.isTrue(Option.isSome(yield* RetryQuota.reserve(5)))
          yield* TestClock.adjust(250)
          assert.isTrue(Option.isSome(yield* RetryQuota.reserve(5)))
          assert.closeTo(yield* RetryQuota.balance, 2.5, 1e-9)
          assert.isTrue(Option.isNone(yield* RetryQuota.reserve(5)))
        }).pipe(Effect.provide(layer))
      }))

    const modes: ReadonlyArray<readonly [Kotlin.StandardRetryTokenBucketConfig, "stop" | "wait"]> = [
      [{}, "stop"],
      [{ useCircuitBreakerMode: false }, "stop"],
      [{ useCircuitBreakerMode: false, refillUnitsPerSecond: 0 }, "stop"],
      [{ useCircuitBreakerMode: false, refillUnitsPerSecond: 1 }, "wait"],
      [{ useCircuitBreakerMode: true, refillUnitsPerSecond: 1 }, "stop"],
      [{ refillUnitsPerSecond: 1 }, "stop"]
    ]
    it.effect.each(modes)("%j is onExceeded: %s", ([config, onExceeded]) =>
      Effect.gen(function*() {
        const quota = yield* RetryQuota.RetryQuota
        assert.strictEqual(quota.onExceeded, onExceeded)
      }).pipe(Effect.provide(Kotlin.standardRetryStrategy({ tokenBucket: config }).layer)))

    it.effect("takes a cost above the capacity in circuit-breaker mode, and then never retries", () => {
      const { layer, policy } = Kotlin.standardRetryStrategy({ tokenBucket: { maxCapacity: 4 } })
      return Effect.gen(function*() {
        const call = scripted([new Transient()])
        assert.isTrue(Exit.isFailure(yield* Effect.exit(withRetry(call.effect, policy))))
        assert.strictEqual(call.sends, 1)
      }).pipe(Effect.provide(layer))
    })
  })

  describe("useCircuitBreakerMode: false", () => {
    // 10 tokens take 3333.3 ms; Kotlin would wait 4 s and forget what flowed in meanwhile.
    const waiting = (config: Kotlin.StandardRetryTokenBucketConfig = {}) =>
      Kotlin.standardRetryStrategy({
        tokenBucket: {
          useCircuitBreakerMode: false,
          maxCapacity: 20,
          refillUnitsPerSecond: 3,
          retryCost: 10,
          ...config
        },
        delayProvider: { initialDelay: 0 }
      })
    /** A call that fails, is retried, notes when that is, and fails for good. */
    const retriedAt = (policy: Policy, sent: Array<readonly [string, number]>, name: string) => {
      let sends = 0
      return withRetry(
        Effect.flatMap(Clock.currentTimeMillis, (now): Effect.Effect<never, Transient | Terminal> => {
          if (++sends === 1) return Effect.fail(new Transient())
          sent.push([name, now])
          return Effect.fail(new Terminal())
        }),
        policy
      )
    }

    it.effect("waits to the millisecond, first come, first served, and loses no refill", () => {
      const { layer, policy } = waiting()
      return Effect.gen(function*() {
        const sent: Array<readonly [string, number]> = []
        for (const name of ["at once", "too", "first", "second", "third"]) {
          yield* Effect.forkChild(retriedAt(policy, sent, name), { startImmediately: true })
        }
        yield* TestClock.adjust(3333)
        assert.deepStrictEqual(sent, [["at once", 0], ["too", 0]])
        yield* TestClock.adjust(1)
        assert.deepStrictEqual(sent.slice(2), [["first", 3334]])
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual(sent.slice(3), [["second", 6667], ["third", 10_000]])
      }).pipe(Effect.provide(layer))
    })

    it.effect("keeps the fractions of a refill that is looked at often", () => {
      const { layer, policy } = waiting()
      return Effect.gen(function*() {
        const sent: Array<readonly [string, number]> = []
        yield* RetryQuota.reserve(20)
        yield* Effect.forkChild(retriedAt(policy, sent, "first"), { startImmediately: true })
        for (let look = 0; look < 3333; look++) {
          yield* RetryQuota.balance
          yield* TestClock.adjust(1)
        }
        assert.deepStrictEqual(sent, [])
        yield* TestClock.adjust(1)
        assert.deepStrictEqual(sent, [["first", 3334]])
      }).pipe(Effect.provide(layer))
    })

    for (
      const [who, interrupted, left] of [
        ["first", 0, [["second", 3334], ["third", 6667]]],
        ["second", 1, [["first", 3334], ["third", 6667]]],
        ["last", 2, [["first", 3334], ["second", 6667]]]
      ] as const
    ) {
      it.effect(`lets the others move up when the ${who} waiter is interrupted`, () => {
        const { layer, policy } = waiting()
        return Effect.gen(function*() {
          const sent: Array<readonly [string, number]> = []
          yield* RetryQuota.reserve(20)
          const fibers = yield* Effect.forEach(
            ["first", "second", "third"],
            (name) => Effect.forkChild(retriedAt(policy, sent, name), { startImmediately: true })
          )
          yield* TestClock.adjust(1000)
          yield* Fiber.interrupt(fibers[interrupted]!)
          yield* TestClock.adjust("1 minute")
          assert.deepStrictEqual(sent, [...left])
          assert.strictEqual(yield* RetryQuota.balance, 20)
        }).pipe(Effect.provide(layer))
      })
    }

    it.effect("holds back first attempts that cost tokens", () => {
      const { layer, policy } = waiting({
        maxCapacity: 10,
        initialTryCost: 10,
        initialTrySuccessIncrement: 0,
        refillUnitsPerSecond: 10
      })
      return Effect.gen(function*() {
        const times = Effect.forEach([1, 2, 3], () => withRetry(Clock.currentTimeMillis, policy))
        const fiber = yield* Effect.forkChild(times)
        yield* TestClock.adjust("2 seconds")
        assert.deepStrictEqual(yield* Fiber.join(fiber), [0, 1000, 2000])
      }).pipe(Effect.provide(layer))
    })

    it.effect("backs off after the wait", () => {
      const { layer, policy } = Kotlin.standardRetryStrategy({
        tokenBucket: { useCircuitBreakerMode: false, maxCapacity: 10, refillUnitsPerSecond: 3, retryCost: 10 },
        delayProvider: { initialDelay: "1 second", jitter: 0 }
      })
      return Effect.gen(function*() {
        yield* RetryQuota.reserve(10)
        const sent: Array<readonly [string, number]> = []
        yield* Effect.forkChild(retriedAt(policy, sent, "call"), { startImmediately: true })
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual(sent, [["call", 4334]])
      }).pipe(Effect.provide(layer))
    })
  })

  describe("adaptiveRetryStrategy", () => {
    type Seen = Partial<AdaptiveRateLimiter.State>
    const seen: ReadonlyArray<readonly [AdaptiveRateLimiter.Options, Seen]> = [
      [{}, { measuredTxRate: 0.8, fillRate: 0.56, maxCapacity: 1, timeWindow: Math.cbrt(0.6) }],
      [{ beta: 0.9 }, { fillRate: 0.72, timeWindow: Math.cbrt(0.2) }],
      [{ measurementBucketDuration: "2 seconds" }, { measuredTxRate: 0 }],
      [{ minCapacity: 4 }, { maxCapacity: 4 }],
      [{ minFillRate: 2 }, { fillRate: 2 }],
      [{ scaleConstant: 3.2 }, { timeWindow: Math.cbrt(0.075) }],
      [{ smoothing: 0.5 }, { measuredTxRate: 0.5 }]
    ]
    it.effect.each(seen)(
      "a throttle after a second, with rateLimiter %j",
      ([rateLimiter, expected]) =>
        Effect.gen(function*() {
          yield* TestClock.adjust("1 second")
          yield* AdaptiveRateLimiter.update(true)
          const state = yield* AdaptiveRateLimiter.state
          for (const [name, value] of Object.entries(expected)) {
            assert.closeTo(state[name as keyof Seen] as number, value as number, 1e-9, name)
          }
        }).pipe(Effect.provide(Kotlin.adaptiveRetryStrategy({ rateLimiter }).layer))
    )

    it.effect("holds sends back after a throttle, and charges the quota as the standard one", () => {
      const { layer, policy } = Kotlin.adaptiveRetryStrategy({ delayProvider: { jitter: 0 } })
      return Effect.gen(function*() {
        const call = scripted([new Throttled({})])
        const fiber = yield* Effect.forkChild(withRetry(Effect.andThen(call.effect, Clock.currentTimeMillis), policy))
        yield* TestClock.adjust(0)
        assert.strictEqual(yield* RetryQuota.balance, 490)
        yield* TestClock.adjust("1 minute")
        // The bucket starts empty at 0.5 tokens a second; the backoff of 1 s passes first.
        assert.strictEqual(yield* Fiber.join(fiber), 2000)
        assert.strictEqual(yield* RetryQuota.balance, 500)
      }).pipe(Effect.provide(layer))
    })
  })

  describe("awsRetryPolicy", () => {
    type Kind = (typeof errors)[number]["errorType"]
    const status = (httpStatusCode: number, rest = {}) => ({ name: "Odd", $metadata: { httpStatusCode }, ...rest })
    class Modelled extends RetryInfo.TaggedError("Modelled", { fault: "client" }) {}
    class Vague extends RetryInfo.TaggedError("Vague") {}
    const kinds: ReadonlyArray<readonly [string, unknown, Kind]> = [
      ["IDPCommunicationError, modelled", { Code: "IDPCommunicationError", $retryable: {} }, "Transient"],
      ["own facts, the server's fault", new Transient(), "ServerSide or ClientSide"],
      ["own facts, the client's fault", new Modelled(), "ServerSide or ClientSide"],
      ["own facts, nobody's fault", new Vague(), "Transient"],
      ["own facts, a throttle", new Throttled({}), "Throttling"],
      ["own facts, not to be retried", new Terminal(), "none"],
      ["a timeout", new TimedOut(), "Transient"],
      ["a timeout of Effect", new Cause.TimeoutError(), "Transient"],
      ["a rate limiter of Effect", { _tag: "RateLimiterError", reason: { _tag: "RateLimitExceeded" } }, "Throttling"],
      ["a query that may run again", { _tag: "SqlError", isRetryable: true }, "Transient"],
      ["a cause", new Error("failed", { cause: status(500) }), "Transient"],
      ["an error of any other shape", new Error("odd"), "none"],
      ["null", null, "none"]
    ]
    const kindOf = (error: unknown): Kind => {
      const info = Option.getOrElse(Kotlin.awsRetryPolicy(error), () => RetryInfo.notRetryable)
      if (info.safety === "No") return info.timeout ? "Transient" : "none"
      return info.throttling ? "Throttling" : info.timeout ? "Transient" : "ServerSide or ClientSide"
    }
    it.each(errors)("vector: $error is $errorType", ({ error, errorType }) => {
      assert.strictEqual(kindOf(sdkError(error)), errorType)
    })

    it.each(kinds)("%s is %s", (_, error, kind) => {
      assert.strictEqual(kindOf(error), kind)
    })

    it("an error that throws is not classified", () => {
      assert.strictEqual(kindOf(new Proxy({}, { get: () => assert.fail("looked at") })), "none")
    })

    it("leaves the facts of a throttle as they are", () => {
      assert.deepStrictEqual(Kotlin.awsRetryPolicy(throttling), Option.some(RetryInfo.throttled()))
      assert.deepStrictEqual(Kotlin.awsRetryPolicy(new Throttled({})), RetryInfo.fromError(new Throttled({})))
    })

    it("keeps the hint", () => {
      const error = { ...status(503), $response: { headers: { "x-amz-retry-after": "1500" } } }
      const info = Option.getOrThrow(Kotlin.awsRetryPolicy(error))
      assert.strictEqual(Duration.toMillis(info.retryAfter!), 1500)
    })
  })

  describe("refuses", () => {
    type Config = Kotlin.AdaptiveRetryStrategyConfig
    const waits = { useCircuitBreakerMode: false, refillUnitsPerSecond: 1, maxCapacity: 20 }
    const bad: Array<readonly [field: string, value: unknown, around?: object]> = [
      ...[0, -1, 1.5, NaN, "3"].map((value) => ["maxAttempts", value] as const),
      ...["true", 1, null].map((value) => ["useNewRetries", value] as const),
      ...["true", null].map((value) => ["enableLongPollingBackoff", value] as const),
      ...["none", 5, null].flatMap((value) => ["tokenBucket", "delayProvider"].map((field) => [field, value] as const)),
      ["tokenBucket.useNewRetries", "true"],
      ["tokenBucket.useCircuitBreakerMode", "false"],
      ...[0, 0.5, -1, NaN, Infinity, "500"].map((value) => ["tokenBucket.maxCapacity", value] as const),
      ...[-1, NaN, Infinity].map((value) => ["tokenBucket.refillUnitsPerSecond", value] as const),
      ...[-1, NaN, 501].map((value) => ["tokenBucket.initialTryCost", value] as const),
      ...[-1, NaN, 501].map((value) => ["tokenBucket.initialTrySuccessIncrement", value] as const),
      ...[-1, NaN, Infinity].map((value) => ["tokenBucket.retryCost", value] as const),
      ...[-1, NaN, Infinity].map((value) => ["tokenBucket.timeoutRetryCost", value] as const),
      ["tokenBucket.retryCost", 21, waits],
      ["tokenBucket.timeoutRetryCost", 21, waits],
      ["delayProvider.useNewRetries", 1],
      ...[-1, NaN, Infinity, "soon"].map((value) => ["delayProvider.initialDelay", value] as const),
      ...[-1, NaN, Infinity].map((value) => ["delayProvider.throttlingBaseDelay", value] as const),
      ...[0.99, 0, -1, NaN, Infinity].map((value) => ["delayProvider.scaleFactor", value] as const),
      ...[-0.1, 1.1, NaN].map((value) => ["delayProvider.jitter", value] as const),
      ...[-1, NaN, "-Infinity", "long"].map((value) => ["delayProvider.maxBackoff", value] as const),
      ...[-1, NaN, Infinity].map((value) => ["delayProvider.retryAfterMaxOvershoot", value] as const)
    ]
    it.each(bad.map(([path, value, around]) => ({ path, value, around })))(
      "$path: $value",
      ({ around, path, value }) => {
        const [first, second] = path.split(".") as [string, string?]
        const inner = { ...around, [second ?? first]: value }
        const config: Config = second === undefined ? inner : { [first]: inner }
        refuses(() => Kotlin.adaptiveRetryStrategy(config), {
          constructorName: "Kotlin.adaptiveRetryStrategy",
          field: path,
          value
        })
        refuses(() => Kotlin.standardRetryStrategy(config), {
          constructorName: "Kotlin.standardRetryStrategy",
          field: path,
          value
        })
      }
    )

    it("what the delays or the limiter refuse, in their names", () => {
      refuses(() => Kotlin.exponentialBackoffWithJitter({ jitter: 2 }), {
        constructorName: "Kotlin.exponentialBackoffWithJitter",
        field: "jitter"
      })
      refuses(() => Kotlin.adaptiveRetryStrategy({ rateLimiter: { beta: 1 } }), {
        constructorName: "AdaptiveRateLimiter.make",
        field: "beta"
      })
    })

    it("nothing at the edges", () => {
      Kotlin.adaptiveRetryStrategy({
        maxAttempts: 1,
        tokenBucket: {
          ...waits,
          retryCost: 20,
          timeoutRetryCost: 0,
          initialTryCost: 20,
          initialTrySuccessIncrement: 20
        },
        delayProvider: { initialDelay: 0, throttlingBaseDelay: 0, scaleFactor: 1, jitter: 1, maxBackoff: 0 },
        rateLimiter: { smoothing: 1 }
      })
      Kotlin.standardRetryStrategy({ maxAttempts: Infinity, tokenBucket: { maxCapacity: 1, retryCost: 1000 } })
    })
  })

  it.effect("the example waits for the refill, and is charged as a Kotlin client", () =>
    Effect.gen(function*() {
      yield* RetryQuota.reserve(95)
      const call = scripted([{ $metadata: { httpStatusCode: 503 } }])
      const sent = Effect.map(Effect.andThen(call.effect, Clock.currentTimeMillis), String)
      const fiber = yield* Effect.forkChild(Example.asKotlin(sent))
      yield* TestClock.adjust("1 second")
      // 5 tokens are missing, at 10 a second; then 25 ms pass.
      assert.strictEqual(yield* Fiber.join(fiber), "525")
      assert.strictEqual(yield* RetryQuota.balance, 15)
    }).pipe(withRandom(0), Effect.provide(Example.kotlin)))
})

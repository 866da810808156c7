import { AdaptiveRateLimiter, Backoff, RetryPolicy, RetryQuota, RetryQuotaStore, withRetry } from "effect-retry"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as Kit from "effect-retry/testing"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as TestClock from "effect/testing/TestClock"
import { FakeRedis } from "../../utils/fakeRedis.ts"
import { CountedClock } from "../utils/clocks.ts"
import type { Send } from "./sweep.ts"

type Shared = RetryQuota.RetryQuota | AdaptiveRateLimiter.AdaptiveRateLimiter

/** What is interrupted at every step and in every wait, with a quota in a Redis that takes 5 ms to answer. */
export interface RedisSweep {
  readonly options?: Partial<RetryQuotaRedis.Options>
  readonly driver?: (call: Send) => Effect.Effect<unknown, unknown, Shared>
  readonly outcomes?: ReadonlyArray<Kit.Outcome<void, Kit.Transient | Kit.Throttled>>
  readonly layer?: (
    options: RetryQuotaRedis.Options,
    redis: Redis.Redis["Service"]
  ) => Layer.Layer<RetryQuota.RetryQuota>
}

const capacity = 500
const cost = 5

const policy = Backoff.fixed(20).pipe(
  RetryPolicy.maxAttempts(3),
  RetryPolicy.whileRetryable,
  RetryPolicy.quotaGated({ cost }),
  RetryPolicy.requires(AdaptiveRateLimiter.AdaptiveRateLimiter)
)

const waits = { onExceeded: "wait", refillPerSecond: 1e-6 } as const

/** Calls with a quota in Redis, by name. */
export const redisSweeps: Readonly<Record<string, RedisSweep>> = {
  "RetryQuotaRedis.make: a call that fails": { outcomes: [] },
  "RetryQuotaRedis.make: a call that fails, at a quota that waits": { outcomes: [], options: waits },
  "RetryQuotaRedis.make: a call that succeeds": {},
  "RetryQuotaRedis.make: a call that succeeds, at a quota that waits": { options: waits },
  "RetryQuotaRedis.make: a call that succeeds at once": { outcomes: [Kit.ok()] },
  "RetryQuotaRedis.make: a call whose first attempt is paid for": { options: { firstAttemptCost: 3 } },
  "RetryQuotaRedis.make: a call whose first attempt is paid for, at a quota that waits": {
    options: { firstAttemptCost: 3, ...waits }
  },
  "RetryQuotaRedis.make: a strategy": {
    driver: (call) => Effect.provide(RetryStrategy.run(call), RetryStrategy.layer(policy))
  },
  "RetryQuotaRedis.layer": {
    layer: (options, redis) => Layer.provide(RetryQuotaRedis.layer(options), Layer.succeed(Redis.Redis, redis))
  },
  "RetryQuotaRedis.layerStore": {
    layer: (options, redis) =>
      RetryQuota.layerStore(RetryQuotaStore.Store).pipe(
        Layer.provide(RetryQuotaRedis.layerStore(options)),
        Layer.provide(Layer.succeed(Redis.Redis, redis))
      )
  },
  "RetryQuotaRedis.layerConfig": {
    layer: (options, redis) =>
      Layer.orDie(Layer.provide(
        RetryQuotaRedis.layerConfig(Config.succeed(options)),
        Layer.succeed(Redis.Redis, redis)
      ))
  },
  "RetryQuotaRedis.layerConnecting": {
    layer: (options, redis) => RetryQuotaRedis.layerConnecting(options, Layer.succeed(Redis.Redis, redis))
  }
}

const script = [Kit.transient, Kit.throttled, Kit.ok()]

/** What a call may have cost after so many sends: between the moment a send leaves and its first step there is a step. */
const costs = (sends: number, firstAttemptCost: number, succeeds: boolean): ReadonlySet<number> => {
  const last = succeeds ? script.length : Infinity
  const begun = [sends, sends + 1].filter((many) => many <= 3)
  const spent = begun.map((many) => many === 0 ? 0 : firstAttemptCost + (many - 1) * cost)
  return new Set(sends === last ? [...spent, firstAttemptCost + (sends - 2) * cost] : spent)
}

/** A limiter with send tokens that must last. */
const tokens = 100_000
const limited = Kit.TestLimiter.layer({ fillRate: 1e-6, minFillRate: 1e-6, minCapacity: tokens, tokens })

/** The limiter, except that responses change nothing: they would add tokens. */
const steady = (limiter: AdaptiveRateLimiter.Service): AdaptiveRateLimiter.Service => {
  const gate = limiter.gate!
  return {
    ...limiter,
    gate: {
      order: gate.order,
      enter: (send) => {
        const { attempt, context, nowMillis } = send
        const hold: typeof send.hold = (pass) => send.hold({ cancel: () => pass.cancel(), settle: () => {} })
        return gate.enter({ attempt, context, nowMillis, hold })
      }
    }
  }
}

/** Interrupts; returns how often, and what went wrong. */
export const sweptInRedis = (sweep: RedisSweep) =>
  Effect.gen(function*() {
    const { driver = (call: Send) => withRetry(call, policy), layer, outcomes = script } = sweep
    const redis = new FakeRedis()
    redis.latencyMillis = 5
    const options = {
      name: "test",
      capacity,
      successIncrement: 0,
      flushInterval: "10 millis",
      ...sweep.options
    } as const
    const made = layer === undefined
      ? Effect.provideService(RetryQuotaRedis.make(options), Redis.Redis, redis.service)
      : Effect.map(Layer.build(layer(options, redis.service)), Context.get(RetryQuota.RetryQuota))
    const quota = yield* made
    yield* redis.hurryAtTheEnd
    const limiter = yield* AdaptiveRateLimiter.AdaptiveRateLimiter
    yield* TestClock.adjust(100)
    const wrong = new Set<string>()
    let sendTokens = tokens
    let sends = 0
    let counted: CountedClock | undefined
    const program = Effect.clockWith((clock) => {
      counted = new CountedClock(clock)
      const { send } = outcomes.length === 0
        ? Kit.outcomes([Kit.transient], { latency: 10, afterwards: "repeat" })
        : Kit.outcomes(outcomes, { latency: 10 })
      const call = Effect.suspend(() => {
        sends++
        return send
      })
      const driven = Effect.provideService(driver(call), AdaptiveRateLimiter.AdaptiveRateLimiter, steady(limiter))
      return counted.provide(Effect.provideService(driven, RetryQuota.RetryQuota, quota))
    })
    const check = Effect.gen(function*() {
      yield* TestClock.adjust(40)
      const { capacity: left, waiting } = yield* limiter.state
      const spent = capacity - Math.round(redis.states.get("retry-quota:test")?.tokens ?? capacity)
      const found = {
        leases: redis.leases("retry-quota:test"),
        timers: counted?.asleep ?? 0,
        waiting,
        lost: costs(sends, options.firstAttemptCost ?? 0, outcomes.length > 0).has(spent) ? 0 : spent,
        sendTokens: [sends, sends + 1].includes(Math.round(sendTokens - left)) ? 0 : sendTokens - left
      }
      for (const [what, many] of Object.entries(found)) {
        if (many !== 0) wrong.add(`${what}: ${many} after ${sends} sends`)
      }
      sendTokens = left
      sends = 0
      yield* Effect.orDie(quota.deposit(capacity))
      yield* TestClock.adjust(40)
    })
    const interruptions = yield* Kit.sweep(program, () => check, { step: 2 })
    return { interruptions, wrong: [...wrong] }
  }).pipe(Effect.provide([Layer.fresh(limited), Kit.fixedRandom(0.5)]))

import { assert, describe, it } from "@effect/vitest"
import { AdaptiveRateLimiter, awsStandard, RetryQuota, withRetry } from "effect-retry"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as Kit from "effect-retry/testing"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Redis from "effect/persistence/Redis"
import * as TestClock from "effect/testing/TestClock"
import { FakeRedis } from "../utils/fakeRedis.ts"
import { thinned } from "../utils/sweep.ts"
import { callSweeps, limiterSweeps, quotaSweeps } from "./sweeps/calls.ts"
import { hedgeSweeps } from "./sweeps/hedges.ts"
import { policySweeps } from "./sweeps/policies.ts"
import { bracketed, quotaLayers, serviceSweeps } from "./sweeps/services.ts"
import { on, type Program, swept } from "./sweeps/sweep.ts"

describe("an interruption at any step, and in any wait, leaves no token, no waiter and no timer behind", () => {
  const themes = {
    "whatever the policy": policySweeps,
    "whatever the quota": quotaSweeps,
    "whatever the limiter": limiterSweeps,
    "whatever is around the call, or inside": callSweeps,
    "the services themselves": serviceSweeps,
    "of whatever sends of a hedged call": hedgeSweeps
  }
  for (const [theme, sweeps] of Object.entries(themes)) {
    describe(theme, () => {
      for (const [name, sweep] of Object.entries(sweeps)) {
        it.effect(name, () =>
          Effect.gen(function*() {
            const { interruptions, left } = yield* thinned(23)(swept(sweep))
            assert.deepStrictEqual(left, [])
            assert.isAtLeast(interruptions, sweep.least ?? 15)
          }))
      }
    })
  }

  describe("a quota that a program brings itself", () => {
    for (const [name, layer] of Object.entries(quotaLayers)) {
      it.effect(name, () =>
        Effect.gen(function*() {
          const quota = yield* RetryQuota.RetryQuota
          const full = yield* quota.balance
          const balances = new Set<number>()
          const look = Effect.map(quota.balance, (balance) => balances.add(balance))
          assert.isAbove(yield* Kit.sweep(bracketed, () => look), 8)
          assert.deepStrictEqual([...balances], [full])
        }).pipe(Effect.provide(layer)))
    }
  })
})

describe("a leak that is planted is found", () => {
  const failureOf = (program: Program, quota: RetryQuota.Options = {}) =>
    Effect.map(Effect.exit(swept({ program, quota })), (exit) => {
      assert.isTrue(Exit.isFailure(exit))
      const failure = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
      assert.instanceOf(failure, Kit.SweepFailure)
      return failure as Kit.SweepFailure
    })

  it.effect("of tokens: one step between taking them and minding them", () =>
    Effect.gen(function*() {
      const leaky = Effect.flatMap(
        Effect.map(RetryQuota.reserve(5), Option.getOrThrow),
        (held) => Effect.ensuring(on((call) => withRetry(call, awsStandard)), held.giveBack)
      )
      assert.strictEqual((yield* failureOf(leaky)).what, "held")
    }))

  it.effect("of tokens: a retry that is settled by hand, and not in its backoff", () =>
    Effect.gen(function*() {
      const taken = Effect.map(RetryQuota.reserve(5), Option.getOrThrow)
      const byHand = on((call) =>
        Effect.catch(call, () =>
          Effect.flatMap(taken, (held) => Effect.delay(Effect.tap(Effect.exit(call), held.giveBack), 100)))
      )
      assert.strictEqual((yield* failureOf(byHand)).what, "held")
    }))

  it.effect("of waiters: a fiber that keeps waiting for tokens after its caller is gone", () =>
    Effect.gen(function*() {
      const quota = { capacity: 10, initial: 0, refillPerSecond: 1e-6, onExceeded: "wait" } as const
      const leaky = Effect.andThen(Effect.forkDetach(Effect.orDie(RetryQuota.reserve(5))), Effect.sleep(10))
      assert.strictEqual((yield* failureOf(leaky, quota)).what, "waiting")
      const sending = Effect.andThen(
        Effect.forkDetach(Effect.exit(Effect.replicateEffect(AdaptiveRateLimiter.acquire, 50))),
        Effect.yieldNow
      )
      assert.strictEqual((yield* failureOf(sending)).what, "waiting")
    }))

  it.effect("of timers: a backoff that no caller waits for", () =>
    Effect.gen(function*() {
      const leaky = Effect.andThen(Effect.forkDetach(Effect.sleep("1 hour")), Effect.sleep(10))
      assert.strictEqual((yield* failureOf(leaky)).what, "sleeping")
    }))

  it.effect("of leases: one that is neither given back nor spent", () =>
    Effect.gen(function*() {
      const redis = new FakeRedis()
      const quota = yield* Effect.provideService(RetryQuotaRedis.make({ name: "test" }), Redis.Redis, redis.service)
      const leases: Array<number> = []
      const leaky = Effect.flatMap(quota.reserve(5), (taken) =>
        Effect.andThen(Effect.sleep(10), Option.getOrThrow(taken).giveBack))
      yield* Kit.sweep(leaky, () =>
        Effect.andThen(
          TestClock.adjust(400),
          Effect.sync(() =>
            leases.push(redis.leases("retry-quota:test"))
          )
        ))
      assert.isAbove(Math.max(...leases), 0)
    }))
})

describe("the sweep itself", () => {
  it.effect("ends also where a fiber inside is interrupted just as it falls asleep, and others go on", () =>
    Effect.gen(function*() {
      const program = Effect.gen(function*() {
        const child = yield* Effect.forkChild(Effect.sleep(100))
        yield* Effect.exit(Fiber.await(child))
        yield* Effect.sleep("1 minute")
      })
      assert.isAbove(yield* Kit.sweep(program, () => Effect.void), 10)
    }))
})

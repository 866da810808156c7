import { assert, describe, it } from "@effect/vitest"
import { RetryQuota } from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Example from "../../examples/budgets.ts"
import { FakeRedis } from "../utils/fakeRedis.ts"

/** Ten calls a second for this long, to a service that is down: how often each second is retried. */
const outage = (seconds: number, quota: Layer.Layer<RetryQuota.RetryQuota>) =>
  Effect.gen(function*() {
    const call = Kit.outcomes([Kit.transient], { afterwards: "repeat" })
    const retries: Array<number> = []
    for (let second = 0; second < seconds; second++) {
      const before = call.sends
      for (let count = 0; count < 10; count++) {
        yield* Effect.forkChild(Effect.exit(Example.load(call.send)), { startImmediately: true })
      }
      yield* Kit.runToEnd(Effect.sleep("1 second"))
      retries.push(call.sends - before - 10)
    }
    return retries
  }).pipe(Effect.provide([quota, Kit.seededRandom("outage")]))

const sum = (numbers: ReadonlyArray<number>) => numbers.reduce((total, number) => total + number, 0)

describe("examples/budgets", () => {
  const figures = {
    "a bucket": [RetryQuota.layer(), { retries: 100, busiest: 20 }],
    "a share alone": [Example.shareAlone, { retries: 301, busiest: 8 }],
    "both: as little as the bucket, and as few at once as the share": [Example.layer, { retries: 100, busiest: 8 }]
  } as const
  for (const [name, [quota, expected]] of Object.entries(figures)) {
    it.effect(`the figures of docs/limits.md: ${name}`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* Example.outage(quota), expected)
      }))
  }

  it.effect("bucket and share: as many retries as the share allows, and a hundred in all", () =>
    Effect.gen(function*() {
      const retries = yield* outage(100, Example.layer)
      assert.isAtMost(sum(retries.slice(0, 10)), 10 + 0.2 * 100)
      assert.strictEqual(sum(retries), 100)
      assert.strictEqual(sum(retries.slice(60)), 0)
    }))

  it.effect("a share alone: three a second for as long as the outage lasts", () =>
    Effect.gen(function*() {
      const retries = yield* outage(100, Example.shareAlone)
      assert.approximately(sum(retries.slice(50)), 3 * 50, 10)
    }))

  it.effect("as Envoy: a maximum at a time", () =>
    Effect.gen(function*() {
      const retries = yield* outage(20, Example.likeEnvoy)
      assert.isAbove(Math.min(...retries), 0)
      assert.isBelow(Math.max(...retries), 20)
    }))

  it.effect("as gRPC: none once half of the tokens are lost", () =>
    Effect.gen(function*() {
      const retries = yield* outage(5, Example.likeGrpc)
      assert.isAtMost(sum(retries), 4)
    }))

  const redis = new FakeRedis()
  it.effect("a fleet: what Redis grants, and the share of the process", () =>
    Effect.gen(function*() {
      const call = Kit.outcomes([Kit.transient, Kit.ok(), Kit.transient])
      yield* Kit.runToEnd(Example.load(call.send))
      assert.strictEqual(call.sends, 2)
      // Redis has tokens for 99 more; the share of this process has nothing left.
      yield* Kit.runToEnd(Effect.exit(Example.load(call.send)))
      assert.strictEqual(call.sends, 3)
      yield* Kit.runToEnd(Effect.sleep("30 seconds"))
      assert.strictEqual(redis.total([...redis.states.keys()][0]!), 500)
    }).pipe(
      Effect.provide(Example.fleet),
      Effect.provideService(Redis.Redis, redis.service)
    ))
})

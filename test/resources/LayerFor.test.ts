import { assert, describe, it } from "@effect/vitest"
import { AdaptiveRateLimiter, awsStandard2026, InvalidOption, RetryObserver, RetryQuota, withRetry } from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as LayerMap from "effect/LayerMap"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Transient } from "../utils/call.ts"

setFlagsFromString("--expose-gc")
const gc: () => void = runInNewContext("gc")

/** What is held by nothing is gone. */
const collected = Effect.promise(() => new Promise((resolve) => setImmediate(resolve))).pipe(
  Effect.andThen(Effect.sync(gc))
)

/** How often ten calls that fail are sent, each provided with a layer. */
const sends = <E, R>(layerOf: (call: number) => Layer.Layer<RetryQuota.RetryQuota, E, R>) => {
  const { send } = Kit.outcomes([Kit.transient], { afterwards: "repeat" })
  let sent = 0
  const call = Effect.suspend(() => {
    sent++
    return send
  })
  const calls = Effect.forEach(
    Array.from({ length: 10 }),
    (_, n) => Effect.exit(Effect.provide(withRetry(call, awsStandard2026), layerOf(n)))
  )
  // In one run: each has a clock of its own.
  return Effect.map(Kit.runToEnd(calls), () => sent)
}

describe("layerFor", () => {
  it.effect("has one quota for each name, wherever the layer is built", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* sends(() => RetryQuota.layer({ capacity: 28 })), 30)
      assert.strictEqual(yield* sends(() => RetryQuota.layerFor("a", { capacity: 28 })), 12)
      assert.strictEqual(yield* sends(() => Layer.fresh(RetryQuota.layerFor("b", { capacity: 28 }))), 12)
      assert.strictEqual(yield* sends((n) => RetryQuota.layerFor(`c${n}`, { capacity: 28 })), 30)
    }))

  const balance = (name: string) => Effect.provide(RetryQuota.balance, RetryQuota.layerFor(name))
  const spend = (name: string) => Effect.provide(Effect.orDie(RetryQuota.set(5)), RetryQuota.layerFor(name))
  const strangers = (count: number, use: (name: string) => Effect.Effect<unknown>) =>
    Effect.forEach(Array.from({ length: count }, (_, n) => `stranger-${n}`), use, { discard: true })

  it.effect("of more than 10,000 names, forgets a full one first, then the one used longest ago", () =>
    Effect.gen(function*() {
      yield* spend("a")
      yield* strangers(20_000, balance)
      yield* collected
      assert.strictEqual(yield* balance("a"), 5)
      yield* spend("b")
      yield* strangers(9998, spend)
      yield* balance("a")
      yield* spend("c")
      yield* collected
      assert.deepStrictEqual([yield* balance("a"), yield* balance("c"), yield* balance("b")], [5, 5, 500])
    }))

  it.effect("forgets none that is in use", () =>
    Effect.gen(function*() {
      const [quota, limiter] = yield* Effect.provide(
        Effect.all([RetryQuota.RetryQuota, AdaptiveRateLimiter.AdaptiveRateLimiter]),
        [RetryQuota.layerFor("a"), AdaptiveRateLimiter.layerFor("a")]
      )
      yield* strangers(10_001, balance)
      yield* strangers(10_001, (name) => Effect.provide(AdaptiveRateLimiter.state, AdaptiveRateLimiter.layerFor(name)))
      yield* collected
      yield* quota.set(5)
      yield* limiter.update(true)
      assert.strictEqual(yield* balance("a"), 5)
      assert.isTrue((yield* Effect.provide(AdaptiveRateLimiter.state, AdaptiveRateLimiter.layerFor("a"))).enabled)
    }))

  it.effect("has one limiter for each name", () =>
    Effect.gen(function*() {
      const isOn = (name: string) =>
        Effect.map(Effect.provide(AdaptiveRateLimiter.state, AdaptiveRateLimiter.layerFor(name)), ({ enabled }) =>
          enabled)
      yield* Effect.provide(AdaptiveRateLimiter.update(true), AdaptiveRateLimiter.layerFor("a"))
      assert.deepStrictEqual([yield* isOn("a"), yield* isOn("b")], [true, false])
    }))

  it.effect("names the resource for observers", () =>
    Effect.gen(function*() {
      const names: Array<unknown> = []
      const observer: RetryObserver.RetryObserver = {
        onRetry: (_, __, context) => void names.push(Context.get(context, RetryObserver.CurrentResource))
      }
      const call = Effect.exit(withRetry(Effect.fail(new Transient()), awsStandard2026))
      const observed = Layer.merge(RetryQuota.layer(), RetryObserver.layerOnly(observer))
      yield* Kit.runToEnd(Effect.provide(call, Layer.provideMerge(RetryQuota.layerFor("a"), observed)))
      yield* Kit.runToEnd(Effect.provide(call, Layer.provideMerge(AdaptiveRateLimiter.layerFor("b"), observed)))
      assert.deepStrictEqual(names, ["a", "a", "b", "b"])
    }))

  it("refuses options that are impossible", () => {
    assert.throws(() => RetryQuota.layerFor("a", { capacity: -1 }), InvalidOption)
    assert.throws(() => AdaptiveRateLimiter.layerFor("a", { beta: 2 }), InvalidOption)
    for (const { layerFor } of [RetryQuota, AdaptiveRateLimiter]) {
      for (const name of ["", undefined, 3]) assert.throws(() => layerFor(name as never), /name must be the name of a/)
    }
  })
})

describe("a LayerMap", () => {
  const mapOf = (options: { readonly idleTimeToLive?: "10 minutes" }) =>
    LayerMap.make(() => RetryQuota.layer({ capacity: 28 }), options)

  it.effect("shares a quota between calls with an idleTimeToLive, and only then", () =>
    Effect.gen(function*() {
      const [kept, dropped] = [yield* mapOf({ idleTimeToLive: "10 minutes" }), yield* mapOf({})]
      assert.deepStrictEqual([yield* sends(() => kept.get("a")), yield* sends(() => dropped.get("a"))], [12, 30])
    }))
})

import { assert, describe, it } from "@effect/vitest"
import { AdaptiveRateLimiter, awsStandard2026, InvalidOption, RetryObserver, RetryQuota, withRetry } from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as LayerMap from "effect/LayerMap"
import { Transient } from "../utils/call.ts"

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

  it.effect("keeps the 10,000 names that were used last", () =>
    Effect.gen(function*() {
      const use = (name: string) => Effect.provide(RetryQuota.balance, RetryQuota.layerFor(name))
      for (const name of ["a", "b"]) yield* Effect.provide(Effect.orDie(RetryQuota.set(5)), RetryQuota.layerFor(name))
      for (let n = 0; n < 9998; n++) yield* use(`c${n}`)
      assert.strictEqual(yield* use("a"), 5)
      yield* use("d")
      assert.deepStrictEqual([yield* use("a"), yield* use("b")], [5, 500])
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

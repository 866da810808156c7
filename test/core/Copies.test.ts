import { assert, describe, it, vi } from "@effect/vitest"
import { awsStandard, RetryObserver, RetryQuota, withRetry } from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as fs from "node:fs"

const root = new URL("../../", import.meta.url)

describe("copies of the library", () => {
  it.effect("two copies of the library in one process share services, facts and refusals", () =>
    Effect.gen(function*() {
      vi.resetModules()
      const other = yield* Effect.promise(() => import("effect-retry"))
      assert.notStrictEqual(other.RetryQuota.make, RetryQuota.make)
      const quota = yield* RetryQuota.make()
      const call = Kit.outcomes([Kit.transient, Kit.ok("x")])
      const retried = other.withRetry(call.send, other.awsStandard)
      const run = Kit.runToEnd(Effect.provideService(retried, other.RetryQuota.RetryQuota, quota))
      assert.strictEqual(yield* run, "x")
      assert.strictEqual(yield* quota.balance, 500)
      const failing = withRetry(Kit.outcomes([Kit.transient], { afterwards: "repeat" }).send, awsStandard)
      yield* Effect.exit(Kit.runToEnd(Effect.provideService(failing, other.RetryQuota.RetryQuota, quota)))
      assert.strictEqual(yield* quota.balance, 490)
    }).pipe(Effect.provide(Kit.fixedRandom(0.5))))

  it.effect("policies of two copies in one join of Effect pay both, and the call ends as it should", () =>
    Effect.gen(function*() {
      vi.resetModules()
      const other = yield* Effect.promise(() => import("effect-retry"))
      const call = Kit.outcomes([Kit.transient, Kit.transient, Kit.ok("x")])
      const both = Schedule.max([awsStandard, other.awsStandard])
      const fiber = yield* Effect.forkChild(Kit.runToEnd(Effect.retry(call.send, both)))
      assert.strictEqual(yield* Fiber.join(fiber), "x")
      assert.strictEqual(call.sends, 3)
      assert.isAtMost(yield* RetryQuota.balance, 500)
    }).pipe(Effect.provide([Kit.fixedRandom(0.5), RetryQuota.layer()])))

  it.effect("observers of two copies, in merged layers, are all notified", () =>
    Effect.gen(function*() {
      vi.resetModules()
      const other = yield* Effect.promise(() => import("effect-retry"))
      const stops: Array<string> = []
      const a = RetryObserver.layer({ onStop: ({ reason }) => void stops.push(`a: ${reason}`) })
      const b = other.RetryObserver.layer({ onStop: ({ reason }) => void stops.push(`b: ${reason}`) })
      const call = withRetry(Effect.fail(new Kit.NotRetryable()), awsStandard)
      yield* Effect.exit(Effect.provide(call, Layer.merge(a, b)))
      yield* Effect.exit(Effect.provide(call, Layer.merge(b, a)))
      assert.deepStrictEqual(stops, ["a: final", "b: final", "b: final", "a: final"])
    }).pipe(Effect.provide(RetryQuota.layer())))

  it("there is one form of the package, so import and require do not load it twice", () => {
    const { exports, type } = JSON.parse(fs.readFileSync(new URL("package.json", root), "utf8"))
    assert.strictEqual(type, "module")
    assert.notInclude(JSON.stringify(exports), "require")
  })
})

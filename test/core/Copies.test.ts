import { assert, describe, it, vi } from "@effect/vitest"
import { awsStandard, RetryObserver, RetryQuota, withRetry } from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
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

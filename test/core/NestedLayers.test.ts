import { assert, describe, it } from "@effect/vitest"
import { awsStandard, Backoff, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Effect from "effect/Effect"

describe("layers that all retry", () => {
  it.effect("five layers of retries send 3^5 times, a quota of each bounds it, and outermostOnly leaves one", () =>
    Effect.gen(function*() {
      const immediate = Backoff.fixed(0).pipe(RetryPolicy.maxAttempts(3))
      const layered = (wrap: (call: Effect.Effect<void, Kit.Transient>) => Effect.Effect<void, Kit.Transient>) => {
        const leaf = Kit.outcomes([Kit.transient], { afterwards: "repeat" })
        let call: Effect.Effect<void, Kit.Transient> = leaf.send
        for (let layer = 0; layer < 5; layer++) call = wrap(call)
        return Effect.map(Effect.exit(Kit.runToEnd(call)), () => leaf.sends)
      }
      assert.strictEqual(yield* layered(withRetry(immediate)), 243)
      // 35 retries of each layer, however many calls: N + 35 * L, as in A6.
      const leaf = Kit.outcomes([Kit.transient], { afterwards: "repeat" })
      const gated = immediate.pipe(RetryPolicy.quotaGated({ cost: 14 }))
      let call: Effect.Effect<void, Kit.Transient> = leaf.send
      for (let layer = 0; layer < 5; layer++) {
        const quota = yield* RetryQuota.make()
        call = Effect.provideService(withRetry(call, gated), RetryQuota.RetryQuota, quota)
      }
      for (let n = 0; n < 100; n++) yield* Effect.exit(Kit.runToEnd(call))
      assert.strictEqual(leaf.sends, 100 + 35 * 5)
      // Last, because from here on the attempts of this process are marked.
      assert.strictEqual(yield* layered(withRetry(RetryPolicy.outermostOnly(immediate))), 3)
    }))

  it.effect("a nested call takes no token of the call around it", () =>
    Effect.gen(function*() {
      const inner = Kit.outcomes([Kit.transient], { afterwards: "repeat" })
      const nested = withRetry(withRetry(inner.send, awsStandard), awsStandard)
      yield* Effect.exit(Kit.runToEnd(nested))
      const { balance, held } = yield* Kit.TestQuota.state
      assert.deepStrictEqual([held, balance, inner.sends], [0, 500 - 5 * 8, 9])
    }).pipe(Effect.provide(Kit.TestQuota.layer())))
})

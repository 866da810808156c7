import { assert, describe, it } from "@effect/vitest"
import { httpStandard, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { scripted, Terminal, Throttled, Transient } from "../utils/call.ts"

describe("httpStandard", () => {
  it.effect("doubles from 100 ms up to 5 seconds, for 10 seconds", () =>
    Effect.gen(function*() {
      const call = Kit.outcomes(Array.from({ length: 99 }, () => Kit.transient))
      yield* Kit.runToEnd(Effect.exit(withRetry(call.send, httpStandard)))
      call.timeline.expect(
        "attempts at 0 ms, 50 ms, 150 ms, 350 ms, 750 ms, 1550 ms, 3150 ms, 5650 ms, 8150 ms"
      )
      assert.strictEqual(yield* RetryQuota.balance, 460)
    }).pipe(Effect.provide(Layer.merge(RetryQuota.layer(), Kit.fixedRandom(0.5)))))

  it.each<[string, unknown, RetryPolicy.ExplainOptions, string]>([
    ["a failure", new Transient(), {}, "would retry after 0 to 100 ms at 5 tokens"],
    ["the fourth", new Transient(), { attempt: 4 }, "would retry after 0 to 800 ms at 5 tokens"],
    ["a hint", new Throttled({ retryAfter: 3000 }), {}, "would retry after 3 s at 5 tokens"],
    [
      "a hint beyond the deadline",
      new Throttled({ retryAfter: 60_000 }),
      {},
      "would stop: deadline, Throttled: the retry would begin too late"
    ],
    [
      "a hint of hours",
      new Throttled({ retryAfter: 1e7 }),
      {},
      "would stop: retry-after-too-long, Throttled: the server asks for a longer wait than the policy allows"
    ],
    ["a final failure", new Terminal(), {}, "would stop: final, Terminal: the same call would fail again"]
  ])("after %s", (_, error, options, line) => {
    assert.strictEqual(String(RetryPolicy.explain(httpStandard, error, options)), line)
  })

  it.effect("honors a hint up to two minutes where its deadline is lifted", () =>
    Effect.gen(function*() {
      const call = scripted([new Throttled({ retryAfter: 119_000 })])
      const policy = RetryPolicy.withoutDeadline(httpStandard)
      assert.strictEqual(yield* Kit.runToEnd(withRetry(call.effect, policy)), "ok")
      assert.strictEqual(call.sends, 2)
    }).pipe(Effect.provide(RetryQuota.layer())))
})

import { assert, describe, it } from "@effect/vitest"
import { AdaptiveRateLimiter, RetryQuota } from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Effect from "effect/Effect"
import * as RpcClient from "effect/rpc/RpcClient"
import * as TestClock from "effect/testing/TestClock"
import * as Example from "../../examples/rpc-errors.ts"
import { Orders } from "../../examples/rpcOrders.ts"

const limited = AdaptiveRateLimiter.layer({ onExceeded: "fail" })

describe("rpc-errors", () => {
  it.effect("the client catches the refusal of the server's limiter, an instance of its class", () =>
    Effect.gen(function*() {
      let sends = 0
      const send = Effect.sync(() => `order ${++sends}`)
      yield* Effect.gen(function*() {
        assert.strictEqual(yield* Example.latest, "order 1")
        yield* AdaptiveRateLimiter.update(true)
        const orders = yield* RpcClient.make(Orders)
        const error = yield* Effect.flip(orders.Latest())
        assert.instanceOf(error, AdaptiveRateLimiter.RateLimitExceeded)
        assert.strictEqual(yield* Example.latest, "busy, try again in 2s")
        assert.strictEqual(sends, 1)
        yield* TestClock.adjust("2 seconds")
        assert.strictEqual(yield* Example.latest, "order 2")
      }).pipe(Effect.provide(Example.connected(send)), Effect.scoped)
    }).pipe(Effect.provide([limited, RetryQuota.layer(), Kit.fixedRandom(0.5)])))
})

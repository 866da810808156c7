import { describe, it } from "@effect/vitest"
import { AdaptiveRateLimiter, RetryPolicy, type SendGate, withRetry } from "effect-retry"
import * as AdaptiveRateLimiterRedis from "effect-retry/AdaptiveRateLimiterRedis"
import { SendGateSuite, TestLimiter, type TestLimiterOptions } from "effect-retry/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import type * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { FakeLimiter } from "../utils/fakeLimiter.ts"
import { thinned } from "../utils/sweep.ts"

const gateOf = (options?: TestLimiterOptions): Effect.Effect<SendGate.SendGate> =>
  Effect.map(
    Effect.provide(AdaptiveRateLimiter.AdaptiveRateLimiter, Layer.fresh(TestLimiter.layer(options))),
    ({ gate }) => gate!
  )

/** Of a fleet of which others have been throttled, if there is a rate to cut. */
const sharedOf = (cut?: number): Effect.Effect<SendGate.SendGate, never, Scope.Scope> =>
  Effect.gen(function*() {
    const fake = new FakeLimiter()
    fake.share = 1
    if (cut !== undefined) yield* fake.cut(cut)
    const making = AdaptiveRateLimiterRedis.make({ name: "orders" })
    const limiter = yield* Effect.provideService(making, Redis.Redis, fake.service)
    // The first send asks the fleet.
    const send = withRetry(Effect.void, RetryPolicy.fromDelay(() => undefined))
    yield* Effect.provideService(send, AdaptiveRateLimiter.AdaptiveRateLimiter, limiter)
    yield* TestClock.adjust(1)
    return limiter.gate!
  })

const gates: Readonly<
  Record<string, readonly [Effect.Effect<SendGate.SendGate, never, Scope.Scope>, SendGateSuite.Options]>
> = {
  "an adaptive limiter that nobody has throttled": [gateOf(), { onExceeded: "never" }],
  "an adaptive limiter that was throttled": [gateOf({ fillRate: 5, tokens: 5 }), {}],
  "an adaptive limiter that was throttled to next to nothing": [gateOf({ fillRate: 0.5 }), {}],
  "an adaptive limiter with a short line": [gateOf({ fillRate: 2, tokens: 2, maxWaiters: 2 }), {}],
  "an adaptive limiter without a line": [gateOf({ fillRate: 2, tokens: 2, maxWaiters: 0 }), { onExceeded: "refuses" }],
  "an adaptive limiter that fails fast": [
    gateOf({ fillRate: 2, tokens: 2, onExceeded: "fail" }),
    { onExceeded: "refuses" }
  ],
  "a limiter of a fleet that nobody has throttled": [sharedOf(), { onExceeded: "never" }],
  "a limiter of a fleet that was throttled": [sharedOf(5), {}]
}

describe.each(Object.entries(gates))("the contract of a gate: %s", (_, [make, options]) => {
  for (const law of SendGateSuite.laws(make, options)) it.effect(law.name, () => thinned(5)(law.run))
})

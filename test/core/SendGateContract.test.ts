import { describe, it } from "@effect/vitest"
import { AdaptiveRateLimiter, type SendGate } from "effect-retry"
import { SendGateSuite, TestLimiter, type TestLimiterOptions } from "effect-retry/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { thinned } from "../utils/sweep.ts"

const gateOf = (options?: TestLimiterOptions): Effect.Effect<SendGate.SendGate> =>
  Effect.map(
    Effect.provide(AdaptiveRateLimiter.AdaptiveRateLimiter, Layer.fresh(TestLimiter.layer(options))),
    ({ gate }) => gate!
  )

const gates: Readonly<Record<string, readonly [Effect.Effect<SendGate.SendGate>, SendGateSuite.Options]>> = {
  "an adaptive limiter that nobody has throttled": [gateOf(), { whenFull: "never" }],
  "an adaptive limiter that was throttled": [gateOf({ fillRate: 5, tokens: 5 }), {}],
  "an adaptive limiter that was throttled to next to nothing": [gateOf({ fillRate: 0.5 }), {}],
  "an adaptive limiter with a short line": [gateOf({ fillRate: 2, tokens: 2, maxWaiters: 2 }), {}],
  "an adaptive limiter without a line": [gateOf({ fillRate: 2, tokens: 2, maxWaiters: 0 }), { whenFull: "refuses" }],
  "an adaptive limiter that fails fast": [
    gateOf({ fillRate: 2, tokens: 2, whenExceeded: "fail" }),
    { whenFull: "refuses" }
  ]
}

describe.each(Object.entries(gates))("the contract of a gate: %s", (_, [make, options]) => {
  for (const law of SendGateSuite.laws(make, options)) it.effect(law.name, () => thinned(5)(law.run))
})

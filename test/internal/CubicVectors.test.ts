import { assert, describe, it } from "@effect/vitest"
import { AdaptiveRateLimiter } from "effect-retry"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { AdaptiveGate, validated } from "../../src/gates/internal/adaptiveGate.ts"
import * as Cubic from "../../src/internal/math/cubic.ts"
import { millis } from "../utils/vectors.ts"
import { clientSendingRate, constants, cubic } from "../vectors/cubic.ts"

const { beta, minCapacity, minFillRate, scaleConstant, smooth: smoothing } = constants

const config: Cubic.CubicConfig = {
  beta,
  scaleConstant,
  smoothing,
  minFillRate,
  minCapacity,
  measurementBucketSeconds: 0.5
}

const isNear = (actual: number, expected: number, what: string): void => {
  const tolerance = 1e-9 * Math.max(1, Math.abs(expected))
  assert.isAtMost(Math.abs(actual - expected), tolerance, `${what}: ${actual} for ${expected}`)
}

/** A limiter that measures far more than it is allowed, so that the calculated rate alone decides. */
const unbounded = (
  { lastMaxRate, lastThrottleTime }: (typeof cubic)[number]["given"],
  measuredTxRate = 1e6
): Cubic.Cubic => ({
  ...Cubic.initial(config, 0),
  curve: { enabled: true, lastMaxRate, lastThrottleTime, timeWindow: Cubic.timeWindow(config, lastMaxRate) },
  measuredTxRate,
  lastTxRateBucket: 1e6
})

describe("cubic", () => {
  it("a token that is put back fills the bucket up to what it can hold", () => {
    const putBack = (tokens: number): number =>
      Cubic.putBack({ ...Cubic.initial(config, 0), tokens, maxTokens: 3 }).tokens
    assert.deepStrictEqual([0, 1.5, 2.5, 3].map(putBack), [1, 2.5, 3, 3])
  })

  it("less than a token by less than a clock tick is a token", () => {
    const holding = (tokens: number): Cubic.Cubic => ({ ...Cubic.initial(config, 0), tokens })
    for (const tokens of [1, 1 - 1e-10]) assert.strictEqual(Cubic.millisUntilToken(holding(tokens)), 0)
    for (const tokens of [1, 1 - 1e-10, 1 - 1e-9]) {
      assert.isTrue(Cubic.isToken(tokens))
      assert.deepStrictEqual(Cubic.take(holding(tokens), 7), { ...holding(0), lastTimestamp: 7 })
    }
    const state = holding(1 - 2e-9)
    assert.isFalse(Cubic.isToken(state.tokens))
    assert.strictEqual(Cubic.millisUntilToken(state), 1)
  })

  it.each(cubic)("vector: $name", ({ given, steps }) => {
    let state = unbounded(given)
    for (const { rate, response, timestamp } of steps) {
      state = Cubic.update(state, config, timestamp, response === "throttle")
      isNear(state.fillRate, rate, `rate at ${timestamp}`)
    }
  })

  it.each([cubic[0]])("vector: $name, by the curve alone", ({ given, steps }) => {
    const timeWindow = Cubic.timeWindow(config, given.lastMaxRate)
    for (const { rate, timestamp } of steps) {
      isNear(Cubic.cubicRate(config, { ...given, timeWindow }, timestamp), rate, `rate at ${timestamp}`)
    }
  })

  // At 7 s the first table calculates 10.00003; the published pseudocode allows twice the measured rate.
  it.each([
    { measuredTxRate: 4, fillRate: 8 },
    { measuredTxRate: 5, fillRate: 10 },
    { measuredTxRate: 5.1, fillRate: 10.000030849917364 }
  ])("bounds the rate by twice the measured $measuredTxRate", ({ fillRate, measuredTxRate }) => {
    const state = Cubic.update(unbounded(cubic[0].given, measuredTxRate), config, 7, false)
    isNear(state.fillRate, fillRate, "rate at 7")
    isNear(state.maxTokens, fillRate, "capacity at 7")
  })

  it("a transition returns another record, and leaves the one before it as it was", () => {
    const { curve, ...others } = unbounded(cubic[0].given)
    const state: Cubic.Cubic = Object.freeze({ ...others, curve: Object.freeze(curve), tokens: 1, maxTokens: 3 })
    const transitions = [
      Cubic.refill(state, 7),
      Cubic.update(state, config, 7, true),
      Cubic.aim(state, { ...config, beta: 0.5 }),
      Cubic.follow(state, config, { enabled: true, lastMaxRate: 3, lastThrottleTime: 1 }, 7),
      Cubic.take(state, 7),
      Cubic.putBack(state),
      Cubic.update({ ...state, lastTxRateBucket: 0 }, config, 7, false)
    ]
    for (const next of transitions) {
      assert.notDeepEqual(next, state)
      assert.deepStrictEqual(Object.keys(next).sort(), Object.keys(state).sort())
    }
  })

  it("continues on another curve from the next response on, if the constants change", () => {
    const [{ given }] = cubic
    const options = validated({})
    const gate = new AdaptiveGate({ ...options, cubic: config }, unbounded(given))
    const other = { ...config, beta: 0.5, scaleConstant: 1 }
    gate.change({ ...options, cubic: other })
    gate.update(false, 7000)
    const timeWindow = Cubic.timeWindow(other, given.lastMaxRate)
    assert.strictEqual(gate.fillRate, Cubic.cubicRate(other, { ...given, timeWindow }, 7))
  })
})

describe("AdaptiveRateLimiter", () => {
  it.effect.each(
    [["its defaults", {}], ["the constants", { beta, scaleConstant, smoothing, minFillRate, minCapacity }]] as const
  )("vector: client sending rate, by %s", ([, options]) =>
    Effect.gen(function*() {
      let throttles = 0
      for (const { fillRate, measuredTxRate, response, timestamp } of clientSendingRate) {
        yield* TestClock.adjust(millis(0.2))
        assert.strictEqual(yield* Clock.currentTimeMillis, millis(timestamp))
        const throttled = response === "throttle"
        if (throttled) throttles++
        yield* AdaptiveRateLimiter.update(throttled)
        const state = yield* AdaptiveRateLimiter.state
        isNear(state.measuredTxRate, measuredTxRate, `measured rate at ${timestamp}`)
        isNear(state.fillRate, fillRate, `fill rate at ${timestamp}`)
        isNear(state.maxCapacity, Math.max(fillRate, minCapacity), `capacity at ${timestamp}`)
        assert.strictEqual(state.enabled, throttles > 0)
      }
    }).pipe(Effect.provide(AdaptiveRateLimiter.layer(options))))
})

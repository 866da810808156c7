import { assert, describe, it } from "@effect/vitest"
import { AwsModes, Backoff, InvalidOption, RetryPolicy, RetryQuota } from "effect-retry"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as TestClock from "effect/testing/TestClock"
import { millis, type Policy, sdkError, sentDelays, steppedDelays, withRandom } from "../utils/vectors.ts"
import * as vectors from "../vectors/backoff.ts"
import { capBelowScale, capOfZero, jitterModes, type JitterVector } from "../vectors/jitterModes.ts"

const transient = sdkError({ status: 500 })
const throttling = sdkError({ status: 400, code: "Throttling" })

/** Beyond this many retries only the steps are checked. */
const sendsAtMost = 50

interface Delays {
  readonly random: number
  readonly from?: number
  readonly delays: ReadonlyArray<number>
  readonly throttled?: true
}

/** Asserts the delays of a policy, both those of its schedule and those of a retried call. */
const hasDelays = (policy: Policy, { delays, from = 1, random, throttled }: Delays) =>
  Effect.gen(function*() {
    const error = throttled ? throttling : transient
    const count = from - 1 + delays.length
    assert.deepStrictEqual((yield* steppedDelays(policy, count, error)).slice(from - 1), delays)
    if (count > sendsAtMost) return
    assert.deepStrictEqual((yield* sentDelays(policy, count, error)).slice(from - 1), delays)
  }).pipe(withRandom(random), Effect.provide(RetryQuota.layerUnlimited))

/** Asserts that a constructor refuses the option. */
const refuses = (field: string, make: () => unknown) =>
  Effect.gen(function*() {
    const error = yield* Effect.flip(Effect.try({ try: make, catch: (thrown) => thrown as InvalidOption }))
    assert.instanceOf(error, InvalidOption)
    assert.strictEqual(error.field, field)
  })

const scaled = ({ jitter, max, scale }: JitterVector) => {
  const base = millis(scale)
  const cap = millis(max)
  return jitter === "decorrelated"
    ? Backoff.decorrelated(base, { cap, additive: true })
    : Backoff.exponential(base, 2, { cap, jitter })
}

const title = ({ jitter, max, scale }: JitterVector) => `${jitter ?? "default"} jitter, scale ${scale} s, max ${max} s`

describe("Backoff", () => {
  describe("jitter modes of smithy-python", () => {
    for (const vector of jitterModes) {
      it.effect(`vector: ${title(vector)}`, () =>
        hasDelays(scaled(vector), { random: 0.5, delays: vector.delays.map(millis) }))
    }

    for (const vector of capBelowScale) {
      it.effect(`vector: ${title(vector)}, by capped`, () =>
        Effect.gen(function*() {
          yield* refuses("cap", () => scaled(vector))
          const policy = Backoff.exponential(millis(vector.scale)).pipe(
            RetryPolicy.capped(millis(vector.max))
          )
          yield* hasDelays(policy, { random: 0.5, delays: vector.delays.map(millis) })
        }))
    }

    for (const vector of capOfZero) {
      it.effect(`vector: ${title(vector)}, refused`, () =>
        Effect.gen(function*() {
          yield* refuses("cap", () => scaled(vector))
          yield* refuses("cap", () => RetryPolicy.capped(millis(vector.max)))
          yield* hasDelays(Backoff.fixed(0), { random: 0.5, delays: vector.delays })
        }))
    }
  })

  describe("exponential", () => {
    it.effect.each(vectors.exponentials)("vector: $name", (vector) =>
      hasDelays(
        Backoff.exponential(vector.base, 2, { jitter: vector.jitter, cap: vector.cap }),
        vector
      ))

    it.effect.each(vectors.baseAboveCap)("vector: $name, by capped", (vector) =>
      Effect.gen(function*() {
        const { base, cap } = vector
        yield* refuses("cap", () => Backoff.exponential(base, 2, { cap }))
        const policy = Backoff.exponential(base).pipe(RetryPolicy.capped(cap), RetryPolicy.jittered("full"))
        yield* hasDelays(policy, vector)
      }))

    it.effect("vector: Kotlin, Throttling", () => {
      const { base, delays, throttlingBase } = vectors.kotlinThrottling
      const policy = Backoff.exponential(base).pipe(
        RetryPolicy.whenThrottled(Backoff.exponential(throttlingBase))
      )
      return hasDelays(policy, { random: 1, throttled: true, delays })
    })
  })

  describe("exponential with proportional jitter", () => {
    const { base, jitter, ranges } = vectors.kotlinRanges
    // From `1 - jitter` to 1 times the delay is `1 - p` to `1 + p` times a smaller base.
    const policy = Backoff.exponential(base * (1 - jitter / 2), 2, { jitter: { proportional: jitter / (2 - jitter) } })

    it.effect("vector: Kotlin, jitter 0.6, least", () =>
      hasDelays(policy, { random: 0, delays: ranges.map(([least]) => least) }))

    it.effect("vector: Kotlin, jitter 0.6, most", () =>
      hasDelays(policy, { random: 1, delays: ranges.map(([, most]) => most) }))

    it.effect("vector: Kotlin, jitter 0.6, in between", () =>
      Effect.gen(function*() {
        for (let seed = 0; seed < 100; seed++) {
          const delays = yield* steppedDelays(policy, ranges.length, transient).pipe(Random.withSeed(seed))
          ranges.forEach(([least, most], retry) => {
            assert.isAtLeast(delays[retry]!, least)
            assert.isAtMost(delays[retry]!, most)
          })
        }
      }).pipe(Effect.provide(RetryQuota.layerUnlimited)))
  })
})

describe("AwsModes", () => {
  const modeOf = ({ base, cap, mode }: vectors.ModeVector, maxAttempts: number): Policy => {
    const maxBackoff = cap === undefined ? undefined : Duration.millis(cap)
    return mode === "2.0"
      ? AwsModes.standard({ maxAttempts, maxBackoff })
      : AwsModes.standard2026({ maxAttempts, maxBackoff, base })
  }

  it.effect.each(vectors.modes)("vector: $name", (vector) => hasDelays(modeOf(vector, Infinity), vector))

  it.effect.each(vectors.modes.filter(({ quota }) => quota !== undefined))(
    "vector: $name, quota",
    (vector) =>
      Effect.gen(function*() {
        const { delays, quota = [], random } = vector
        const call = Effect.retry(Effect.fail(transient), modeOf(vector, Infinity)).pipe(withRandom(random))
        yield* Effect.forkChild(call, { startImmediately: true })
        for (const [retry, balance] of quota.entries()) {
          assert.strictEqual(yield* RetryQuota.balance, balance, `balance after failure ${retry + 1}`)
          yield* TestClock.adjust(delays[retry]!)
        }
      }).pipe(Effect.provide(RetryQuota.layer()))
  )
})

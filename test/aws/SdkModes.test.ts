import { assert, describe, it } from "@effect/vitest"
import { AdaptiveRateLimiter, InvalidOption, RetryClassifier, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as JavaV1 from "effect-retry/aws/legacy/JavaV1"
import * as SdkModes from "effect-retry/aws/SdkModes"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import { StandardRetryStrategy } from "smithy-core-classic/retry"
import { budget } from "../utils/budget.ts"
import { compared, seeded } from "../utils/smithy.ts"
import { drivers, playWith, sdkError, sentDelays, steppedDelays, withRandom } from "../utils/vectors.ts"
import { sdkModes } from "../vectors/sdkModes.ts"

/** The quota of the mode, without some of its tokens. */
const withTokens = (mode: SdkModes.SdkMode, tokens: number): Layer.Layer<RetryQuota.RetryQuota> => {
  const drained = Layer.effectDiscard(Effect.orDie(Effect.flatMap(
    RetryQuota.reserve(500 - tokens),
    (taken) => Option.getOrThrow(taken).spend
  )))
  return drained.pipe(Layer.provideMerge(mode.layer))
}

const modes = { ...SdkModes }

describe("SdkModes", () => {
  for (const { backoffs, calls, delays, errors, hints, name, sdk } of sdkModes) {
    const make = modes[sdk]

    describe(name, () => {
      for (const driver of drivers) {
        it.effect.each(calls)(`call: $name, by ${driver.name}`, ({ given, responses }) => {
          const { maxAttempts, maxBackoffMs, random, tokens = 500 } = given
          const mode = make({ maxAttempts, maxBackoff: maxBackoffMs })
          return playWith({ responses, tokens, random }, mode.policy, driver).pipe(
            Effect.provide(withTokens(mode, tokens))
          )
        })
      }

      it.effect.each(delays)(
        "delays: random $random, $basis",
        ({ delaysMs, from = 1, maxBackoffMs, random, throttled }) => {
          const mode = make({ maxAttempts: Infinity, maxBackoff: maxBackoffMs })
          const error = sdkError(throttled ? { status: 400, code: "Throttling" } : { status: 500 })
          return Effect.gen(function*() {
            const sent = yield* sentDelays(mode.policy, from - 1 + delaysMs.length, error)
            assert.deepStrictEqual(sent.slice(from - 1), delaysMs)
          }).pipe(
            withRandom(random),
            Effect.provide([RetryClassifier.layer(mode.classifier), RetryQuota.layerUnlimited])
          )
        }
      )

      // Java 2.x has the strategy of Java 1.x.
      it.effect.each(backoffs)(
        "backoff: random $random, $basis",
        ({ baseMs, delaysMs, maxBackoffMs, random, retries }) =>
          Effect.gen(function*() {
            const policy = JavaV1.fullJitterBackoff({ baseDelay: baseMs, maxBackoff: maxBackoffMs })
            const all = yield* steppedDelays(policy, Math.max(...retries), sdkError({ status: 500 }))
            assert.deepStrictEqual<ReadonlyArray<number | undefined>>(retries.map((retry) => all[retry - 1]), delaysMs)
          }).pipe(withRandom(random), Effect.provide(RetryQuota.layerUnlimited))
      )

      it.effect.each(hints)("hint: $retryAfterMs ms, $basis", ({ delayMs, random, retryAfterMs }) => {
        const mode = make()
        return Effect.gen(function*() {
          assert.deepStrictEqual(yield* sentDelays(mode.policy, 1, sdkError({ status: 500, retryAfterMs })), [delayMs])
        }).pipe(withRandom(random), Effect.provide(mode.layer))
      })

      for (const { cost, error, verdict } of errors) {
        it.effect(`error: ${JSON.stringify(error)} is ${verdict}`, () => {
          const mode = make()
          return Effect.gen(function*() {
            const facts = Option.getOrUndefined(mode.classifier(sdkError(error)))
            const seen = facts === undefined ? "final" : facts.throttling ? "throttling" : "transient"
            assert.strictEqual(seen, verdict)
            const call = withRetry(Effect.fail(sdkError(error)), mode.policy)
            const fiber = yield* Effect.forkChild(call, { startImmediately: true })
            assert.strictEqual(yield* RetryQuota.balance, 500 - (cost ?? 0))
            assert.strictEqual(fiber.pollUnsafe() === undefined, verdict !== "final")
          }).pipe(withRandom(0.5), Effect.provide(mode.layer))
        })
      }

      it.effect("adaptive mode requires a limiter, and is otherwise the same policy", () =>
        Effect.sync(() => {
          const { adaptive, policy } = make()
          assert.strictEqual(
            String(adaptive),
            String(RetryPolicy.requires(policy, AdaptiveRateLimiter.AdaptiveRateLimiter))
          )
        }))

      it("refuses impossible options by name", () => {
        for (const options of [{ maxAttempts: 0 }, { maxAttempts: 1.5 }, { maxBackoff: 0 }, { maxBackoff: -1 }]) {
          assert.throws(() => void make(options), InvalidOption, `SdkModes.${sdk}: ${Object.keys(options)[0]}`)
        }
      })
    })
  }

  // The same outcomes, hints and random numbers; compared after every step. A delay of theirs is cut to whole
  // milliseconds, one of ours rounded up.
  describe("javaScript, next to StandardRetryStrategy of @smithy/core 3.39.0", () => {
    it.effect.each(
      [
        { randoms: "that make whole delays", chance: (next: () => number) => next() < 0.6 ? 0.5 : 0, round: 0 },
        { randoms: "of all kinds", chance: (next: () => number) => next(), round: 1 }
      ] as const
    )("law: decides, waits and books the same, random numbers $randoms", ({ chance, round }) =>
      Effect.gen(function*() {
        const seen = { steps: 0, retry: 0, refused: 0, heldBack: 0, success: 0, rounded: 0, lowest: 500 }
        const sides = (maxAttempts: number) => ({
          js: new StandardRetryStrategy(maxAttempts),
          ours: SdkModes.javaScript({ maxAttempts }).policy
        })
        for (let seed = 0; seed < budget(200, 40); seed++) {
          yield* compared(seeded(seed), { bases: [100, 100], chance, round, seen, sides, polls: 0 }).pipe(
            Effect.provide(RetryQuota.layer())
          )
        }
        assert.isAbove(Math.min(seen.retry, seen.refused, seen.success), budget(200, 40), JSON.stringify(seen))
        assert.strictEqual(seen.heldBack, 0)
        assert.isBelow(seen.lowest, 10)
        assert.strictEqual(seen.rounded > 0, round > 0)
      }))
  })

  describe("go", () => {
    it.effect("refunds no more than a retry took when it is never sent, and nothing when it fails", () =>
      Effect.gen(function*() {
        const { policy } = SdkModes.go()
        const error = sdkError({ status: 500 })
        const waiting = yield* Effect.forkChild(withRetry(Effect.fail(error), policy), { startImmediately: true })
        assert.strictEqual(yield* RetryQuota.balance, 495)
        yield* Fiber.interrupt(waiting)
        assert.strictEqual(yield* RetryQuota.balance, 500)
        const failing = yield* Effect.forkChild(withRetry(Effect.fail(error), policy), { startImmediately: true })
        yield* TestClock.adjust("1 minute")
        assert.isDefined(failing.pollUnsafe())
        assert.strictEqual(yield* RetryQuota.balance, 490)
      }).pipe(Effect.provide(SdkModes.go().layer)))
  })

  it("a code that is no text hides no other code", () => {
    for (const code of [Object.create(null), ["Throttling"], Symbol("Throttling"), 5]) {
      const facts = SdkModes.ruby().classifier(Object.assign(new Error(), { code, Code: "BadDigest" }))
      assert.strictEqual(Option.getOrUndefined(facts)?.throttling, false, String(typeof code))
    }
  })

  it.effect("the layer of another mode has a quota of its own", () =>
    Effect.gen(function*() {
      const [first, second] = [SdkModes.ruby(), SdkModes.ruby()]
      const spent = Effect.andThen(RetryQuota.reserve(100), RetryQuota.balance)
      assert.strictEqual(yield* Effect.provide(spent, first.layer), 400)
      assert.strictEqual(yield* Effect.provide(RetryQuota.balance, second.layer), 500)
    }))
})

/** The gate of a token limiter, driven by hand: what it counts as used, and when the next passes. */
import { assert, describe, it } from "@effect/vitest"
import { RetryInfo } from "effect-retry"
import * as TokenLimiter from "effect-retry/TokenLimiter"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { CurrentMeter, Meter } from "../../src/gates/internal/tokenGate.ts"
import { gated } from "../utils/gated.ts"

class Answered extends Data.TaggedError("Answered")<{ readonly status?: number; readonly headers?: object }> {}

/** A limiter of 1,000 tokens a second, unless options say otherwise, and sends that are expected to use this much. */
const subject = (options: TokenLimiter.Options, estimate: unknown) =>
  Effect.gen(function*() {
    const { gate, state } = yield* TokenLimiter.make({ slack: 0, tokens: 1000, per: "1 second", ...options })
    return { ...(yield* gated(gate)), state, left: Effect.map(state, ({ tokens }) => tokens.remaining) }
  }).pipe(Effect.provideService(TokenLimiter.CurrentEstimate, estimate as never))

const usage = (input?: unknown, output?: unknown) => ({ value: { usage: { input, output } } })
const told = ({ usage }: any) => usage
const throttle = RetryInfo.make({ throttling: true })

describe("the gate of a token limiter", () => {
  const estimates: ReadonlyArray<readonly [estimate: unknown, reserved: number]> = [
    [{ input: 50, output: 20 }, 70],
    [{ input: 50 }, 150],
    [{ output: 20 }, 320],
    [{ input: "50", output: 0 }, 300],
    [{ input: null, output: 0 }, 300],
    [{ input: -1, output: 0 }, 300],
    [{ input: 0, output: 0 }, 0],
    [{ input: Number.MAX_SAFE_INTEGER, output: 0 }, Number.MAX_SAFE_INTEGER],
    [{ input: Number.MAX_SAFE_INTEGER + 1, output: 0 }, 300]
  ]
  for (const [estimate, reserved] of estimates) {
    it.effect(`an estimate of ${JSON.stringify(estimate)} reserves ${reserved}`, () =>
      Effect.gen(function*() {
        const { left, send } = yield* subject({ estimate: { input: 300, output: 100 } }, estimate)
        yield* send("a")
        assert.strictEqual(yield* left, 1000 - reserved)
      }))
  }

  const usages: ReadonlyArray<readonly [what: string, usage: unknown, used: number]> = [
    ["both", { input: 10, output: 20 }, 30],
    ["input alone: all is as expected", { input: 10 }, 500],
    ["output alone: all is as expected", { output: 20 }, 500],
    ["nothing: all is as expected", {}, 500],
    ["null: all is as expected", null, 500],
    ["nonsense: all is as expected", { input: "10", output: -1 }, 500],
    ["input that is cached too", { input: 10, output: 20, cached: 40 }, 30]
  ]
  for (const [what, used, tokens] of usages) {
    it.effect(`a usage that says ${what}`, () =>
      Effect.gen(function*() {
        const estimate = { input: 300, output: 200 }
        for (const [cachedInput, more] of [["free", 0], ["counted", (used as any)?.cached ?? 0]] as const) {
          const options = { usage: () => used as never, cachedInput }
          const { end, left, send } = yield* subject(options, estimate)
          yield* send("a")
          end("a")
          assert.strictEqual(yield* left, 1000 - tokens - more)
        }
      }))
  }

  const refusals: ReadonlyArray<readonly [what: string, error: unknown, info: RetryInfo.RetryInfo, back: boolean]> = [
    ["a failure without a status", new Answered({}), RetryInfo.transient, false],
    ...[200, 399, 400, 407, 408, 409, 499, 500, 503].map((status) =>
      [
        `a ${status}`,
        new Answered({ status }),
        RetryInfo.transient,
        status >= 400 && status < 500 && status !== 408
      ] as const
    ),
    ["a throttle with a hint", new Answered({}), RetryInfo.make({ throttling: true, retryAfter: 10 as never }), true]
  ]
  for (const [what, error, info, back] of refusals) {
    it.effect(`${what} ${back ? "gives the tokens back" : "counts as expected"}`, () =>
      Effect.gen(function*() {
        const { end, left, send } = yield* subject({}, 600)
        yield* send("a")
        end("a", "Failure", { error, info })
        assert.strictEqual(yield* left, back ? 1000 : 400)
      }))
  }

  it.effect("a throttle that says nothing of what is left leaves nothing, also if it says the limit", () =>
    Effect.gen(function*() {
      const leftAfter = (headers: object) =>
        Effect.gen(function*() {
          const { end, left, send } = yield* subject({}, 600)
          yield* send("a")
          end("a", "Failure", { error: new Answered({ status: 429, headers }), info: throttle })
          return yield* left
        })
      assert.strictEqual(yield* leftAfter({ "x-ratelimit-limit-tokens": "800" }), 0)
      assert.strictEqual(yield* leftAfter({ "x-ratelimit-remaining-tokens": "300" }), 300)
      assert.strictEqual(yield* leftAfter({}), 0)
    }))

  it.effect("expects the 95th percentile of what the last hundred calls have used, in whatever order they came", () =>
    Effect.gen(function*() {
      const { gate, state } = yield* TokenLimiter.make({
        slack: 0,
        tokens: 10_000_000,
        usage: told,
        estimate: { input: 7, output: 0 }
      })
      const { end, send } = yield* gated(gate)
      const left = Effect.map(state, ({ tokens }) => tokens.remaining)
      const expected = Effect.gen(function*() {
        const before = yield* left
        yield* send("look")
        const after = yield* left
        end("look", "Failure", { error: new Answered({ status: 400 }), info: RetryInfo.notRetryable })
        return before - after
      })
      const use = (times: number, input: number) =>
        Effect.gen(function*() {
          for (let time = 0; time < times; time++) {
            yield* send("a")
            end("a", "Success", usage(input, 0))
          }
          return yield* expected
        })
      assert.strictEqual(yield* expected, 7)
      const silent = yield* Effect.provideService(gated(gate), TokenLimiter.CurrentEstimate, {
        input: 500,
        output: 500
      })
      yield* silent.send("a")
      silent.end("a", "Success", usage())
      assert.strictEqual(yield* expected, 7)
      assert.deepStrictEqual([yield* use(1, 90), yield* use(1, 1000), yield* use(1, 200)], [90, 1000, 1000])
      yield* use(100, 5)
      yield* use(50, 1000)
      yield* use(50, 1)
      assert.strictEqual(yield* use(50, 2), 2)
      assert.deepStrictEqual([yield* use(5, 900), yield* use(1, 900)], [2, 900])
    }))

  it.effect("after a failure, a refund lets the next pass in the same step, or sooner", () =>
    Effect.gen(function*() {
      const { end, left, log, send } = yield* subject({ maxWait: "1 minute" }, 500)
      const refused = { error: new Answered({ status: 400 }), info: RetryInfo.notRetryable }
      yield* send("a")
      yield* send("b")
      yield* send("c")
      end("a", "Failure", refused)
      assert.deepStrictEqual(log, ["a at 0", "b at 0", "c at 0"])
      assert.strictEqual(yield* left, 0)
      yield* TestClock.adjust(1000)
      assert.strictEqual(yield* left, 1000)
    }))

  for (const how of ["refused", "canceled", "used less"] as const) {
    it.effect(`when another is ${how}, the next passes as soon as there is enough`, () =>
      Effect.gen(function*() {
        const clock = yield* Clock.Clock
        const { gate } = yield* TokenLimiter.make({ slack: 0, tokens: 1000, per: "1 second", usage: told })
        const of = (estimate: number) =>
          Effect.provideService(gated(gate), TokenLimiter.CurrentEstimate, {
            input: estimate,
            output: 0
          })
        const [small, large] = [yield* of(300), yield* of(900)]
        yield* small.send("a")
        yield* small.send("b")
        yield* large.send("c")
        yield* TestClock.adjust(100)
        // 500 are there; 900 would be in 400 ms.
        if (how === "refused") {
          small.end("a", "Failure", { error: new Answered({ status: 400 }), info: RetryInfo.notRetryable })
        } else if (how === "canceled") small.cancel("a")
        else small.end("a", "Success", usage(0, 0))
        yield* TestClock.adjust(99)
        assert.deepStrictEqual(large.log, [])
        yield* TestClock.adjust(1)
        assert.deepStrictEqual(large.log, ["c at 200"])
        assert.strictEqual(Number(clock.monotonicTimeNanosUnsafe()) / 1e6, 200)
      }))
  }

  it.effect("a success that used less lets the next pass in the same step", () =>
    Effect.gen(function*() {
      const { end, log, send } = yield* subject({ usage: told }, 1000)
      yield* send("a")
      yield* send("b")
      end("a", "Success", usage(0, 0))
      assert.deepStrictEqual(log, ["a at 0", "b at 0"])
    }))

  it.effect("none overtakes a waiter, however little it needs, and each waits for its own time at most", () =>
    Effect.gen(function*() {
      const { gate } = yield* TokenLimiter.make({
        slack: 0,
        tokens: 1000,
        per: "1 second",
        maxWait: 400,
        maxWaiters: 2
      })
      const of = (estimate: number) =>
        Effect.provideService(gated(gate), TokenLimiter.CurrentEstimate, {
          input: estimate,
          output: 0
        })
      const [most, some, few] = [yield* of(900), yield* of(500), yield* of(50)]
      yield* most.send("a")
      yield* some.send("b")
      yield* few.send("c")
      yield* few.send("d")
      assert.deepStrictEqual([some.log, few.log], [[], ["d queue-full at 0"]])
      // It needs exactly as long as it may wait.
      yield* TestClock.adjust(399)
      assert.deepStrictEqual(some.log, [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(some.log, ["b at 400"])
      assert.strictEqual(few.log[1], "c exceeded at 400")
      yield* some.send("e")
      assert.strictEqual(some.log[1], "e exceeded at 400")
    }))

  it.effect("what is used beyond what was reserved is a debt from then on, not from when it was sent", () =>
    Effect.gen(function*() {
      const { end, left, send } = yield* subject({ usage: told }, 600)
      yield* send("a")
      yield* TestClock.adjust(60_000)
      end("a", "Success", usage(1200, 0))
      assert.strictEqual(yield* left, 400)
    }))

  it.effect("a meter settles the send of its stream at the end, and one stream before it begins another", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const meter = new Meter(clock)
      meter.see({ usage: { input: 1 } })
      const { end, left, send, state } = yield* subject({ usage: told }, 400).pipe(
        Effect.provideService(CurrentMeter, meter)
      )
      const inFlight = Effect.map(state, ({ inFlight }) => inFlight)
      yield* send("a")
      end("a", "Success", usage(100, 0))
      assert.deepStrictEqual([yield* inFlight, yield* left], [1, 600])
      yield* send("b")
      end("b", "Success", { value: "stream" })
      assert.deepStrictEqual([yield* inFlight, yield* left], [1, 500])
      meter.see({ usage: { input: 250, output: 0 } })
      meter.see({ headers: { "x-ratelimit-remaining-tokens": "120" } })
      assert.strictEqual(yield* left, 120)
      meter.end()
      assert.deepStrictEqual([yield* inFlight, yield* left], [0, 270])
      meter.end()
      assert.deepStrictEqual([yield* inFlight, yield* left], [0, 270])
    }))
})

/** The gate of a concurrency limiter, driven by hand: what the public tests cannot see to the step. */
import { assert, describe, it } from "@effect/vitest"
import { RetryInfo, type SendGate } from "effect-retry"
import type * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { ConcurrencyGate, validated } from "../../src/gates/internal/concurrencyGate.ts"
import { constantRandom } from "../utils/call.ts"
import { gated } from "../utils/gated.ts"

/** A rule by a script: the limit at first, and after each outcome that counts. It pauses for 100 ms. */
const scripted = (first: number, ...later: ReadonlyArray<number>) => {
  const samples: Array<ConcurrencyLimiter.Sample> = []
  const paused: Array<number> = []
  const rule: ConcurrencyLimiter.Rule<number> = {
    initial: 0,
    limit: (step) => [first, ...later][Math.min(step, later.length)]!,
    next: (step, sample) => {
      samples.push(sample)
      return step + 1
    },
    isTimed: () => false,
    pauseMillis: (step) => {
      paused.push([first, ...later][step]!)
      return 100
    }
  }
  return { rule, samples, paused }
}

const subject = (options: ConcurrencyLimiter.Options) =>
  Effect.gen(function*() {
    const gate = new ConcurrencyGate(validated(options), constantRandom(0.5))
    return yield* gated(gate)
  })

describe("the gate of a concurrency limiter", () => {
  it.effect("counts a success and a drop, and no other failure nor a send without an outcome", () =>
    Effect.gen(function*() {
      const { rule, samples } = scripted(10)
      const { cancel, end, gate, send } = yield* subject({ rule, isDrop: ({ error }) => error === "drop" })
      assert.strictEqual(gate.name, "ConcurrencyLimiter")
      for (const name of ["a", "b", "c", "d", "e"]) yield* send(name)
      end("a", "Success")
      end("b", "Failure", { error: "drop" })
      end("c", "Failure", { error: "other" })
      end("d", "Unknown")
      cancel("e")
      const of = { overtaken: false, rttMillis: undefined }
      assert.deepStrictEqual(samples, [
        { outcome: "success", inFlight: 5, ...of },
        { outcome: "refusal", inFlight: 4, ...of }
      ])
      assert.strictEqual(gate.inFlight, 0)
    }))

  it.effect("says of a drop whether it was a timeout: by the facts, or a gateway's 504", () =>
    Effect.gen(function*() {
      const { rule, samples } = scripted(10)
      const { end, send } = yield* subject({ rule, isDrop: () => true })
      for (const name of ["a", "b", "c", "d"]) yield* send(name)
      end("a", "Failure", { info: RetryInfo.timedOut })
      end("b", "Failure", { error: { status: 504 }, info: RetryInfo.transient })
      end("c", "Failure", { error: { status: 503 }, info: RetryInfo.transient })
      end("d", "Failure", { info: RetryInfo.throttled() })
      assert.deepStrictEqual(samples.map(({ outcome }) => outcome), ["timeout", "timeout", "refusal", "refusal"])
    }))

  it.effect("frees the slot of a send whose outcome cannot be read", () =>
    Effect.gen(function*() {
      const { gate } = yield* subject({ rule: scripted(1).rule })
      const passes: Array<SendGate.Pass> = []
      gate.enter({ attempt: 1, nowMillis: 0, context: Context.empty(), hold: (pass) => passes.push(pass) })
      const outcome: SendGate.Outcome = {
        _tag: "Failure",
        value: undefined,
        error: undefined,
        nowMillis: 0,
        get info(): never {
          throw new Error("it cannot be read")
        }
      }
      assert.throws(() => passes[0]!.settle(outcome))
      assert.strictEqual(gate.inFlight, 0)
    }))

  it.effect("a rule may refuse retries, but no first send, nor when it is full", () =>
    Effect.gen(function*() {
      const { rule } = scripted(1)
      const { gate, log, send } = yield* subject({ rule: { ...rule, admitsRetries: () => false } })
      yield* send("retry", { attempt: 2, failureClass: "timeout" })
      yield* send("first")
      yield* send("second")
      yield* send("retry of the second", { attempt: 3, failureClass: "unknown" })
      assert.deepStrictEqual(log, [
        "retry timing-out at 0",
        "first at 0",
        "retry of the second timing-out at 0"
      ])
      assert.deepStrictEqual([gate.inFlight, gate.waiting], [1, 1])
    }))

  it.effect("the rule hears how long ago the last drop was, and of each final answer that is none; a hedge is no retry", () =>
    Effect.gen(function*() {
      const { rule } = scripted(9)
      const asked: Array<readonly [step: number, sinceDropMillis: number]> = []
      const { end, log, send } = yield* subject({
        rule: {
          ...rule,
          answered: (step) => step + 100,
          admitsRetries: (step, sinceDropMillis) => asked.push([step, sinceDropMillis]) < 0
        }
      })
      const retries = (name: string) => send(name, { attempt: 2, failureClass: "timeout" })
      for (const name of ["a", "b", "c", "d", "e"]) yield* send(name)
      yield* retries("1")
      end("a", "Failure", { info: RetryInfo.timedOut })
      yield* TestClock.adjust(70)
      yield* retries("2")
      end("b", "Failure", { info: RetryInfo.notRetryable })
      end("c", "Unknown")
      end("d", "Failure", { info: RetryInfo.transient })
      yield* retries("3")
      end("e", "Success")
      yield* retries("4")
      assert.deepStrictEqual(asked, [[0, Infinity], [1, 70], [101, 70], [102, 70]])
      assert.lengthOf(log.filter((line) => line.includes("timing-out")), 4)
      yield* send("hedge", { attempt: 2 })
      assert.strictEqual(log.at(-1), "hedge at 70")
    }))

  it.effect("a send waits as long as the rule says when it begins to, unless maxWait does", () =>
    Effect.gen(function*() {
      for (const maxWait of [undefined, 30]) {
        const { rule } = scripted(2, 1)
        const learned = { ...rule, maxWaitMillis: (step: number) => step === 0 ? 250 : 40 }
        const { end, log, send } = yield* subject({ rule: learned, isDrop: () => true, maxWait })
        for (const name of ["a", "b"]) yield* send(name)
        end("a")
        yield* send("c")
        yield* TestClock.adjust(29)
        assert.deepStrictEqual(log.slice(2), [])
        yield* TestClock.adjust(1)
        assert.lengthOf(log.slice(2), maxWait === 30 ? 1 : 0)
        yield* TestClock.adjust(10)
        assert.lengthOf(log.slice(2), 1)
      }
    }))

  it.effect("a send is overtaken by a cut while it is in flight, and by nothing else", () =>
    Effect.gen(function*() {
      const { rule, samples } = scripted(8, 8, 9, 5, 5)
      const { end, send } = yield* subject({ rule })
      for (const name of ["a", "b", "c", "d"]) yield* send(name)
      for (const name of ["a", "b", "c", "d"]) end(name)
      yield* send("e")
      end("e")
      assert.deepStrictEqual(samples.map(({ overtaken }) => overtaken), [false, false, false, true, false])
    }))

  it.effect("times a send from when it passes, not from when it begins to wait", () =>
    Effect.gen(function*() {
      const { rule, samples } = scripted(0.5, 0.5)
      const { end, send } = yield* subject({ rule: { ...rule, isTimed: () => true } })
      yield* send("a")
      yield* send("b", { nowMillis: 0 })
      yield* TestClock.adjust(30)
      end("a")
      yield* TestClock.adjust(100)
      yield* TestClock.adjust(7)
      end("b")
      assert.deepStrictEqual(samples.map(({ rttMillis }) => rttMillis), [30, 7])
    }))

  it.effect("is strained while it is full, and for ten seconds after a cut", () =>
    Effect.gen(function*() {
      const { end, gate, send } = yield* subject({ rule: scripted(3, 3, 2).rule })
      assert.isFalse(gate.isStrained(0))
      for (const name of ["a", "b", "c"]) yield* send(name)
      assert.isTrue(gate.isStrained(0))
      yield* TestClock.adjust(1000)
      end("a")
      assert.isFalse(gate.isStrained(1000))
      end("b")
      assert.deepStrictEqual([1000, 10_999, 11_000].map((now) => gate.isStrained(now)), [true, true, false])
    }))

  it.effect("below one it is strained while one is in flight, during the pause, and while any send waits", () =>
    Effect.gen(function*() {
      const { end, gate, log, send } = yield* subject({ rule: scripted(0.5).rule, maxWait: "1 minute" })
      assert.isFalse(gate.isStrained(0))
      yield* send("a")
      assert.isTrue(gate.isStrained(1000))
      end("a")
      assert.deepStrictEqual([99, 100, 101].map((now) => gate.isStrained(now)), [true, false, false])
      yield* send("b")
      assert.isTrue(gate.isStrained(100))
      yield* send("c", { nowMillis: 100 })
      assert.deepStrictEqual(log, ["a at 0"])
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(log, ["a at 0", "b at 100"])
    }))

  it.effect("below one, the next passes when the pause after the last has ended, also if it waited before that", () =>
    Effect.gen(function*() {
      const { cancel, end, log, send } = yield* subject({ rule: scripted(0.5).rule, maxWait: "1 minute" })
      for (const name of ["a", "b", "c", "d"]) yield* send(name)
      yield* TestClock.adjust(10)
      end("a")
      yield* TestClock.adjust(99)
      assert.deepStrictEqual(log, ["a at 0"])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(log, ["a at 0", "b at 110"])
      yield* TestClock.adjust(1000)
      // It was never made: there is no pause after it.
      cancel("b")
      yield* TestClock.adjust(0)
      assert.deepStrictEqual(log, ["a at 0", "b at 110", "c at 1110"])
      yield* TestClock.adjust(1000)
      end("c")
      yield* TestClock.adjust(100)
      assert.strictEqual(log.at(-1), "d at 2210")
    }))

  it.effect("from one on, there is no pause, and a waiter passes in the step in which another ends or is canceled", () =>
    Effect.gen(function*() {
      const { paused, rule } = scripted(1)
      const { cancel, end, log, send } = yield* subject({ rule })
      for (const name of ["a", "b", "c"]) yield* send(name)
      end("a")
      assert.deepStrictEqual(log, ["a at 0", "b at 0"])
      cancel("b")
      assert.deepStrictEqual(log, ["a at 0", "b at 0", "c at 0"])
      end("c")
      assert.deepStrictEqual(paused, [])
    }))

  it.effect("back at one, it does not wait for the end of a pause", () =>
    Effect.gen(function*() {
      const { paused, rule } = scripted(2, 0.5, 1)
      const { end, log, send } = yield* subject({ rule, isDrop: () => true })
      yield* send("a")
      yield* send("b")
      end("a", "Failure", { info: RetryInfo.transient })
      assert.deepStrictEqual(paused, [0.5])
      end("b")
      yield* send("c")
      assert.deepStrictEqual(log, ["a at 0", "b at 0", "c at 0"])
    }))

  describe("other options", () => {
    it.effect("with another rule it starts over, and those that have room now pass in the same step", () =>
      Effect.gen(function*() {
        const { end, gate, log, send } = yield* subject({ rule: scripted(1).rule })
        for (const name of ["a", "b", "c", "d"]) yield* send(name)
        gate.change(validated({ rule: scripted(3).rule }, "a third"))
        assert.deepStrictEqual(log, ["a at 0", "b at 0", "c at 0"])
        assert.strictEqual(gate.limit, 3)
        const lower = scripted(2)
        gate.change(validated({ rule: lower.rule }, "a second"))
        end("a")
        assert.deepStrictEqual([lower.samples[0]!.overtaken, gate.inFlight, gate.waiting], [true, 2, 1])
        assert.isFalse(gate.isStrained(0) && gate.waiting === 0)
      }))

    it.effect("another rule does not keep the pause of the last", () =>
      Effect.gen(function*() {
        const { end, gate, log, send } = yield* subject({ rule: scripted(0.5).rule })
        yield* send("a")
        end("a")
        yield* send("b")
        gate.change(validated({ rule: scripted(0.7).rule }, "b"))
        assert.deepStrictEqual(log, ["a at 0", "b at 0"])
      }))

    it.effect("with the same rule it keeps the limit, and takes the rest", () =>
      Effect.gen(function*() {
        const { rule } = scripted(1, 2)
        const { end, gate, log, send } = yield* subject({ rule })
        yield* send("a")
        end("a")
        for (const name of ["b", "c", "d", "e"]) yield* send(name)
        gate.change(validated({ rule: scripted(5).rule, order: "lifo", maxWait: 100, maxWaiters: 3 }))
        assert.deepStrictEqual([gate.limit, gate.inFlight, gate.waiting], [2, 2, 2])
        end("b")
        assert.strictEqual(gate.limit, 2)
        assert.deepStrictEqual(log, ["a at 0", "b at 0", "c at 0", "e at 0"])
        for (const name of ["f", "g", "h"]) yield* send(name)
        assert.strictEqual(log.at(-1), "h queue-full at 0")
        yield* TestClock.adjust(100)
        // "d" was in line before: it may wait for 250 ms.
        assert.strictEqual(gate.waiting, 3)
        gate.change(validated({ onExceeded: "fail" }))
        yield* send("i")
        assert.strictEqual(log.at(-1), "i full at 100")
      }))
  })
})

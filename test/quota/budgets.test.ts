/** The budgets that count, and what they keep when their options change. */
import { assert, describe, it } from "@effect/vitest"
import { RetryInfo } from "effect-retry"
import * as RetryBudget from "effect-retry/RetryBudget"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { HedgeBudget } from "../../src/hedge/internal/hedgeBudget.ts"
import { isRejected } from "../../src/internal/rejection.ts"
import { GrpcThrottleStore, validGrpc } from "../../src/quota/internal/grpcBudget.ts"
import { InFlightStore } from "../../src/quota/internal/inFlightBudget.ts"
import { ShareStore, validShare } from "../../src/quota/internal/shareBudget.ts"
import { gated } from "../utils/gated.ts"

describe("inFlight", () => {
  it.effect("its rule sees all sends, the first sends among them, and the retries", () =>
    Effect.gen(function*() {
      const seen: Array<ReadonlyArray<number>> = []
      const store = new InFlightStore(({ firstSends, retries, sends }) => {
        seen.push([sends, firstSends, retries])
        return 2
      })
      const { cancel, end, gate, send } = yield* gated(store.gates[0]!)
      yield* send("a")
      yield* send("b", { attempt: 2 })
      yield* send("c", { attempt: 3 })
      const reservation = store.reserve(5)!
      store.balance()
      cancel("b")
      end("c")
      store.balance()
      end("a")
      reservation.spend()
      store.balance()
      assert.deepStrictEqual(seen, [[3, 1, 0], [3, 1, 1], [1, 1, 1], [0, 0, 0]])
      assert.deepStrictEqual([gate.name, gate.order], ["RetryBudget", 0])
    }))

  it("with another rule, what is in progress stays in progress", () => {
    const store = new InFlightStore(() => 2)
    store.reserve(1)
    store.change(() => 10)
    assert.strictEqual(store.balance(), 9)
    store.change(() => 1)
    assert.isUndefined(store.reserve(1))
    assert.strictEqual(store.balance(), 0)
  })
})

describe("gRPC's throttle", () => {
  it.effect("counts successes and failures that count, and no send without an outcome", () =>
    Effect.gen(function*() {
      const store = yield* RetryBudget.grpc({ maxTokens: 10, tokenRatio: 0.5, isFailure: ({ error }) => error !== 1 })
      const clock = yield* Clock.Clock
      const gate = store.gates![0]!
      const { cancel, end, send } = yield* gated(gate)
      const after = (step: () => void) => {
        step()
        return store.balance(clock)
      }
      for (const name of "abcdefg") yield* send(name)
      assert.deepStrictEqual([
        after(() => end("a", "Failure")),
        after(() => end("b", "Failure", { error: 1 })),
        after(() => end("c", "Unknown")),
        after(() => cancel("d")),
        after(() => end("e", "Success")),
        after(() => end("f", "Success")),
        after(() => end("g", "Success"))
      ], [9, 9, 9, 9, 9.5, 10, 10])
      assert.deepStrictEqual([gate.name, gate.order], ["RetryBudget", 1000])
    }))

  it.effect("half full stays half full when it is changed", () =>
    Effect.gen(function*() {
      const store = new GrpcThrottleStore(validGrpc({ maxTokens: 10 }))
      const { end, send } = yield* gated(store.gates[0]!)
      for (const name of "abcde") {
        yield* send(name)
        end(name, "Failure")
      }
      assert.strictEqual(store.balance(), 5)
      assert.isUndefined(store.reserve(1))
      store.change(validGrpc({ maxTokens: 100, tokenRatio: 2 }))
      assert.strictEqual(store.balance(), 50)
      yield* send("f")
      end("f")
      assert.strictEqual(store.balance(), 52)
      assert.isDefined(store.reserve(1))
    }))
})

describe("a share of the calls", () => {
  it.effect("with another share, it keeps the recent calls; with another window it starts over", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const store = new ShareStore(validShare({ share: 0.5, minPerSecond: 1, window: 1000 }), 0)
      const { gate, send } = yield* gated(store.gates[0]!)
      assert.deepStrictEqual([gate.name, gate.order], ["RetryBudget", 1000])
      for (const name of "abcd") yield* send(name)
      assert.strictEqual(store.balance(clock), 3)
      store.change(validShare({ share: 1, minPerSecond: 2, window: 1000 }), clock)
      assert.strictEqual(store.balance(clock), 6)
      yield* TestClock.adjust(500)
      store.change(validShare({ share: 1, minPerSecond: 2, window: 2000 }), clock)
      assert.strictEqual(store.balance(clock), 4)
      yield* send("e")
      yield* TestClock.adjust(1999)
      assert.strictEqual(store.balance(clock), 5)
      // Its slices begin when they are first used.
      yield* TestClock.adjust(200)
      assert.strictEqual(store.balance(clock), 4)
    }))
})

describe("a share of the traffic", () => {
  const share = Effect.map(Clock.Clock, (clock) => {
    const store = new HedgeBudget(0.5, 1000)
    return { store, clock, balance: () => store.balance(clock) }
  })

  it.effect("with another share, it keeps the recent calls; with another window it starts empty", () =>
    Effect.gen(function*() {
      const { balance, clock, store } = yield* share
      assert.deepStrictEqual([store.onExceeded, store.capacity, store.firstAttemptCost], ["stop", Infinity, 0])
      for (let call = 0; call < 4; call++) store.deposit(0.5, clock)
      assert.strictEqual(balance(), 2)
      store.change(0.25, 1000)
      assert.strictEqual(balance(), 1)
      assert.isDefined(store.reserve(1, clock))
      store.deposit(0.25, clock)
      store.change(0.25, 2000)
      assert.strictEqual(balance(), 0)
      store.deposit(0.25, clock)
      yield* TestClock.adjust(1999)
      assert.strictEqual(balance(), 0.25)
      yield* TestClock.adjust(1)
      assert.strictEqual(balance(), 0)
    }))

  for (const [missing, isGranted] of [[0, true], [1e-6, true], [1.1e-6, false]] as const) {
    it.effect(`short by ${missing} calls, a send is ${isGranted ? "granted" : "refused"}`, () =>
      Effect.gen(function*() {
        const { clock } = yield* share
        const store = new HedgeBudget(1, 1000)
        store.deposit(1 - missing, clock)
        assert.strictEqual(store.reserve(1, clock) !== undefined, isGranted)
      }))
  }
})

describe("what counts as rejected", () => {
  const rows: ReadonlyArray<readonly [what: string, info: RetryInfo.RetryInfo | undefined, rejected: boolean]> = [
    ["a transient failure", RetryInfo.transient, true],
    ["one that may be repeated, perhaps", RetryInfo.make({ safety: "Maybe" }), true],
    ["a final one", RetryInfo.make({ safety: "No" }), false],
    ["a final one that is a throttle", RetryInfo.make({ safety: "No", throttling: true }), true],
    ["a final one that is a timeout", RetryInfo.make({ safety: "No", timeout: true }), true],
    ["one that a rule forbids to retry", { ...RetryInfo.make({ safety: "No" }), vetoed: true }, true],
    ["an unknown failure", undefined, false]
  ]
  for (const [what, info, rejected] of rows) {
    it(`${what}: ${rejected}`, () => {
      assert.strictEqual(
        isRejected({ _tag: "Failure", value: undefined, error: "x", info, nowMillis: 0 }),
        rejected
      )
    })
  }
})

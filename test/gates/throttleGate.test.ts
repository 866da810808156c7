/** The gate of a client throttle, driven by hand: what it keeps when its options change, and what it asks for. */
import { assert, describe, it } from "@effect/vitest"
import type * as ClientThrottle from "effect-retry/ClientThrottle"
import * as Effect from "effect/Effect"
import type * as Random from "effect/Random"
import * as TestClock from "effect/testing/TestClock"
import { ThrottleGate, validated } from "../../src/gates/internal/throttleGate.ts"
import { constantRandom } from "../utils/call.ts"
import { gated } from "../utils/gated.ts"

const subject = (options: ClientThrottle.Options, random: Random.Random = constantRandom(0.999)) =>
  Effect.suspend(() => gated(new ThrottleGate(validated(options), random, 0)))

describe("the gate of a client throttle", () => {
  it.effect("changed, it keeps its counts as long as they are counted in the same way over the same window", () =>
    Effect.gen(function*() {
      const { end, gate, send } = yield* subject({ window: 1000 })
      const counts = () => [gate.look(0).requests, gate.look(0).accepts]
      assert.strictEqual(gate.name, "ClientThrottle")
      for (const name of "abcd") yield* send(name)
      end("a")
      end("b", "Failure")
      gate.change(validated({ window: 1000, k: 3, maxRejection: 0.1 }), 0)
      assert.deepStrictEqual(counts(), [2, 1])
      gate.change(validated({ window: 1000, counts: "sent" }), 0)
      assert.deepStrictEqual(counts(), [0, 0])
      // Let through under the earlier way to count.
      end("c")
      assert.deepStrictEqual(counts(), [0, 0])
      yield* send("e")
      end("e", "Failure")
      assert.deepStrictEqual(counts(), [1, 0])
      gate.change(validated({ window: 2000, counts: "sent" }), 0)
      assert.deepStrictEqual(counts(), [0, 0])
      yield* send("f")
      yield* TestClock.adjust(1999)
      assert.strictEqual(gate.look(1999).requests, 1)
      assert.strictEqual(gate.look(2000).requests, 0)
    }))

  it.effect("its options hold from the change on", () =>
    Effect.gen(function*() {
      const { end, gate, send } = yield* subject({ k: 1 })
      for (const name of "abc") yield* send(name)
      end("a")
      for (const name of "bc") end(name, "Failure")
      assert.deepStrictEqual(gate.look(0), { requests: 3, accepts: 1, rejection: 0.5 })
      gate.change(validated({ k: 2 }), 0)
      assert.strictEqual(gate.look(0).rejection, 0.25)
      gate.change(validated({ k: 1, maxRejection: 0.1 }), 0)
      assert.strictEqual(gate.look(0).rejection, 0.1)
    }))

  it.effect("draws a number only while some sends are rejected", () =>
    Effect.gen(function*() {
      let draws = 0
      const random = { nextDoubleUnsafe: () => (draws++, 0.999), nextIntUnsafe: () => 0 }
      const { end, send } = yield* subject({ counts: "sent", k: 2 }, random)
      yield* send("a")
      end("a")
      yield* send("b")
      assert.strictEqual(draws, 0)
      yield* send("c")
      yield* send("d")
      assert.strictEqual(draws, 1)
    }))

  it.effect("asks only of failures whether they are rejections", () =>
    Effect.gen(function*() {
      const asked: Array<unknown> = []
      const { end, gate, send } = yield* subject({ isRejection: ({ _tag }) => (asked.push(_tag), true) })
      for (const name of "abc") yield* send(name)
      end("a", "Success")
      end("b", "Unknown")
      end("c", "Failure")
      assert.deepStrictEqual([asked, gate.look(0).requests, gate.look(0).accepts], [["Failure"], 2, 1])
    }))
})

import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { Waiters } from "../src/state/waiters.ts"
import { sweep } from "./utils/sweep.ts"

describe("Waiters", () => {
  for (const blockedFor of [0, 1, 3]) {
    it.effect(`blocked ${blockedFor} times: what is granted is used or goes back, at whatever step the waiter is interrupted`, () =>
      Effect.gen(function*() {
        const waiters = new Waiters()
        const count = { asked: 0, taken: 0, undone: 0, used: 0 }
        const grant = {
          take: () => {
            if (count.asked++ < blockedFor) return 100
            count.taken++
            return 0
          },
          undo: () => count.undone++
        }
        const program = waiters.run(grant, (used) =>
          Effect.andThen(
            Effect.sync(() => {
              used()
              count.used++
            }),
            Effect.yieldNow
          ))
        const outcomes = new Set<string>()
        yield* sweep(program, () =>
          Effect.sync(() => {
            assert.strictEqual(waiters.size, 0)
            assert.strictEqual(count.taken, count.used + count.undone)
            outcomes.add(count.used > 0 ? "used" : count.undone > 0 ? "undone" : "never taken")
            count.asked =
              count.taken =
              count.undone =
              count.used =
                0
          }))
        assert.deepStrictEqual([...outcomes].sort(), ["never taken", "undone", "used"])
      }))
  }

  it.effect("hands the place on when the head leaves at whatever step", () =>
    Effect.gen(function*() {
      const waiters = new Waiters()
      let open = false
      const grant = { take: () => open ? 0 : 100, undo: () => {} }
      const both = Effect.all([
        waiters.run(grant, (used) => Effect.sync(used)),
        Effect.andThen(Effect.yieldNow, waiters.run(grant, (used) => Effect.sync(used)))
      ], { concurrency: "unbounded" })
      const opening = Effect.andThen(Effect.sleep(150), Effect.sync(() => open = true))
      yield* sweep(
        Effect.all([both, opening], { concurrency: "unbounded" }),
        () =>
          Effect.sync(() => {
            assert.strictEqual(waiters.size, 0)
            open = false
          })
      )
    }))

  describe("100,000 at once", () => {
    const many = 100_000
    /** Waiters in a queue whose head finds nothing until it is open. */
    const queue = () => {
      const waiters = new Waiters()
      const gate = { open: false, undone: 0 }
      const grant = { take: () => gate.open ? 0 : 1e9, undo: () => gate.undone++ }
      const order: Array<number> = []
      const fibers = Array.from(
        { length: many },
        (_, n) =>
          Effect.runFork(waiters.run(grant, (used) =>
            Effect.sync(() => {
              used()
              order.push(n)
            })))
      )
      return { waiters, gate, order, fibers }
    }

    it.live("are served in their order when all is granted at once and ends at once", () =>
      Effect.gen(function*() {
        const { fibers, gate, order, waiters } = queue()
        assert.strictEqual(waiters.size, many)
        gate.open = true
        waiters.wakeHead()
        yield* Fiber.awaitAll(fibers)
        assert.strictEqual(waiters.size, 0)
        assert.strictEqual(order.length, many)
        assert.isTrue(order.every((n, place) => n === place))
        assert.strictEqual(gate.undone, 0)
      }))

    it.live("leave when all are interrupted at once, from the head on", () =>
      Effect.gen(function*() {
        const { fibers, order, waiters } = queue()
        yield* Fiber.interruptAll(fibers)
        assert.strictEqual(waiters.size, 0)
        assert.deepStrictEqual(order, [])
      }))

    it.live("are served when what is granted goes back unused at once", () =>
      Effect.gen(function*() {
        const waiters = new Waiters()
        const gate = { tokens: 0 }
        const grant = { take: () => gate.tokens > 0 ? (gate.tokens--, 0) : 1e9, undo: () => gate.tokens++ }
        const fibers = Array.from({ length: many }, () => Effect.runFork(waiters.run(grant, () => Effect.void)))
        gate.tokens = 1
        waiters.wakeHead()
        yield* Fiber.awaitAll(fibers)
        assert.strictEqual(waiters.size, 0)
        assert.strictEqual(gate.tokens, 1)
      }))
  })
})

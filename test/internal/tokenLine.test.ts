import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Scheduler from "effect/Scheduler"
import { Waiters } from "../../src/internal/tokenLine.ts"
import { countedClock } from "../reliability/utils/clocks.ts"
import { budget } from "../utils/budget.ts"
import { sweep } from "../utils/sweep.ts"

describe("Waiters", () => {
  for (const blockedFor of [0, 1, 3]) {
    it.effect(`blocked ${blockedFor} times: what is taken is handed over, at any step the waiter is interrupted`, () =>
      Effect.gen(function*() {
        const waiters = new Waiters()
        const count = { asked: 0, taken: 0, handedOver: 0 }
        const grant = {
          take: () => {
            if (count.asked++ < blockedFor) return 100
            count.taken++
            return 0
          },
          granted: () => count.handedOver++
        }
        const outcomes = new Set<string>()
        yield* sweep(waiters.wait(grant), () =>
          Effect.sync(() => {
            assert.strictEqual(waiters.size, 0)
            assert.strictEqual(count.taken, count.handedOver)
            outcomes.add(count.taken > 0 ? "taken" : "never taken")
            count.asked = count.taken = count.handedOver = 0
          }))
        assert.deepStrictEqual([...outcomes].sort(), ["never taken", "taken"])
      }))
  }

  it.effect("hands the place on when the head leaves at any step", () =>
    Effect.gen(function*() {
      const waiters = new Waiters()
      let open = false
      const grant = { take: () => open ? 0 : 100, granted: () => {} }
      const both = Effect.all([
        waiters.wait(grant),
        Effect.andThen(Effect.yieldNow, waiters.wait(grant))
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

  it.live.each([true, false])(
    "a head that is woken before it has gone to sleep looks once more, whatever the step (open: %s)",
    (opens) =>
      Effect.gen(function*() {
        const woken: Array<number> = []
        for (let at = 1; at <= 60; at++) {
          const waiters = new Waiters()
          const gate = { open: false, steps: 0, looks: 0 }
          const grant = { take: () => (gate.looks++, gate.open) ? 0 : 1e9, granted: () => {} }
          const scheduler = new Scheduler.MixedScheduler()
          const opening: Scheduler.Scheduler = {
            executionMode: scheduler.executionMode,
            makeDispatcher: () => scheduler.makeDispatcher(),
            shouldYield: (fiber) => {
              if (++gate.steps !== at) return scheduler.shouldYield(fiber)
              // Before the fiber that yields here goes on.
              queueMicrotask(() => {
                gate.open = opens
                woken.push(waiters.size)
                waiters.wakeHead()
              })
              return true
            }
          }
          const run = waiters.wait(grant)
          const fiber = Effect.runFork(Effect.provideService(run, Scheduler.Scheduler, opening))
          for (let turn = 0; turn < 5 && fiber.pollUnsafe() === undefined; turn++) {
            yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
          }
          assert.strictEqual(fiber.pollUnsafe() !== undefined, gate.open, `woken at step ${at}`)
          assert.isAtMost(gate.looks, 2, `woken at step ${at}`)
          yield* Fiber.interrupt(fiber)
        }
        assert.includeMembers(woken, [0, 1])
      })
  )

  const many = budget(100_000, 30_000)
  describe(`${many} at the same time`, () => {
    /** Waiters in a queue whose head finds nothing until it is open. */
    const queue = () => {
      const waiters = new Waiters()
      const gate = { open: false }
      const order: Array<number> = []
      const fibers = Array.from(
        { length: many },
        (_, n) => Effect.runFork(waiters.wait({ take: () => gate.open ? 0 : 1e9, granted: () => order.push(n) }))
      )
      return { waiters, gate, order, fibers }
    }

    it.live("are served in order when all are granted and end at the same time", () =>
      Effect.gen(function*() {
        const { fibers, gate, order, waiters } = queue()
        assert.strictEqual(waiters.size, many)
        gate.open = true
        waiters.wakeHead()
        yield* Fiber.awaitAll(fibers)
        assert.strictEqual(waiters.size, 0)
        assert.strictEqual(order.length, many)
        assert.isTrue(order.every((n, place) => n === place))
      }))

    it.effect("set one timer when all are interrupted at the same time, from the head on or from the end, and none is left", () =>
      Effect.gen(function*() {
        for (const inOrder of [true, false]) {
          const counted = yield* countedClock
          const waiters = new Waiters()
          const waiting = counted.provide(waiters.wait({ take: () => 1e9, granted: () => undefined }))
          const fibers = yield* Effect.forEach(Array.from({ length: 1000 }), () => Effect.forkChild(waiting))
          yield* Effect.yieldNow
          yield* Fiber.interruptAll(inOrder ? fibers : fibers.reverse())
          assert.deepStrictEqual([waiters.size, counted.sleeps, counted.asleep], [0, 1, 0])
        }
      }))

    it.live("leave when all are interrupted at the same time, from the head on", () =>
      Effect.gen(function*() {
        const { fibers, order, waiters } = queue()
        yield* Fiber.interruptAll(fibers)
        assert.strictEqual(waiters.size, 0)
        assert.deepStrictEqual(order, [])
      }))
  })
})

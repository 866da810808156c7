import { assert, describe, it } from "@effect/vitest"
import { Backoff, RetryPolicy } from "effect-retry"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { budget, firstOf } from "../utils/budget.ts"
import type { Death } from "./cluster.ts"
import { order, type Run, type Script, waits } from "./orders.ts"

const policy = Backoff.exponential("20 millis").pipe(
  RetryPolicy.maxAttempts(4),
  RetryPolicy.whileRetryable
)

describe("an activity that is retried in a workflow", () => {
  it.effect("waits 40, 80, 160 seconds: the backoff does not start over when the body is replayed", () =>
    Effect.gen(function*() {
      for (const inMemoryThreshold of ["0 millis", "1 hour"] as const) {
        const run = yield* order({
          policy: Backoff.exponential("40 seconds").pipe(RetryPolicy.whileRetryable),
          options: { inMemoryThreshold },
          sendMillis: 1000,
          pollMillis: 1000
        })
        assert.deepStrictEqual(waits(run), [40_000, 80_000, 160_000])
        assert.deepStrictEqual(run.exit, Exit.succeed("paid"))
        assert.deepStrictEqual(run.notified, [
          "retry 1 in 40000 for 0",
          "retry 2 in 80000 for 0",
          "retry 3 in 160000 for 0"
        ])
      }
    }))
})

describe("a process that is killed", () => {
  /** What must hold wherever the process died, when waking takes an engine no longer than `lateMillis`. */
  const assertSound = (run: Run, death: Death, lateMillis: number): void => {
    const at = `${death.when} operation ${death.operation}: ${JSON.stringify(run)}`
    assert.deepStrictEqual(run.exit, Exit.succeed("paid"), at)
    const attempts = run.sends.map(({ attempt }) => attempt)
    assert.deepStrictEqual([...new Set(attempts)], [1, 2, 3, 4], at)
    assert.isAtMost(attempts.length, 5, at)
    // A new process is up 25 ms after its start.
    const up = (run.restarted ?? 0) + 25
    for (const [index, { attempt, began }] of run.sends.entries()) {
      const before = run.sends[index - 1]
      if (before === undefined || before.attempt === attempt) continue
      const due = before.ended! + 20 * 2 ** (before.attempt - 1)
      assert.isAtLeast(began, due, at)
      assert.isAtMost(began, due + lateMillis < up ? up : due + lateMillis, at)
    }
  }

  /** Kills the process before or after operations of the database. Returns how often a send was made again. */
  const sweep = (script: Script, lateMillis: number, whens: ReadonlyArray<Death["when"]>, every = 1) =>
    Effect.gen(function*() {
      const { operations } = yield* order(script)
      let repeated = 0
      for (let operation = 1; operation <= operations; operation += every) {
        for (const when of whens) {
          const death = { operation, when }
          const run = yield* order({ ...script, death, downMillis: 7 })
          assertSound(run, death, lateMillis)
          if (run.sends.length === 5) repeated++
        }
      }
      assert.isAbove(operations, 15)
      return repeated
    })

  it.effect(
    "sends at the same times, wherever it dies: none is lost, and the one in flight at most is made again",
    () =>
      Effect.gen(function*() {
        // Before the outcome of a send is stored, once for each of the four.
        assert.strictEqual(yield* sweep({ policy }, 0, firstOf(["before", "after"], 1)), 4)
      })
  )

  it.effect(
    "the same if the workflow is suspended while it waits, as late as the engine polls",
    () =>
      Effect.gen(function*() {
        assert.isAtMost(yield* sweep({ policy, options: { inMemoryThreshold: 0 } }, 10, ["after"], budget(1, 5)), 4)
      })
  )
})

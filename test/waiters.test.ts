import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
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
})

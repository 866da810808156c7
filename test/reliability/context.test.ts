/**
 * What a call leaves behind in the context of its fiber. A file of its own: one policy that asks whether it is nested
 * changes how all calls of a process set the context.
 */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Backoff, RetryPolicy } from "effect-retry"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { Terminal, Transient } from "../utils/call.ts"
import { drivers } from "../utils/drivers.ts"

type Send = Effect.Effect<unknown, unknown>
type Policy = Parameters<typeof drivers[number]["run"]>[1]

const policy = Backoff.fixed({ delay: 100 }).pipe(RetryPolicy.whileRetryable) as Policy
const failing = Effect.fail(new Transient())

const ends: Readonly<Record<string, ReadonlyArray<Send>>> = {
  "a success": [Effect.void],
  "a failure": [Effect.fail(new Terminal())],
  "a defect": [Effect.die("boom")],
  "a retry that succeeds": [failing, Effect.void],
  "a retry that fails": [failing, Effect.fail(new Terminal())],
  "a retry that dies": [failing, Effect.die("boom")],
  "an interruption in its backoff": [failing],
  "an interruption of its retry": [failing, Effect.never]
}

for (const nested of [false, true]) {
  describe(nested ? "once a policy asks whether it is nested" : "while no policy asks whether it is nested", () => {
    beforeAll(() => {
      if (nested) RetryPolicy.outermostOnly(policy)
    })
    for (const { form, run } of drivers) {
      for (const [end, turns] of Object.entries(ends)) {
        it.effect(`${form}: ${end} leaves the context of its fiber as it was`, () =>
          Effect.gen(function*() {
            let sends = 0
            const call: Effect.Effect<unknown, unknown, any> = run(Effect.suspend((): Send => turns[sends++]!), policy)
            const seen: Array<unknown> = []
            const look = Effect.withFiber(({ context }) => Effect.sync(() => seen.push([...context.mapUnsafe])))
            const fiber = yield* Effect.forkChild(
              Effect.uninterruptibleMask((restore) =>
                look.pipe(
                  Effect.andThen(Effect.exit(restore(call as Send))),
                  Effect.andThen(look)
                )
              )
            )
            yield* TestClock.adjust(end === "an interruption in its backoff" ? 50 : 150)
            yield* Fiber.interrupt(fiber)
            assert.strictEqual(sends, turns.length)
            assert.strictEqual(seen.length, 2)
            assert.deepStrictEqual(seen[1], seen[0])
          }))
      }
    }
  })
}

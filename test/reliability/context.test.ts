/**
 * What a call leaves behind in the context of its fiber. One policy that asks whether it is nested changes how all calls
 * of a process set the context.
 */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Backoff, RetryPolicy, SendGate, withRetry, withRetryOrElse } from "effect-retry"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import * as TestClock from "effect/testing/TestClock"
import { scripted, Terminal, Transient } from "../utils/call.ts"
import { drivers } from "../utils/drivers.ts"
import { inTime } from "../utils/inTime.ts"
import { unmarked } from "../utils/unmarked.ts"

unmarked()

type Send = Effect.Effect<unknown, unknown>
type Policy = Parameters<typeof drivers[number]["run"]>[1]

class Gate extends SendGate.Service<Gate>()("test/reliability/context/Gate") {}
const open: SendGate.SendGate = { order: 1, enter: () => {} }

const free = Backoff.fixed(100).pipe(RetryPolicy.whileRetryable)
const policy = free as Policy
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

/** Keeps the context that it runs in. */
const look = (seen: Array<unknown>) =>
  Effect.withFiber(({ context }) => Effect.sync(() => seen.push([...context.mapUnsafe])))

for (const nested of [false, true]) {
  describe(nested ? "once a policy asks whether it is nested" : "while no policy asks whether it is nested", () => {
    beforeAll(() => {
      if (nested) RetryPolicy.outermostOnly(policy)
    })
    for (const { form, run } of drivers) {
      for (const [end, turns] of Object.entries(ends)) {
        for (const isGated of [false, true]) {
          it.effect(`${form}${isGated ? " with a gate" : ""}: ${end} leaves the context of its fiber as it was`, () =>
            Effect.gen(function*() {
              let sends = 0
              const call: Effect.Effect<unknown, unknown, any> = run(
                Effect.suspend((): Send => turns[sends++]!),
                policy
              )
              const seen: Array<unknown> = []
              const looking = look(seen)
              const around = Effect.uninterruptibleMask((restore) =>
                looking.pipe(
                  Effect.andThen(Effect.exit(restore(call as Send))),
                  Effect.andThen(looking)
                )
              )
              const fiber = yield* Effect.forkChild(
                isGated ? Effect.provideService(around, Gate, open) : around
              )
              yield* TestClock.adjust(end === "an interruption in its backoff" ? 50 : 150)
              yield* Fiber.interrupt(fiber)
              assert.strictEqual(sends, turns.length)
              assert.strictEqual(seen.length, 2)
              assert.deepStrictEqual(seen[1], seen[0])
            }))
        }
      }
    }

    for (const [end, errors] of [["a first send", []], ["a retry", [new Transient()]]] as const) {
      it.effect(`the fallback after ${end} gets the failure, and the context of its caller`, () =>
        Effect.gen(function*() {
          const seen: Array<unknown> = []
          const error = new Terminal()
          const call = scripted([...errors, error])
          const fallback = withRetryOrElse(call.effect, free, (last) => Effect.as(look(seen), last))
          const exit = yield* inTime(Effect.andThen(look(seen), fallback))
          assert.deepStrictEqual(exit, Exit.succeed(error))
          assert.deepStrictEqual(seen[1], seen[0])
        }))
    }

    it.effect("the first send of a call inside a schedule sees the metadata of none", () =>
      Effect.gen(function*() {
        const seen: Array<Schedule.Metadata> = []
        const send = Effect.flatMap(Schedule.CurrentMetadata, (metadata) => Effect.sync(() => seen.push(metadata)))
        yield* Effect.repeat(withRetry(send, free), Schedule.recurs(1))
        const none = Schedule.CurrentMetadata.defaultValue()
        assert.deepStrictEqual(seen, [none, none])
      }))
  })
}

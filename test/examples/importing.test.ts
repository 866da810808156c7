import { assert, describe, it } from "@effect/vitest"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { placeOrder, program } from "../../examples/importing.ts"

describe("examples/importing.ts", () => {
  it.effect("placeOrder retries what the service config lists", () =>
    Effect.gen(function*() {
      let sends = 0
      const send = Effect.suspend(() =>
        ++sends < 3 ? Effect.fail({ code: 14, details: "down", metadata: {} }) : Effect.succeed("placed")
      )
      const fiber = yield* Effect.forkChild(placeOrder(send))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* Fiber.join(fiber), "placed")
    }))

  it.effect("program prints policies, and what is wrong with one", () =>
    Effect.gen(function*() {
      const lines: Array<unknown> = []
      const present = yield* Console.Console
      yield* Effect.provideService(program, Console.Console, { ...present, log: (line: unknown) => lines.push(line) })
      assert.deepStrictEqual(lines, [
        `Backoff.exponential("5 seconds").pipe(RetryPolicy.capped("500 seconds"), RetryPolicy.maxAttempts(6), RetryPolicy.whileRetryable)`,
        `Backoff.exponential("3 seconds", 1.5).pipe(RetryPolicy.jittered("full"), RetryPolicy.maxAttempts(3), RetryPolicy.whileRetryable)`,
        `{"steps":[{"exponential":{"base":"25 millis"}},{"capped":"250 millis"},{"jittered":"full"},{"maxAttempts":4},"whileRetryable",{"deadline":"15 seconds"}]}`,
        "RetryPolicyImport.fromTemporal: backoffCoefficient must be a number of at least 1, got 0.5"
      ])
    }))
})

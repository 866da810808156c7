/** The first policy that is outermostOnly changes how the calls of a process are made. */
import { assert, it } from "@effect/vitest"
import { awsStandard, Backoff, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import * as TestClock from "effect/testing/TestClock"
import { Transient } from "../utils/call.ts"
import { unmarked } from "../utils/unmarked.ts"

unmarked()

it.effect("a call that is under way when the first outermostOnly policy is made continues as it was", () =>
  Effect.gen(function*() {
    const attempts: Array<number> = []
    const call = Effect.flatMap(Schedule.CurrentMetadata, ({ attempt }) => {
      attempts.push(attempt)
      if (attempts.length === 2) void awsStandard.pipe(RetryPolicy.outermostOnly)
      return Effect.fail(new Transient())
    })
    const policy = Backoff.fixed({ delay: "1 second" }).pipe(
      RetryPolicy.maxAttempts(4),
      RetryPolicy.whileRetryable,
      RetryPolicy.quotaGated({ cost: 5 })
    )
    const fiber = yield* Effect.forkChild(Effect.exit(withRetry(call, policy)))
    yield* TestClock.adjust("1 minute")
    yield* Fiber.join(fiber)
    assert.deepStrictEqual(attempts, [0, 1, 2, 3])
    assert.strictEqual(yield* RetryQuota.balance, 485)
  }).pipe(Effect.provide(RetryQuota.layer())))

/** The first policy that is outermostOnly, and the first hedged call, change how the calls of a process are made. */
import { assert, it } from "@effect/vitest"
import { attempt, awsStandard, Backoff, Hedge, RetryObserver, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import * as TestClock from "effect/testing/TestClock"
import { shared } from "../../src/internal/shared.ts"
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
    const policy = Backoff.fixed("1 second").pipe(
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

const fixed = Backoff.fixed(100)
const loops = {
  withRetry: (call: Effect.Effect<number>) => withRetry(call, fixed),
  "Effect.retry": (call: Effect.Effect<number>) => Effect.retry(call, fixed),
  attempt: (call: Effect.Effect<number>) => attempt(call)
}

it.effect.each(Object.entries(loops))(
  "the first hedged call notifies of its send once: %s",
  ([, run]) =>
    Effect.gen(function*() {
      shared.marking = false
      let sends = 0
      const observer: RetryObserver.RetryObserver = { onSend: () => void sends++ }
      // The first layer of hedges of the process is built inside the call.
      yield* Effect.succeed(1).pipe(
        Hedge.hedged({ after: 100 }),
        Effect.provide(Hedge.layer()),
        run,
        Effect.provideService(RetryObserver.CurrentObserver, observer)
      )
      assert.isTrue(shared.marking)
      assert.strictEqual(sends, 1)
    })
)

/** A policy as a schedule, with combinators around it. */
import { assert, describe, it } from "@effect/vitest"
import { attempt, awsStandard, Backoff, RetryPolicy, RetryQuota } from "effect-retry"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schedule from "effect/Schedule"
import { scripted, Terminal, Transient } from "../utils/call.ts"
import { drivers, ending, type Policy } from "../utils/ending.ts"

const fixed = Backoff.fixed(100)
const gated = (options: RetryPolicy.QuotaOptions) => fixed.pipe(RetryPolicy.quotaGated(options))

describe("a retry that a combinator around the policy stops", () => {
  /** The policy permits a retry that the schedule around it forbids. */
  const forbidden = (policy: Policy) =>
    Effect.ignore(
      Effect.retry(Effect.fail(new Transient()), Schedule.while(policy, () => Effect.succeed(false)))
    )
  const all = gated({ cost: 5 })

  for (const { form, run } of drivers) {
    it.effect(`gives its tokens back at once, to the next call of the fiber, which needs all of them: ${form}`, () =>
      Effect.gen(function*() {
        const { exit } = yield* ending(Effect.andThen(forbidden(all), run(scripted([new Transient()]).effect, all)))
        assert.deepStrictEqual(exit, Exit.succeed("ok"))
        assert.strictEqual(yield* RetryQuota.balance, 5)
      }).pipe(Effect.provide(RetryQuota.layer({ capacity: 5 }))))
  }

  it.effect("is not taken for a retry of another call by the same fiber", () =>
    Effect.gen(function*() {
      const error = new Terminal()
      const other = Effect.ignore(Effect.retry(attempt(Effect.fail(error)), Schedule.recurs(1)))
      yield* ending(Effect.andThen(forbidden(all), other))
      assert.strictEqual(yield* RetryQuota.balance, 5)
    }).pipe(Effect.provide(RetryQuota.layer({ capacity: 5 }))))
})

it.effect("a retry whose delay a combinator changes is the one that the policy paid for", () =>
  Effect.gen(function*() {
    const slower = Schedule.modifyDelay(awsStandard, () => Effect.succeed(5000))
    const { exit, atMillis } = yield* ending(Effect.retry(scripted([new Transient()]).effect, slower))
    assert.deepStrictEqual([exit, atMillis], [Exit.succeed("ok"), 5000])
    assert.strictEqual(yield* RetryQuota.balance, 500)
  }).pipe(Effect.provide(RetryQuota.layer())))

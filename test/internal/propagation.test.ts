/** What each send passes on, in a process where no policy asks whether it is nested. */
import { assert, describe, it } from "@effect/vitest"
import { attempt, Backoff, RetryPolicy, withRetry } from "effect-retry"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { type PropagatedContext, propagatedIn, propagating } from "../../src/internal/propagation.ts"
import { Transient } from "../utils/call.ts"
import { inTime } from "../utils/inTime.ts"

const names = { deadline: "deadline", attempt: "attempt", maxAttempts: "max", criticality: "criticality" }
const came: PropagatedContext = { names, attempt: 3, maxAttempts: 7, deadlineAtMillis: 10_000, isRetried: false }

type AnyPolicy = Schedule.Schedule<unknown, unknown, never, never>
const fixed = Backoff.fixed(100)
const drivers = [
  {
    form: "Effect.retry",
    run: (self: Effect.Effect<unknown, Transient>, policy: AnyPolicy) => Effect.retry(self, policy)
  },
  {
    form: "withRetry",
    run: (self: Effect.Effect<unknown, Transient>, policy: AnyPolicy) => withRetry(self, policy)
  }
]
const [three, four] = [RetryPolicy.maxAttempts(fixed, 3), RetryPolicy.maxAttempts(fixed, 4)]
const [short, long] = [RetryPolicy.deadline(three, 250), RetryPolicy.deadline(four, 350)]
const sends = (max: number, ...deadlines: ReadonlyArray<number>) =>
  deadlines.map((deadline, index) => [index + 1, max, deadline])
const cases = [
  ["a call of one attempt", fixed.pipe(RetryPolicy.maxAttempts(1)), [[3, 7, 10_000]]],
  ["a call of two", fixed.pipe(RetryPolicy.maxAttempts(2)), [[1, 2, 10_000], [2, 2, 10_000]]],
  ["a call with a deadline", fixed.pipe(RetryPolicy.deadline(150)), [[1, Infinity, 150], [2, Infinity, 150]]],
  ["max", RetryPolicy.max([short, long]), sends(3, 250, 250, 250)],
  ["min", RetryPolicy.min([short, long]), sends(4, 350, 350, 350, 350)],
  ["a limit around min", RetryPolicy.min([short, long]).pipe(RetryPolicy.maxAttempts(2)), sends(2, 350, 350)],
  ["a join in a join", RetryPolicy.max([RetryPolicy.min([short, long]), fixed]), sends(4, 350, 350, 350, 350)],
  ["choose", RetryPolicy.choose(() => short), [[1, Infinity, 10_000], [2, 3, 250], [3, 3, 250]]],
  ["concat", RetryPolicy.concat(three, four), sends(6, ...Array<number>(6).fill(10_000))],
  [
    "concat, whose first part ends early",
    RetryPolicy.concat(short.pipe(RetryPolicy.deadline(150)), four),
    [[1, 6, 10_000], [2, 6, 150], [3, 5, 10_000], [4, 5, 10_000], [5, 5, 10_000]]
  ]
] as const

/** Which policy goes on, joins of Effect leave open: the first send has the loosest limits. */
const plain = [
  ["Schedule.max", Schedule.max([long, short]), [[1, 4, 350], [2, 3, 250], [3, 3, 250]]],
  ["Schedule.min", Schedule.min([long, short]), [[1, 4, 350], [2, 3, 250], [3, 3, 250], [4, 4, 350]]],
  ["Schedule.concat", Schedule.concat(three, four), [
    // The schedule begins later: what is said is what came.
    [3, 7, 10_000],
    [2, 3, 10_000],
    [3, 3, 10_000],
    [4, 6, 10_000],
    [5, 6, 10_000],
    [6, 6, 10_000]
  ]]
] as const

describe.each(drivers)("$form", ({ form, run }) => {
  for (const [name, policy, expected] of form === "withRetry" ? cases : [...cases, ...plain]) {
    it.effect(`${name}: its attempt, its limit and its deadline`, () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const send = Effect.gen(function*() {
          const onward = propagatedIn(yield* Effect.context<never>())
          seen.push([onward!.attempt, onward!.maxAttempts, onward!.deadlineAtMillis])
          return yield* Effect.fail(new Transient())
        })
        yield* inTime(
          Effect.updateContext(run(send, policy), (context: Context.Context<never>) => propagating(context, came))
        )
        assert.deepStrictEqual<unknown>(seen, expected)
      }))
  }
})

it.effect("an attempt that no policy retries passes on what came", () =>
  Effect.gen(function*() {
    const call = Effect.contextWith((context: Context.Context<never>) => Effect.succeed(propagatedIn(context)))
    const sent = yield* Effect.updateContext(attempt(call), (context: Context.Context<never>) =>
      propagating(context, came))
    assert.strictEqual(sent, came)
  }))

it.effect("a deadline inside a retried effect goes with each of its sends, also with its retries", () =>
  Effect.gen(function*() {
    const seen: Array<number | undefined> = []
    const call = Effect.contextWith((context: Context.Context<never>) => {
      seen.push(propagatedIn(context)?.deadlineAtMillis)
      return Effect.fail(new Transient())
    })
    const policy = Backoff.fixed(100).pipe(RetryPolicy.maxAttempts(3))
    const timed = Effect.updateContext(
      call,
      (context: Context.Context<never>) => propagating(context, { ...came, deadlineAtMillis: 5000 })
    )
    yield* inTime(Effect.retry(timed, policy))
    assert.deepStrictEqual(seen, [5000, 5000, 5000])
  }))

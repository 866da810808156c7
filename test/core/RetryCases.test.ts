/**
 * The cases in which Effect tests its own retries, its schedules and `Stream.retry`, as tables, with policies in place of
 * its schedules and by both loops: what holds for a schedule there holds for a policy here.
 *
 * **Source** of the cases and figures: the tests `Effect`, `Schedule` and `Stream` of Effect 4.
 */
import { assert, describe, it } from "@effect/vitest"
import { Backoff, RetryDecision, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { AnyPolicy } from "../utils/account.ts"
import { inTime } from "../utils/inTime.ts"

const quota = Effect.provide(RetryQuota.layer({ initial: 100, successIncrement: 0 }))

const paid = RetryPolicy.quotaGated({ cost: 1 })
const endless = Backoff.fixed(0).pipe(paid)
const three = RetryPolicy.maxAttempts(endless, 4)
const every = (delay: Duration.Input) => Backoff.fixed(delay).pipe(paid)

type Loop = <A, E>(self: Effect.Effect<A, E>, policy: AnyPolicy) => Effect.Effect<A, E, RetryQuota.RetryQuota>
const loops: ReadonlyArray<readonly [name: string, loop: Loop]> = [
  ["withRetry", (self, policy) => withRetry(self, policy)],
  ["Effect.retry", (self, policy) => Effect.retry(self, policy)]
]

describe("conditions", () => {
  /** A call whose n-th failure is n, and that succeeds after so many. */
  const counted = (failures: number) => {
    let sends = 0
    return Effect.suspend(() => ++sends > failures ? Effect.succeed("ok") : Effect.fail(sends))
  }
  type Condition = (failure: number) => boolean | Effect.Effect<boolean, string>
  interface Options {
    readonly while?: Condition
    readonly until?: Condition
  }
  const forms: ReadonlyArray<
    readonly [
      name: string,
      run: (
        self: Effect.Effect<string, number>,
        policy: AnyPolicy,
        options: Options
      ) => Effect.Effect<string, number | string, RetryQuota.RetryQuota>
    ]
  > = [
    ["options of Effect.retry", (self, policy, options) => Effect.retry(self, { ...options, schedule: policy })],
    ["withRetry and Schedule.while", (self, policy, options) => {
      const holds = (input: unknown) => {
        const { until, while: goes = () => true } = options
        const answer = until === undefined ? goes(input as number) : until(input as number)
        const goesOn = typeof answer === "boolean" ? Effect.succeed(answer) : answer
        return until === undefined ? goesOn : Effect.map(goesOn, (stops) => !stops)
      }
      return withRetry(self, Schedule.while(policy, ({ input }) => holds(input)))
    }]
  ]

  const boom = () => Effect.fail("boom")
  /** The last failure is also the number of the sends; each retry but the last is paid. */
  const rows: ReadonlyArray<
    readonly [name: string, options: Options, policy: AnyPolicy, failures: number, end: number | string]
  > = [
    ["nothing but the first send on success", {}, endless, 0, "ok"],
    ["a success after failures", {}, endless, 3, "ok"],
    ["until it holds", { until: (n) => n === 10 }, endless, Infinity, 10],
    ["until an effect says so", { until: (n) => Effect.succeed(n === 10) }, endless, Infinity, 10],
    ["until, at least one send", { until: () => true }, endless, Infinity, 1],
    ["while it holds", { while: (n) => n < 10 }, endless, Infinity, 10],
    ["while an effect says so", { while: (n) => Effect.succeed(n < 10) }, endless, Infinity, 10],
    ["while, at least one send", { while: () => false }, endless, Infinity, 1],
    ["three retries", {}, three, Infinity, 4],
    ["three retries at most, until it holds", { until: (n) => n === 3 }, three, Infinity, 3],
    ["three retries at most, while it holds", { while: (n) => n < 3 }, three, Infinity, 3],
    ["three retries, all before until holds", { until: (n) => n === 9 }, three, Infinity, 4],
    ["until fails", { until: boom }, three, Infinity, "boom"],
    ["while fails", { while: boom }, three, Infinity, "boom"]
  ]

  for (const [name, options, policy, failures, end] of rows) {
    for (const [form, run] of forms) {
      it.effect(`${name}: ${end} by ${form}`, () =>
        Effect.gen(function*() {
          const exit = yield* inTime(run(counted(failures), policy, options))
          const result = Exit.isSuccess(exit) ? exit.value : Cause.squash(exit.cause)
          assert.strictEqual(result, end)
          // Of a success, its own retry is not paid in the end.
          const spent = typeof end === "number" ? end - 1 : end === "ok" ? Math.max(0, failures - 1) : 0
          assert.strictEqual(yield* RetryQuota.balance, 100 - spent)
        }).pipe(quota))
    }
  }
})

describe("schedules", () => {
  const once = RetryPolicy.maxAttempts(every("1 second"), 2)
  const slow = [every("5 seconds"), Backoff.exponential("5 seconds").pipe(paid), every("10 seconds")] as const
  const short = [once, every("5 seconds")] as const

  /** Seconds between the sends of a call that always fails, the first four. */
  const rows: ReadonlyArray<
    readonly [name: string, policies: ReadonlyArray<AnyPolicy>, seconds: ReadonlyArray<number>]
  > = [
    ["max has the slowest of the delays", [RetryPolicy.max(slow), Schedule.max(slow)], [10, 10, 20]],
    ["max stops when one of them does", [RetryPolicy.max(short), Schedule.max(short)], [5]],
    ["min has the fastest of the delays", [RetryPolicy.min(slow), Schedule.min(slow)], [5, 5, 5]],
    ["min goes on when one of them has stopped", [RetryPolicy.min(short), Schedule.min(short)], [1, 5, 5]],
    ["spaced is constant", [every("1 second"), RetryPolicy.fromSchedule(Schedule.spaced("1 second"))], [1, 1, 1]]
  ]

  for (const [name, policies, seconds] of rows) {
    for (const [form, loop] of loops) {
      it.effect(`${name} by ${form}`, () =>
        Effect.gen(function*() {
          for (const policy of policies) {
            const sentAt: Array<number> = []
            const call = Effect.flatMap(Clock.currentTimeMillis, (now) =>
              sentAt.push(now) === 4 ? Effect.succeed("ok") : Effect.fail("down"))
            yield* inTime(loop(call, policy))
            assert.deepStrictEqual(
              sentAt.slice(1).map((at, n) =>
                (at - sentAt[n]!) / 1000
              ),
              seconds
            )
          }
        }).pipe(quota))
    }
  }

  /** A schedule's metadata without its output. */
  const timing = (attempt: number, elapsed: number, previous: number, duration = 250) => ({
    attempt,
    duration: Duration.millis(duration),
    elapsed,
    elapsedSincePrevious: previous,
    now: elapsed,
    start: 0
  })
  type Seen = Schedule.Metadata<unknown, unknown>
  const delayOf = (output: unknown): unknown => RetryDecision.isRetry(output) ? Duration.toMillis(output.delay) : output

  const combinators: ReadonlyArray<
    readonly [name: string, around: (see: (seen: Seen) => Effect.Effect<number>) => AnyPolicy]
  > = [
    ["tap", (see) => Schedule.tap(every(250), see)],
    [
      "modifyDelay",
      (see) =>
        Schedule.modifyDelay(
          every(250),
          (seen) => Effect.map(see(seen), (previous) => Duration.sum(seen.duration, Duration.millis(previous)))
        )
    ],
    ["addDelay", (see) => Schedule.addDelay(every(250), (seen) => Effect.map(see(seen), Duration.millis))]
  ]

  for (const [name, around] of combinators) {
    for (const [form, loop] of loops) {
      it.effect(`${name} sees the metadata of the policy by ${form}`, () =>
        Effect.gen(function*() {
          const seen: Array<unknown> = []
          const sentAt: Array<number> = []
          const see = ({ input, output, ...metadata }: Seen) =>
            Effect.sync(() => {
              seen.push([input, delayOf(output), metadata])
              return metadata.elapsedSincePrevious
            })
          const call = Effect.flatMap(Clock.currentTimeMillis, (now) =>
            sentAt.push(now) === 3 ? Effect.succeed("ok") : Effect.fail(`failure ${sentAt.length}`))
          yield* inTime(loop(call, around(see)))
          assert.deepStrictEqual(seen, [
            ["failure 1", 250, timing(1, 0, 0)],
            ["failure 2", 250, timing(2, 250, 250)]
          ])
          assert.deepStrictEqual(sentAt, name === "tap" ? [0, 250, 500] : [0, 250, 750])
        }).pipe(quota))
    }
  }

  for (const [form, loop] of loops) {
    it.effect(`a send finds the metadata of its retry by ${form}`, () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const call = Effect.gen(function*() {
          const { input, output, ...metadata } = yield* Schedule.CurrentMetadata
          seen.push([input, delayOf(output), metadata])
          return yield* Effect.fail("down")
        })
        yield* inTime(loop(call, RetryPolicy.maxAttempts(every(250), 3)))
        assert.deepStrictEqual(seen, [
          [undefined, undefined, timing(0, 0, 0, 0)],
          ["down", 250, timing(1, 0, 0)],
          ["down", 250, timing(2, 250, 250)]
        ])
      }).pipe(quota))
  }
})

describe("Stream.retry", () => {
  const growing = Backoff.exponential("1 second").pipe(paid)
  /** Seconds at which a stream is opened. */
  const opened = () => {
    const at: Array<number> = []
    return { at, open: Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.sync(() => at.push(now / 1000))) }
  }

  it.effect("opens a stream that fails again, and keeps its elements", () =>
    Effect.gen(function*() {
      let openings = 0
      const stream = Stream.concat(Stream.fromEffect(Effect.sync(() => openings++)), Stream.fail("down"))
      const exit = yield* inTime(stream.pipe(Stream.retry(endless), Stream.take(2), Stream.runCollect))
      assert.deepStrictEqual(exit, Exit.succeed([0, 1]))
    }).pipe(quota))

  it.effect("closes what it has opened before it opens it again", () =>
    Effect.gen(function*() {
      let closed = 0
      const stream = Stream.unwrap(Effect.as(
        Effect.addFinalizer(() => Effect.sync(() => closed++)),
        Stream.concat(Stream.fromEffect(Effect.sync(() => closed)), Stream.fail("down"))
      ))
      const exit = yield* inTime(stream.pipe(Stream.retry(endless), Stream.take(2), Stream.runCollect))
      assert.deepStrictEqual(exit, Exit.succeed([0, 1]))
      assert.strictEqual(closed, 2)
    }).pipe(quota))

  it.effect("follows the delays of its policy", () =>
    Effect.gen(function*() {
      const { at, open } = opened()
      const stream = Stream.flatMap(Stream.fromEffect(open), () => Stream.fail("down"))
      yield* inTime(stream.pipe(Stream.retry(RetryPolicy.maxAttempts(growing, 4)), Stream.runDrain))
      assert.deepStrictEqual(at, [0, 1, 3, 7])
      assert.strictEqual(yield* RetryQuota.balance, 97)
    }).pipe(quota))

  it.effect("begins its policy again after an element", () =>
    Effect.gen(function*() {
      const { at, open } = opened()
      const stream = Stream.fromEffect(open).pipe(
        Stream.flatMap((opening) => opening === 3 || opening === 5 ? Stream.succeed(opening) : Stream.fail("down")),
        Stream.forever
      )
      const exit = yield* inTime(stream.pipe(Stream.retry(growing), Stream.take(2), Stream.runCollect))
      assert.deepStrictEqual([exit, at], [Exit.succeed([3, 5]), [0, 1, 3, 3, 4]])
    }).pipe(quota))

  it.effect("a stream finds the metadata of its retry", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const stream = Stream.unwrap(Effect.gen(function*() {
        const { attempt, duration, elapsed, elapsedSincePrevious, input } = yield* Schedule.CurrentMetadata
        seen.push([attempt, input, Duration.toSeconds(duration), elapsed, elapsedSincePrevious])
        return Stream.fail("down")
      }))
      yield* inTime(stream.pipe(Stream.retry(RetryPolicy.maxAttempts(growing, 4)), Stream.runDrain))
      assert.deepStrictEqual(seen, [
        [0, undefined, 0, 0, 0],
        [1, "down", 1, 0, 0],
        [2, "down", 2, 1000, 1000],
        [3, "down", 4, 3000, 2000]
      ])
    }).pipe(quota))
})

import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import { createWaiter, WaiterState } from "@smithy/core/client"
import { awsStandard, Backoff, InvalidOption, RetryMetrics, RetryPolicy, withRetry } from "effect-retry"
import * as JavaV1 from "effect-retry/aws/legacy/JavaV1"
import * as Waiter from "effect-retry/Waiter"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Metric from "effect/Metric"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Example from "../../examples/waiter.ts"
import { budget } from "../utils/budget.ts"
import { constantRandom, Terminal, Throttled, Transient } from "../utils/call.ts"
import { sweep } from "../utils/sweep.ts"
import { millis, withRandom } from "../utils/vectors.ts"
import * as vectors from "../vectors/waiters.ts"

class NotFound extends Schema.TaggedError<NotFound>()("NotFound", {}) {}

const fourTimes = Backoff.fixed(100).pipe(RetryPolicy.maxAttempts(4))

const checked = RetryPolicy.whileRetryable(fourTimes)

const ready = Waiter.output("success", (status: string) => status === "ready")

describe("Waiter", () => {
  describe("delays", () => {
    it.effect.each([
      ...vectors.delays,
      {
        name: "smithy-typescript, with the jitter that the specification has past the ceiling",
        given: vectors.javascript.given,
        randoms: [vectors.javascript.random],
        delays: vectors.javascript.ours
      }
    ])("vector: $name", ({ delays, given, randoms }) =>
      Effect.gen(function*() {
        const waiter = Waiter.make({ acceptors: [ready], ...inMillis(given) })
        const { exit, sleeps } = yield* play({ waiter, randoms, polls: delays.length + 1, then: "ready" })
        assert.deepStrictEqual(sleeps, delays.map(millis))
        assert.isTrue(Exit.isSuccess(exit!))
      }))

    it.effect("is 2 to 120 seconds by default", () =>
      Effect.gen(function*() {
        const waiter = Waiter.make({ acceptors: [ready], maxWait: "1 hour" })
        const { sleeps } = yield* play({ waiter, randoms: [1], polls: 10, then: "ready" })
        assert.deepStrictEqual(sleeps, [2, 4, 8, 16, 32, 64, 120, 120, 120].map(millis))
      }))

    for (
      const [name, left, sleeps] of [
        ["1 ms more than the shortest delay left: one more poll", 2001, [2000, 2001]],
        ["the shortest delay left: the last poll", 2000, [4000]],
        ["1 ms less than it left: the last poll", 1999, [3999]]
      ] as const
    ) {
      it.effect(name, () =>
        Effect.gen(function*() {
          const waiter = Waiter.make({ acceptors: [ready], maxWait: 2000 + left })
          const played = yield* play({ waiter, randoms: [0] })
          assert.deepStrictEqual(played.sleeps, [...sleeps])
          assert.strictEqual((yield* timedOut(played.exit)).attempts, sleeps.length + 1)
        }))
    }

    it.effect("rounds up to whole milliseconds", () =>
      Effect.gen(function*() {
        const waiter = Waiter.make({ acceptors: [ready], minDelay: 10, maxDelay: 100, maxWait: "1 minute" })
        const { sleeps } = yield* play({ waiter, randoms: [0.123], polls: 4, then: "ready" })
        assert.deepStrictEqual(sleeps, [10, 12, 14])
      }))

    it.effect("counts the time of the polls: the rest of a long one is the last delay", () =>
      Effect.gen(function*() {
        const waiter = Waiter.make({ acceptors: [ready], minDelay: 1000, maxDelay: 1000, maxWait: 10_000 })
        const { exit, sleeps } = yield* play({ waiter, pollMillis: 3500 })
        assert.deepStrictEqual(sleeps, [1000, 2000])
        const { attempts, elapsed } = yield* timedOut(exit)
        assert.deepStrictEqual([attempts, Duration.toMillis(elapsed)], [3, 11_000])
      }))

    const limits = { minDelay: 100, maxDelay: 450, maxWait: 2000 }
    for (
      const [name, delay, sleeps] of [
        ["linear", Backoff.linear(100), [100, 200, 300, 400, 450, 550]],
        ["linear, from below and without growth", Backoff.linear(10, { increment: 0 }), [
          ...Array<number>(18).fill(100),
          200
        ]],
        ["exponential", Backoff.exponential(50, 3), [100, 150, 450, 450, 450, 400]],
        ["a schedule of Effect", Schedule.spaced(430), [430, 430, 430, 430, 280]],
        ["a schedule, rounded up", Schedule.spaced("300500 micros"), [301, 301, 301, 301, 301, 301, 194]],
        ["no end in sight", Schedule.spaced(Duration.infinity), [450, 450, 450, 450, 200]]
      ] as const
    ) {
      it.effect(`of ${name} are kept within the limits and the time`, () =>
        Effect.gen(function*() {
          const waiter = Waiter.make({ acceptors: [ready], delay, ...limits })
          const played = yield* play({ waiter })
          assert.deepStrictEqual(played.sleeps, [...sleeps])
          assert.strictEqual(Duration.toMillis((yield* timedOut(played.exit)).elapsed), 2000)
        }))
    }

    it.effect("end with the schedule", () =>
      Effect.gen(function*() {
        const delay = Backoff.fixed(100).pipe(RetryPolicy.maxAttempts(3))
        const waiter = Waiter.make({ acceptors: [ready], delay, minDelay: 1, maxWait: "1 minute" })
        const { exit, sleeps } = yield* play({ waiter })
        assert.deepStrictEqual(sleeps, [100, 100])
        assert.strictEqual(
          (yield* timedOut(exit)).message,
          "the delays have ended after 200ms of 1m, 3 polls"
        )
        assert.strictEqual((yield* timedOut(exit)).reason, "delays")
      }))

    for (
      const [name, delay, sleeps] of [
        ["JavaV1.defaultPolicy", JavaV1.defaultPolicy, [50, 100, 200]],
        ["whileRetryable", checked, [100, 100, 100]],
        ["whileMaybeRetryable", fourTimes.pipe(RetryPolicy.whileMaybeRetryable), [100, 100, 100]],
        [
          "whileRetryable, lifted",
          RetryPolicy.fromSchedule(Schedule.spaced(100)).pipe(
            RetryPolicy.maxAttempts(4),
            RetryPolicy.whileRetryable
          ),
          [100, 100, 100]
        ],
        [
          "whileRetryable, in a concat",
          RetryPolicy.concat(RetryPolicy.withMaxAttempts(checked, 3), RetryPolicy.withMaxAttempts(checked, 2)),
          [100, 100, 100]
        ],
        ["whileRetryable, in a Schedule.max", Schedule.max([checked, Schedule.forever]), [100, 100, 100]],
        ["whileRetryable, chosen", RetryPolicy.choose(() => checked), [100, 100, 100]]
      ] as const
    ) {
      it.effect(`of a policy do not depend on what it retries: ${name}`, () =>
        Effect.gen(function*() {
          const waiter = Waiter.make({
            acceptors: [ready, Waiter.errorType("retry", "NotFound")],
            delay,
            minDelay: 1,
            maxWait: "5 minutes"
          })
          for (const outcome of [Result.succeed("pending"), Result.fail(new NotFound({}))]) {
            const { exit, sleeps: slept } = yield* play({ waiter, script: [outcome] })
            assert.deepStrictEqual(slept, [...sleeps])
            const { attempts, reason } = yield* timedOut(exit)
            assert.deepStrictEqual([attempts, reason], [4, "delays"])
          }
        }))
    }

    it.effect("of a policy go on within a call that retries", () =>
      Effect.gen(function*() {
        const delay = fourTimes.pipe(RetryPolicy.outermostOnly)
        const waiter = Waiter.make({ acceptors: [ready], delay, minDelay: 1, maxWait: "5 minutes" })
        let polls = 0
        const poll = Effect.sync(() => ++polls === 3 ? "ready" : "pending")
        const once = Backoff.fixed(100).pipe(RetryPolicy.maxAttempts(1))
        const wait = withRetry(Waiter.waitUntil(poll, waiter), once)
        assert.isTrue(Exit.isSuccess((yield* travel(wait, "1 hour"))!))
        assert.strictEqual(polls, 3)
      }))

    it.effect("begin before the first poll if asked to, as part of the time", () =>
      Effect.gen(function*() {
        const options = { acceptors: [ready], minDelay: 100, maxDelay: 100, maxWait: 1000 }
        for (const [initialDelay, began] of [[0, 0], [250, 250], [999, 999]] as const) {
          const played = yield* play({ waiter: Waiter.make({ ...options, initialDelay }) })
          assert.strictEqual(played.began[0], began)
          const { elapsed, reason } = yield* timedOut(played.exit)
          assert.deepStrictEqual([Duration.toMillis(elapsed), reason], [1000, "time"])
        }
      }))

    it.effect("of a policy know what the poll gave: throttles and their hints", () =>
      Effect.gen(function*() {
        const delay = Backoff.fixed(100).pipe(
          RetryPolicy.whenThrottled(Backoff.fixed(1000)),
          RetryPolicy.honorRetryAfter()
        )
        const waiter = Waiter.make({
          acceptors: [ready, Waiter.throttled("retry")],
          delay,
          minDelay: 1,
          maxWait: "1 minute"
        })
        const script = [Result.succeed("pending"), Result.fail(new Throttled({})), hinted, Result.succeed("ready")]
        assert.deepStrictEqual((yield* play({ waiter, script })).sleeps, [100, 1000, 3000])
      }))

    it.effect("of a policy are no retries to the observer", () =>
      Effect.gen(function*() {
        const waiter = Waiter.make({
          acceptors: [ready],
          delay: Backoff.fixed(100).pipe(RetryPolicy.maxAttempts(3)),
          minDelay: 1,
          maxWait: "1 minute"
        })
        const stops = Metric.withAttributes(RetryMetrics.stops, { reason: "max-attempts" })
        const before = yield* Metric.value(stops)
        yield* play({ waiter })
        assert.strictEqual((yield* Metric.value(stops)).count, before.count)
      }).pipe(Effect.provide(RetryMetrics.layer())))

    const seconds = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100_000 }))
    const chance = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 0.9999999 }))

    it.effect.prop(
      "law: delays are within their limits but for the last, which ends the time to the millisecond",
      [seconds, seconds, seconds, Schema.NonEmptyArray(chance)],
      ([minDelay, more, wait, randoms]) =>
        Effect.gen(function*() {
          const maxDelay = minDelay + more
          const maxWait = Math.min(minDelay + wait, minDelay * 200)
          if (maxWait <= minDelay) return
          const waiter = Waiter.make({ acceptors: [ready], minDelay, maxDelay, maxWait })
          const { exit, sleeps } = yield* play({ waiter, randoms })
          const { attempts, elapsed } = yield* timedOut(exit)
          assert.strictEqual(Duration.toMillis(elapsed), maxWait)
          assert.strictEqual(attempts, sleeps.length + 1)
          let remaining = maxWait
          for (const [index, sleep] of sleeps.entries()) {
            if (index === sleeps.length - 1) {
              assert.strictEqual(sleep, remaining)
            } else {
              assert.isAtLeast(sleep, minDelay)
              assert.isAtMost(sleep, Math.min(maxDelay, minDelay * 2 ** index))
              assert.isAbove(remaining - sleep, minDelay)
            }
            remaining -= sleep
          }
        }),
      { arbitrary: { runs: budget(100, 30) } }
    )

    it.effect.prop(
      "law: with polls of any length none begins after the time, and the wait ends within minDelay of it",
      [seconds, seconds, seconds, chance],
      ([minDelay, wait, pollMillis, random]) =>
        Effect.gen(function*() {
          const maxWait = Math.min(minDelay + wait, minDelay * 200)
          if (maxWait <= minDelay) return
          const waiter = Waiter.make({ acceptors: [ready], minDelay, maxDelay: minDelay * 4, maxWait })
          const { began, exit } = yield* play({ waiter, pollMillis, randoms: [random] })
          assert.isAtMost(began.at(-1)!, maxWait)
          assert.isAtMost(Duration.toMillis((yield* timedOut(exit)).elapsed), maxWait + minDelay)
        })
    )
  })

  describe("acceptors", () => {
    const anything = Waiter.outcome("success", () => false)
    const success = Result.succeed("pending")
    const notFound = Result.fail(new NotFound({}))
    for (
      const [name, acceptor, outcome, state, matched] of [
        ["output by predicate", Waiter.output("success", (s) => s === "pending"), success, "success", true],
        ["output that does not satisfy it", Waiter.output("success", (s) => s === "ready"), success, "retry", false],
        ["output, any", Waiter.output("success"), success, "success", true],
        ["output, an error", Waiter.output("success"), notFound, "failure", false],
        ["error, any", Waiter.error("success"), notFound, "success", true],
        ["error, an output", Waiter.error("success"), success, "retry", false],
        ["error by predicate", Waiter.error("retry", (e) => e instanceof NotFound), notFound, "retry", true],
        ["error that does not satisfy it", Waiter.error("retry", () => false), notFound, "failure", false],
        ["errorType by tag", Waiter.errorType("retry", "NotFound"), notFound, "retry", true],
        ["errorType by shape id", Waiter.errorType("success", "com.example#NotFound"), notFound, "success", true],
        ["errorType by tag alone", Waiter.errorType("retry", "Gone"), Result.fail({ _tag: "Gone" }), "retry", true],
        ["errorType by name", Waiter.errorType("retry", "Gone"), Result.fail({ name: "Gone" }), "retry", true],
        ["errorType, another", Waiter.errorType("retry", "NotFoun"), notFound, "failure", false],
        ["errorType, no object", Waiter.errorType("retry", "NotFound"), Result.fail(null), "failure", false],
        ["throttled", Waiter.throttled("retry"), Result.fail(new Throttled({})), "retry", true],
        ["throttled, another error", Waiter.throttled("retry"), Result.fail(new Transient()), "failure", false],
        ["throttled, an output", Waiter.throttled("failure"), success, "retry", false],
        ["outcome", Waiter.outcome("success", Result.isFailure), notFound, "success", true],
        ["outcome that does not satisfy it", Waiter.outcome("failure", Result.isFailure), success, "retry", false],
        ["failure", Waiter.output("failure"), success, "failure", true],
        ["none, operation threw", anything, notFound, "failure", false],
        ["none, operation returned", anything, success, "retry", false]
      ] as ReadonlyArray<[string, Waiter.Acceptor<any, any>, Waiter.Outcome, Waiter.State, boolean]>
    ) {
      it.effect(`vector: ${name}: ${state}${matched ? "" : ", not by the acceptor"}`, () =>
        Effect.gen(function*() {
          const states: Array<Waiter.State> = []
          const waiter = Waiter.make({
            acceptors: [acceptor, anything],
            maxWait: "1 minute",
            onAttempt: ({ state }) => Effect.sync(() => states.push(state))
          })
          const { exit } = yield* play({ waiter, script: [outcome], end: "1 second" })
          assert.strictEqual(states[0], state)
          if (state === "success") {
            const expected = { outcome, attempts: 1, elapsed: Duration.zero }
            assert.deepStrictEqual(exit, Exit.succeed(expected))
          } else if (state === "failure") {
            const error = yield* waitedInVain(exit!)
            assert.deepStrictEqual([error.outcome, error.matched, error.attempts], [outcome, matched, 1])
          } else {
            assert.isUndefined(exit)
          }
        }))
    }

    it.effect("are asked in their order: the first match decides", () =>
      Effect.gen(function*() {
        const one = [Waiter.output("retry", (s: string) => s === "pending"), Waiter.output("success")]
        const waiter = Waiter.make({ acceptors: one, maxWait: "1 minute" })
        const reversed = Waiter.make({ acceptors: [...one].reverse(), maxWait: "1 minute" })
        const script = [success, Result.succeed("ready")]
        assert.strictEqual((yield* play({ waiter, script })).began.length, 2)
        assert.strictEqual((yield* play({ waiter: reversed, script })).began.length, 1)
      }))

    it.effect("say why a wait failed", () =>
      Effect.gen(function*() {
        const because = [
          ["creation failed: broken", Waiter.output("failure", () => true, (s: string) => `creation failed: ${s}`)],
          ["it is NotFound", Waiter.error("failure", () => true, (e: NotFound) => `it is ${e._tag}`)],
          ["odd", Waiter.outcome("failure", () => true, () => "odd")]
        ] as const
        for (const [index, [reason, acceptor]] of because.entries()) {
          const waiter = Waiter.make({ acceptors: [acceptor as Waiter.Acceptor<any, any>, ready], maxWait: 10_000 })
          const { exit } = yield* play({ waiter, script: [index === 1 ? notFound : Result.succeed("broken")] })
          const error = yield* waitedInVain(exit!)
          assert.deepStrictEqual([error.reason, error.message], [reason, `wait failed after 1 poll: ${reason}`])
        }
      }))

    it.effect("has words for unmatched outcomes and for missing reasons", () =>
      Effect.gen(function*() {
        const waiter = Waiter.make({ acceptors: [ready, Waiter.errorType("failure", "NotFound")], maxWait: 10_000 })
        const known = yield* play({ waiter, script: [success, notFound] })
        assert.strictEqual(
          (yield* waitedInVain(known.exit!)).message,
          "wait failed after 2 polls: an acceptor matched the outcome as a failure"
        )
        const unknown = yield* play({ waiter, script: [Result.fail(new Terminal())] })
        const error = yield* waitedInVain(unknown.exit!)
        assert.strictEqual(error.message, "wait failed after 1 poll: no acceptor matched the error")
        assert.isUndefined(error.reason)
      }))

    it.effect("that throw are defects", () =>
      Effect.gen(function*() {
        const bug = new Error("bug")
        const waiter = Waiter.make({
          acceptors: [
            ready,
            Waiter.output("retry", () => {
              throw bug
            })
          ],
          maxWait: 10_000
        })
        assert.deepStrictEqual((yield* play({ waiter })).exit, Exit.die(bug))
      }))
  })

  describe("progress", () => {
    it.effect("is notified after every poll, in milliseconds", () =>
      Effect.gen(function*() {
        const told: Array<unknown> = []
        const waiter = Waiter.make({
          acceptors: [ready],
          minDelay: 1000,
          maxDelay: 2000,
          maxWait: 4000,
          onAttempt: ({ attempts, delay, elapsed, outcome, remaining, state }) =>
            Effect.sync(() =>
              told.push([attempts, state, Result.getOrThrow(outcome), ...[elapsed, remaining, delay].map(toMillis)])
            )
        })
        const script = ["a", "b", "ready"].map(Result.succeed)
        yield* play({ waiter, script, randoms: [1], pollMillis: 10 })
        assert.deepStrictEqual(told, [
          [1, "retry", "a", 10, 3990, 1000],
          [2, "retry", "b", 1020, 2980, 2980],
          [3, "success", "ready", 4010, 0, undefined]
        ])
      }))

    it.effect("takes its time from the delay", () =>
      Effect.gen(function*() {
        for (const [callback, sleeps] of [[300, [1000, 1000, 1000]], [1500, [1500, 1500, 1500]]] as const) {
          const waiter = Waiter.make({
            acceptors: [ready],
            minDelay: 1000,
            maxDelay: 1000,
            maxWait: 60_000,
            onAttempt: () => Effect.sleep(callback)
          })
          assert.deepStrictEqual((yield* play({ waiter, polls: 4, then: "ready" })).sleeps, [...sleeps])
        }
      }))
  })

  describe("the end of the time", () => {
    const options = { acceptors: [ready], minDelay: 1000, maxDelay: 1000, maxWait: 10_000 }

    it.effect("interrupts a poll, which counts, and keeps the outcome before it", () =>
      Effect.gen(function*() {
        let interrupted = 0
        let polls = 0
        const poll = Effect.suspend(() =>
          ++polls === 1
            ? Effect.succeed("pending")
            : Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted++))
        )
        const fiber = yield* Effect.forkChild(Effect.flip(Waiter.waitUntil(poll, Waiter.make(options))))
        yield* TestClock.adjust(9999)
        assert.isUndefined(fiber.pollUnsafe())
        yield* TestClock.adjust(1)
        const error = yield* timedOut(Exit.fail(yield* Fiber.join(fiber)))
        assert.deepStrictEqual([error.attempts, error.last, interrupted], [2, Result.succeed("pending"), 1])
        assert.strictEqual(error.reason, "time")
      }))

    it.effect("leaves the poll at its end the shortest delay to answer", () =>
      Effect.gen(function*() {
        for (const [pollMillis, ends] of [[999, "ready"], [1001, undefined]] as const) {
          let polls = 0
          const poll = Effect.suspend(() =>
            ++polls < 10 ? Effect.succeed("pending") : Effect.delay(Effect.succeed("ready"), pollMillis)
          )
          const exit = yield* travel(Waiter.waitUntil(poll, Waiter.make(options)), "1 hour")
          assert.strictEqual(polls, 10)
          assert.strictEqual(Exit.isSuccess(exit!) ? "ready" : undefined, ends)
          if (ends === undefined) {
            assert.strictEqual(Duration.toMillis((yield* timedOut(exit!)).elapsed), 11_000)
          }
        }
      }))

    it.effect("is reported without an outcome when no poll finished", () =>
      Effect.gen(function*() {
        const error = yield* timedOut((yield* travel(Waiter.waitUntil(Effect.never, Waiter.make(options)), "1 hour"))!)
        assert.deepStrictEqual([error.attempts, error.last], [1, undefined])
        assert.strictEqual(error.message, "still waiting after 10s of 10s, 1 poll")
      }))

    it.effect("comes once, though a timer fires a little early", () =>
      Effect.gen(function*() {
        const wait = Waiter.waitUntil(Effect.succeed("pending"), Waiter.make(options))
        const early = yield* monotonic((nanos) => nanos - nanos / 10_000n)
        const error = yield* timedOut((yield* travel(Effect.provideService(wait, Clock.Clock, early), "1 hour"))!)
        assert.deepStrictEqual([error.attempts, Duration.toMillis(error.elapsed)], [11, 9999.9999])
      }))

    it.effect("has no further poll where one has ended after it", () =>
      Effect.gen(function*() {
        let polls = 0
        const poll = Effect.sync(() => ++polls === 2 ? "asleep" : "pending")
        const clock = yield* monotonic((nanos) => polls < 2 ? nanos : nanos + 3_600_000_000_000n)
        const wait = Waiter.waitUntil(poll, Waiter.make(options)).pipe(Effect.provideService(Clock.Clock, clock))
        const error = yield* timedOut((yield* travel(wait, "1 hour"))!)
        assert.deepStrictEqual([error.attempts, error.last], [2, Result.succeed("asleep")])
      }))

    it.effect("is not moved by steps of the wall clock", () =>
      Effect.gen(function*() {
        yield* TestClock.adjust("1 day")
        let polls = 0
        const poll = Effect.suspend(() => Effect.as(polls++ === 0 ? TestClock.setTime(0) : Effect.void, "pending"))
        const error = yield* timedOut((yield* travel(Waiter.waitUntil(poll, Waiter.make(options)), "1 hour"))!)
        assert.deepStrictEqual([error.attempts, Duration.toMillis(error.elapsed)], [10, 10_000])
      }))
  })

  describe("interruption and defects", () => {
    const waiter = Waiter.make({
      acceptors: [Waiter.output("success", (n: number) => n >= 3), Waiter.error("retry")],
      minDelay: 200,
      maxDelay: 200,
      maxWait: 10_000
    })

    it.effect("leave nothing behind, at any step they come", () =>
      Effect.gen(function*() {
        let open = 0
        let polls = 0
        const poll = Effect.acquireUseRelease(
          Effect.sync(() => {
            open++
            return ++polls
          }),
          (n) => Effect.as(Effect.sleep(50), n),
          () => Effect.sync(() => open--)
        )
        const steps = yield* sweep(Waiter.waitUntil(poll, waiter), () =>
          Effect.gen(function*() {
            const before = polls
            yield* TestClock.adjust("1 minute")
            assert.deepStrictEqual([open, polls], [0, before])
            polls = 0
          }))
        assert.isAbove(steps, 10)
      }))

    it.effect("are not outcomes: no acceptor sees them", () =>
      Effect.gen(function*() {
        const bug = new Error("bug")
        assert.deepStrictEqual(yield* Effect.exit(Waiter.waitUntil(Effect.die(bug), waiter)), Exit.die(bug))
        const interrupted = yield* Effect.exit(Waiter.waitUntil(Effect.interrupt, waiter))
        assert.isTrue(Exit.isFailure(interrupted) && Cause.hasInterruptsOnly(interrupted.cause))
      }))

    it.effect("nothing is shared between two waits of one waiter", () =>
      Effect.gen(function*() {
        const waiting = (offset: number) =>
          Effect.suspend(() => {
            let polls = offset
            return Waiter.waitUntil(Effect.sync(() => ++polls), waiter)
          })
        const both = Effect.all([waiting(0), Effect.delay(waiting(1), 70)], { concurrency: 2 })
        const exit = yield* travel(both, "1 hour")
        assert.deepStrictEqual(
          Exit.map(exit!, (all) => all.map(({ attempts, elapsed }) => [attempts, Duration.toMillis(elapsed)])),
          Exit.succeed([[3, 400], [2, 200]])
        )
      }))
  })

  it.effect("composes with withRetry: a transient failure is retried within the poll", () =>
    Effect.gen(function*() {
      const sent: Array<number> = []
      const call = Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const sends = sent.push(now)
        if (sends === 2) return Effect.fail(new Transient())
        return Effect.succeed(sends === 4 ? "ready" : "pending")
      })
      const policy = Backoff.fixed(100).pipe(RetryPolicy.whileRetryable)
      const wait = call.pipe(
        withRetry(policy),
        Waiter.waitUntil(Waiter.make({ acceptors: [ready], maxWait: "1 hour" }))
      )
      const exit = yield* travel(wait.pipe(withRandom(0)), "1 hour")
      assert.deepStrictEqual(sent, [0, 2000, 2100, 4100])
      assert.strictEqual(Exit.isSuccess(exit!) && exit!.value.attempts, 3)
    }))

  describe("rejects", () => {
    it.effect.each(vectors.options)(
      "vector: minDelay $minDelay, maxDelay $maxDelay, maxWait $maxWait: $field",
      ({ field, ...given }) =>
        Effect.gen(function*() {
          const made = Effect.try({
            try: () => Waiter.make({ acceptors: [ready], ...inMillis(given) }),
            catch: (thrown) => thrown as InvalidOption
          })
          if (field === undefined) return void (yield* made)
          const error = yield* Effect.flip(made)
          assert.instanceOf(error, InvalidOption)
          assert.deepStrictEqual([error.constructorName, error.field], ["Waiter.make", field])
        })
    )

    const options = { acceptors: [ready], maxWait: 10_000 }
    const wrong = [NaN, Infinity, -1, "no duration" as "1 second"]
    const bad: ReadonlyArray<readonly [field: string, value: unknown, make: () => unknown]> = [
      ...[...wrong, 0, 0.99].map((minDelay) =>
        ["minDelay", minDelay, () => Waiter.make({ ...options, minDelay })] as const
      ),
      ...[...wrong, 1999].map((maxDelay) =>
        ["maxDelay", maxDelay, () => Waiter.make({ ...options, maxDelay })] as const
      ),
      ...[...wrong, 0, 2000].map((maxWait) =>
        ["maxWait", maxWait, () => Waiter.make({ ...options, maxWait })] as const
      ),
      ...[...wrong, 10_000].map((initialDelay) =>
        ["initialDelay", initialDelay, () => Waiter.make({ ...options, initialDelay })] as const
      ),
      ...[undefined, null, "success", [undefined], [{ state: "success" }]].map((acceptors) =>
        ["acceptors", acceptors, () => Waiter.make({ ...options, acceptors: acceptors as any })] as const
      ),
      ["acceptors", "", () => Waiter.make({ ...options, acceptors: [] })],
      [
        "acceptors",
        "retry, failure",
        () => Waiter.make({ ...options, acceptors: [Waiter.error("retry"), Waiter.output("failure")] })
      ],
      ["state", "done", () => Waiter.output("done" as "success")],
      ["state", "done", () => Waiter.errorType("done" as "success", "NotFound")],
      ["state", "done", () => Waiter.throttled("done" as "success")],
      ["state", "success", () => Waiter.output("success", () => true, () => "because")],
      ["state", "retry", () => Waiter.error("retry", () => true, () => "because")],
      ["state", "retry", () => Waiter.outcome("retry", () => true, () => "because")]
    ]
    for (const [row, [field, value, make]] of bad.entries()) {
      it(`${field} of ${String(value)} (row ${row})`, () => {
        try {
          make()
          assert.fail("made it")
        } catch (error) {
          assert.instanceOf(error, InvalidOption)
          assert.strictEqual(error.field, field)
          assert.deepStrictEqual(error.value, value)
        }
      })
    }

    it("nothing valid", () => {
      Waiter.make({ acceptors: [ready], minDelay: 1, maxDelay: 1, maxWait: 2 })
      Waiter.make({ acceptors: [ready], minDelay: "2 seconds", maxDelay: "2 seconds", maxWait: 2001 })
    })
  })

  it("keeps the types of the poll", () => {
    class Log extends Context.Service<Log, { readonly log: Effect.Effect<void> }>()("test/Log") {}
    const poll = Effect.fail(new NotFound({})) as Effect.Effect<"ready" | "pending", NotFound, Random.Random>
    const waiter = Waiter.make({
      acceptors: [
        ready,
        Waiter.errorType("retry", "NotFound"),
        Waiter.error("failure", (e: NotFound) => e.message === "")
      ],
      maxWait: "1 minute",
      onAttempt: () => Effect.flatMap(Log, ({ log }) => log)
    })
    expectTypeOf(waiter).toEqualTypeOf<Waiter.Waiter<string, NotFound, Log>>()
    type Expected = Effect.Effect<
      Waiter.Accepted<"ready" | "pending", NotFound>,
      | Waiter.WaiterFailed<"ready" | "pending", NotFound>
      | Waiter.WaiterTimedOut<"ready" | "pending", NotFound>,
      Random.Random | Log
    >
    expectTypeOf(Waiter.waitUntil(poll, waiter)).toEqualTypeOf<Expected>()
    expectTypeOf(poll.pipe(Waiter.waitUntil(waiter))).toEqualTypeOf<Expected>()
    // @ts-expect-error the waiter does not know what a number is
    void Waiter.waitUntil(Effect.succeed(1), waiter)
    void Waiter.make({ acceptors: [ready], maxWait: "1 minute", delay: awsStandard })
  })
})

describe("Waiter next to createWaiter of @smithy/core/client, which @smithy/util-waiter re-exports", () => {
  const { given } = vectors.javascript

  const both = (
    options: { readonly minDelay: number; readonly maxDelay: number; readonly maxWait: number },
    played: { readonly randoms: ReadonlyArray<number>; readonly states?: ReadonlyArray<Waiter.State> }
  ) =>
    Effect.gen(function*() {
      const states = played.states ?? []
      const theirs = yield* Effect.promise(() => smithy(options, played.randoms, states))
      const waiter = Waiter.make({
        acceptors: (["success", "failure", "retry"] as const).map((state) =>
          Waiter.output(state, (value: string) => value === state)
        ),
        ...inMillis(options)
      })
      const script = [...states, "retry"].map(Result.succeed)
      const ours = yield* play({ waiter, randoms: played.randoms, script })
      return { theirs, ours }
    })

  for (const [polls, state] of [[1, "success"], [3, "success"], [1, "failure"], [4, "failure"]] as const) {
    it.effect(`ends with ${state} at poll ${polls} as it does`, () =>
      Effect.gen(function*() {
        const states = [...Array<"retry">(polls - 1).fill("retry"), state]
        const { ours, theirs } = yield* both(given, { randoms: [0.25, 0.5, 0.75], states })
        assert.deepStrictEqual(ours.sleeps, theirs.sleeps)
        assert.strictEqual(ours.sleeps.length, polls - 1)
        assert.strictEqual(theirs.state, state === "success" ? WaiterState.SUCCESS : WaiterState.FAILURE)
        assert.strictEqual(Exit.isSuccess(ours.exit!), state === "success")
        if (state === "failure") assert.strictEqual((yield* waitedInVain(ours.exit!)).attempts, polls)
      }))
  }

  const shortest = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 60 }))
  const longest = Schema.Int.check(Schema.isBetween({ minimum: 16, maximum: 500 }))
  const time = Schema.Int.check(Schema.isBetween({ minimum: 40, maximum: 500 }))
  const chance = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 0.9999999 }))

  it.effect.prop(
    "law: the same chance gives the same delays, up to the attempt ceiling or the end of the time",
    [shortest, longest, time, Schema.NonEmptyArray(chance)],
    ([minDelay, maxTimes, waitTimes, randoms]) =>
      Effect.gen(function*() {
        const options = { minDelay, maxDelay: minDelay * maxTimes, maxWait: minDelay * (waitTimes + 1) }
        const { ours, theirs } = yield* both(options, { randoms })
        let compared = 0
        const ceiling = Math.log(options.maxDelay / minDelay) / Math.log(2) + 1
        for (const [index, sleep] of ours.sleeps.slice(0, -1).entries()) {
          if (index + 1 > ceiling) break
          assert.strictEqual(sleep, theirs.sleeps[index])
          compared++
        }
        assert.isAtLeast(compared, 5)
      }),
    { arbitrary: { runs: budget(100, 20) } }
  )

  it.effect("deviates past the attempt ceiling: no jitter there, jitter here", () =>
    Effect.gen(function*() {
      const { delays, ours: expected, random } = vectors.javascript
      const states = [...Array<"retry">(7).fill("retry"), "success"] as const
      const { ours, theirs } = yield* both(given, { randoms: [random], states })
      assert.deepStrictEqual(theirs.sleeps, delays.map(millis))
      assert.deepStrictEqual(ours.sleeps, expected.map(millis))
    }))

  for (
    const [name, maxWait, theirSleeps, ourSleeps] of [
      ["its last delay ends 500 ms early, and then has no length; ours ends with the time", 10, [2, 4, 3.5, 0], [
        2,
        4,
        4
      ]],
      ["it polls without a pause in the last 500 ms, up to its attempt ceiling", 6.4, [2, 4, 0, 0], [2, 4.4]],
      ["past the ceiling it gives up without a last poll", 16, [2, 4, 8], [2, 4, 10]]
    ] as const
  ) {
    it.effect(`deviates at the end of the time: ${name}`, () =>
      Effect.gen(function*() {
        const options = { minDelay: 2, maxDelay: name.startsWith("past") ? 8 : 30, maxWait }
        const { ours, theirs } = yield* both(options, { randoms: [1] })
        assert.deepStrictEqual(theirs.sleeps, theirSleeps.map(millis))
        assert.strictEqual(theirs.state, WaiterState.TIMEOUT)
        assert.deepStrictEqual(ours.sleeps, ourSleeps.map(millis))
        assert.strictEqual(Duration.toMillis((yield* timedOut(ours.exit!)).elapsed), millis(maxWait))
      }))
  }

  it.effect.each(vectors.options)(
    "validates alike except for delays below 1 ms: $minDelay, $maxDelay, $maxWait",
    ({ field, ...options }) =>
      Effect.gen(function*() {
        const exit = yield* Effect.exit(Effect.tryPromise(() => smithy(options, [0], ["success"])))
        assert.strictEqual(Exit.isSuccess(exit), field === undefined || options.minDelay === 0.0001)
      })
  )
})

describe("examples/waiter", () => {
  const tables = (script: ReadonlyArray<Example.Table | Error>) => {
    let polls = 0
    return Effect.suspend(() => {
      const next = script[Math.min(polls++, script.length - 1)]!
      return next instanceof Error ? Effect.fail(next) : Effect.succeed(next)
    })
  }
  const notFound = Object.assign(new Error("no table"), { name: "ResourceNotFoundException" })
  const unavailable = Object.assign(new Error("later"), { status: 503 })

  for (
    const [script, expected, log] of [
      [[notFound, unavailable, { status: "CREATING" }, { status: "ACTIVE" }], "active after 3 polls", [
        "poll 1: retry, next in 2s",
        "poll 2: retry, next in 4s",
        "poll 3: success"
      ]],
      [[{ status: "FAILED", cause: "no space" }], "creation failed: no space", ["poll 1: failure"]],
      [[new Error("denied")], "an unknown error", ["poll 1: failure"]],
      [[{ status: "CREATING" }], "slow", undefined],
      [[notFound], "nowhere", undefined]
    ] as ReadonlyArray<[ReadonlyArray<Example.Table | Error>, string, ReadonlyArray<string> | undefined]>
  ) {
    it.effect(`untilActive: ${expected}`, () =>
      Effect.gen(function*() {
        const lines: Array<string> = []
        const program = Example.untilActive(tables(script), (line) => lines.push(line))
        assert.deepStrictEqual(yield* travel(program.pipe(withRandom(1)), "1 hour"), Exit.succeed(expected))
        if (log !== undefined) assert.deepStrictEqual(lines, [...log])
      }))
  }

  const pending: Example.Job = { status: "NOT_READY" }
  for (
    const [script, tag, expected] of [
      [[pending, new Throttled({}), pending, { status: "SUCCESS" }], "success", [100, 300, 700, 1500]],
      [[pending, { status: "CANCELLED" }], "WaiterFailed", [100, 300]],
      [[pending, new Terminal()], "WaiterFailed", [100, 300]],
      [[pending], "WaiterTimedOut", [100, 300, 700, 1500, 3100, 6300]]
    ] as ReadonlyArray<[ReadonlyArray<Example.Job | Throttled | Terminal>, string, ReadonlyArray<number>]>
  ) {
    it.effect(`resultOf: ${tag} after polls at ${expected.join(", ")}`, () =>
      Effect.gen(function*() {
        const began: Array<number> = []
        const poll = Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const next = script[Math.min(began.push(now), script.length) - 1]!
          return "status" in next ? Effect.succeed(next) : Effect.fail(next)
        })
        const ended = Effect.match(Example.resultOf(poll), {
          onFailure: ({ _tag }) => _tag,
          onSuccess: () => "success"
        })
        assert.deepStrictEqual(yield* travel(ended, "1 hour"), Exit.succeed(tag))
        assert.deepStrictEqual(began, [...expected])
      }))
  }
})

const hinted = Result.fail(new Throttled({ retryAfter: 3000 }))

const toMillis = (duration: Duration.Duration | undefined) => duration && Duration.toMillis(duration)

const inMillis = (given: { readonly minDelay: number; readonly maxDelay: number; readonly maxWait: number }) => ({
  minDelay: given.minDelay * 1000,
  maxDelay: given.maxDelay * 1000,
  maxWait: given.maxWait * 1000
})

/** Random numbers from a list, in turn; the last one repeats. */
const inTurn = (numbers: ReadonlyArray<number>): () => number => {
  let drawn = 0
  return () => numbers[Math.min(drawn++, numbers.length - 1)]!
}

/** The clock of the test with another monotonic time. */
const monotonic = (change: (nanos: bigint) => bigint) =>
  Clock.clockWith((clock): Effect.Effect<Clock.Clock> => {
    const monotonicTimeNanosUnsafe = () => change(clock.monotonicTimeNanosUnsafe())
    return Effect.succeed({
      ...clock,
      monotonicTimeNanosUnsafe,
      monotonicTimeNanos: Effect.sync(monotonicTimeNanosUnsafe)
    })
  })

/** Lets time pass, and returns how the program ended if it has. */
const travel = <A, E, R>(program: Effect.Effect<A, E, R>, end: Duration.Input) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(program, { startImmediately: true })
    yield* TestClock.adjust(end)
    const exit = fiber.pollUnsafe()
    yield* Fiber.interrupt(fiber)
    return exit
  })

/** Waits for a script of outcomes, of which the last repeats, and records when polls began and how long it slept. */
const play = (options: {
  readonly waiter: Waiter.Waiter<any, any, never>
  readonly script?: ReadonlyArray<Waiter.Outcome>
  readonly randoms?: ReadonlyArray<number>
  /** The number of the poll that gives `then`; without it all are pending. */
  readonly polls?: number
  readonly then?: string
  readonly pollMillis?: number
  readonly end?: Duration.Input
}) =>
  Effect.gen(function*() {
    const { pollMillis = 0, polls = 1, randoms = [0.5], then = "pending", waiter } = options
    const script = options.script ?? [...Array(polls - 1).fill(Result.succeed("pending")), Result.succeed(then)]
    const began: Array<number> = []
    const ended: Array<number> = []
    const start = yield* Clock.currentTimeMillis
    const poll = Effect.gen(function*() {
      const outcome = script[Math.min(began.push((yield* Clock.currentTimeMillis) - start), script.length) - 1]!
      if (pollMillis > 0) yield* Effect.sleep(pollMillis)
      ended.push((yield* Clock.currentTimeMillis) - start)
      return yield* Effect.fromResult(outcome)
    })
    const random = { ...constantRandom(0), nextDoubleUnsafe: inTurn(randoms) }
    const wait = Waiter.waitUntil(poll, waiter).pipe(Effect.provideService(Random.Random, random))
    const exit = yield* travel(
      wait,
      options.end ?? Duration.toMillis(waiter.maxWait) + 2 * Duration.toMillis(waiter.minDelay)
    )
    return { began, exit, sleeps: began.slice(1).map((at, index) => at - ended[index]!) }
  })

const errorOf = (exit: Exit.Exit<unknown, unknown> | undefined) => Effect.flip(exit ?? Effect.die("has not ended"))

const timedOut = (exit: Exit.Exit<unknown, unknown> | undefined) =>
  Effect.map(errorOf(exit), (error) => {
    assert.instanceOf(error, Waiter.WaiterTimedOut)
    return error as Waiter.WaiterTimedOut
  })

const waitedInVain = (exit: Exit.Exit<unknown, unknown> | undefined) =>
  Effect.map(errorOf(exit), (error) => {
    assert.instanceOf(error, Waiter.WaiterFailed)
    return error as Waiter.WaiterFailed
  })

const smithyStates = { success: WaiterState.SUCCESS, failure: WaiterState.FAILURE, retry: WaiterState.RETRY }

/**
 * Runs the waiter of smithy-typescript on a clock, timers and chance of its own: it uses the global ones, which are
 * replaced for as long as it runs, all of it in microtasks.
 */
const smithy = async (
  options: { readonly minDelay: number; readonly maxDelay: number; readonly maxWait: number },
  randoms: ReadonlyArray<number>,
  states: ReadonlyArray<Waiter.State>
) => {
  const real = { now: Date.now, random: Math.random, setTimeout: globalThis.setTimeout }
  const sleeps: Array<number> = []
  let now = 0
  let polls = 0
  Date.now = () => now
  Math.random = inTurn(randoms)
  globalThis.setTimeout = ((wake: () => void, delayMillis: number) => {
    const slept = Math.max(0, Math.ceil(delayMillis - 1e-6))
    sleeps.push(slept)
    now += slept
    queueMicrotask(wake)
  }) as unknown as typeof setTimeout
  try {
    const { maxDelay, maxWait: maxWaitTime, minDelay } = options
    const result = await createWaiter(
      { client: {}, minDelay, maxDelay, maxWaitTime },
      {},
      () => Promise.resolve({ state: smithyStates[states[polls++] ?? "retry"] })
    )
    return { sleeps, state: result.state }
  } finally {
    Date.now = real.now
    Math.random = real.random
    globalThis.setTimeout = real.setTimeout
  }
}

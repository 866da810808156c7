import { assert, describe, it } from "@effect/vitest"
import { Backoff, InvalidOption, RetryObserver, RetryPolicy, RetryQuota } from "effect-retry"
import * as RetryStream from "effect-retry/RetryStream"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { Terminal, Transient } from "../utils/call.ts"

/** Waits 1 s, then 2 s; three attempts, each retry for 5 tokens. */
const policy = Backoff.exponential("1 second").pipe(
  RetryPolicy.maxAttempts(3),
  RetryPolicy.whileRetryable,
  RetryPolicy.quotaGated({ cost: 5 })
)

type Failure = Transient | Terminal

/** What a run emits, each element after `every` milliseconds, and how it ends. */
interface Script {
  readonly gives: number
  readonly every?: number
  readonly fails?: Failure
}

/** Streams of the numbers from `begin` on, one script for each run; the last one repeats. */
const source = (...scripts: ReadonlyArray<Script>) => {
  const seen = { openedAt: Array<number>(), begins: Array<number>(), open: 0 }
  const run = (begin: number) =>
    Stream.unwrap(Effect.gen(function*() {
      seen.openedAt.push(yield* Clock.currentTimeMillis)
      seen.begins.push(begin)
      yield* Effect.acquireRelease(Effect.sync(() => seen.open++), () => Effect.sync(() => seen.open--))
      assert.strictEqual(seen.open, 1, "the run before is closed")
      const { every = 0, fails, gives } = scripts[Math.min(seen.openedAt.length, scripts.length) - 1]!
      const elements = Stream.range(begin, begin + gives - 1).pipe(
        Stream.rechunk(1),
        Stream.mapEffect((element) =>
          every === 0 ? Effect.succeed(element) : Effect.delay(Effect.succeed(element), every)
        )
      )
      const given = gives === 0 ? Stream.empty : elements
      return fails === undefined ? given : Stream.concat(given, Stream.fail(fails))
    }))
  const resumed = (options?: RetryStream.Options) =>
    RetryStream.resume(policy, (last: Option.Option<number>) => run(Option.isSome(last) ? last.value + 1 : 0), options)
  return Object.assign(seen, { run, resumed })
}

/** Collects what a stream emits, how it ends, and when. */
const collected = <A, E, R>(stream: Stream.Stream<A, E, R>) =>
  Effect.gen(function*() {
    const elements: Array<A> = []
    const fiber = yield* Effect.forkChild(
      Stream.runForEach(stream, (element) => Effect.sync(() => elements.push(element)))
    )
    yield* TestClock.adjust("1 hour")
    return { elements, exit: yield* Fiber.await(fiber) }
  })

const errorOf = (exit: Exit.Exit<unknown, unknown>) => Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined

const passing = new Transient()

const observed = () => {
  const events: Array<string> = []
  const observer: RetryObserver.RetryObserver = {
    onAttempt: (succeeded) => void events.push(succeeded ? "success" : "failure"),
    onRetry: ({ retry }) => void events.push(`retry ${retry}`),
    onStop: ({ reason }) => void events.push(reason)
  }
  return { events, observe: Effect.provideService(RetryObserver.CurrentObserver, observer) }
}

describe("untilFirst", () => {
  const quota = Effect.provide(RetryQuota.layer({ capacity: 100 }))

  it.effect("retries until there are elements, after the delays of the policy, and the tokens come back", () =>
    Effect.gen(function*() {
      const { events, observe } = observed()
      const from = source({ gives: 0, fails: passing }, { gives: 0, fails: passing }, { gives: 3 })
      const { elements, exit } = yield* observe(collected(RetryStream.untilFirst(from.run(0), policy)))
      assert.isTrue(Exit.isSuccess(exit))
      assert.deepStrictEqual(elements, [0, 1, 2])
      assert.deepStrictEqual([from.openedAt, from.open], [[0, 1000, 3000], 0])
      assert.deepStrictEqual(events, ["failure", "retry 1", "failure", "retry 2", "success"])
      assert.strictEqual(yield* RetryQuota.balance, 95, "of the retry that failed 5 are spent")
    }).pipe(quota))

  it.effect("fails with what comes after the first element, which is received once: Stream.retry never ends", () =>
    Effect.gen(function*() {
      const from = source({ gives: 1, fails: passing })
      const { elements, exit } = yield* collected(RetryStream.untilFirst(from.run(0), policy))
      assert.strictEqual(errorOf(exit), passing)
      assert.deepStrictEqual(elements, [0])
      assert.deepStrictEqual([from.openedAt, from.open], [[0], 0])

      const endless = source({ gives: 1, fails: passing })
      const three = Backoff.fixed("1 second").pipe(RetryPolicy.maxAttempts(3))
      const fiber = yield* Effect.forkChild(Stream.runDrain(Stream.retry(endless.run(0), three)))
      yield* TestClock.adjust("1 minute")
      assert.isAbove(endless.openedAt.length, 50)
      yield* Fiber.interrupt(fiber)
    }).pipe(quota))

  it.effect("ends with the error of the last attempt, the same object", () =>
    Effect.gen(function*() {
      const from = source({ gives: 0, fails: passing })
      const { exit } = yield* collected(from.run(0).pipe(RetryStream.untilFirst(policy)))
      assert.strictEqual(errorOf(exit), passing)
      assert.deepStrictEqual([from.openedAt.length, from.open], [3, 0])
    }).pipe(quota))

  it.effect("treats an empty stream as a success", () =>
    Effect.gen(function*() {
      const { events, observe } = observed()
      const { elements, exit } = yield* observe(collected(RetryStream.untilFirst(Stream.empty, policy)))
      assert.deepStrictEqual([elements, Exit.isSuccess(exit), events], [[], true, ["success"]])
    }).pipe(quota))

  it.effect("does not retry defects", () =>
    Effect.gen(function*() {
      let opened = 0
      const broken = Stream.unwrap(Effect.sync(() => (opened++, Stream.die("defect"))))
      const { exit } = yield* collected(RetryStream.untilFirst(broken, policy))
      assert.deepStrictEqual([errorOf(exit), opened], ["defect", 1])
    }).pipe(quota))

  it.effect("keeps chunks as they are, and closes the stream when the consumer stops pulling", () =>
    Effect.gen(function*() {
      const chunks: Array<number> = []
      const made = Stream.fromArray([1, 2, 3]).pipe(Stream.concat(Stream.fromArray([4, 5])))
      const stream = RetryStream.untilFirst(made, policy).pipe(
        Stream.chunks,
        Stream.tap((chunk) => Effect.sync(() => chunks.push(chunk.length)))
      )
      yield* collected(stream)
      assert.deepStrictEqual(chunks, [3, 2])
      const from = source({ gives: 10 })
      const { elements } = yield* collected(RetryStream.untilFirst(from.run(0), policy).pipe(Stream.take(2)))
      assert.deepStrictEqual([elements, from.open], [[0, 1], 0])
    }).pipe(quota))

  /** Whether it is the first number of a hundred. */
  const begins = (element: number) => element % 100 === 0

  it.effect("with begins, retries until such an element: what a failed attempt emitted is dropped, the rest comes once", () =>
    Effect.gen(function*() {
      const { events, observe } = observed()
      // Attempts emit 97 and 98, nothing, then 97 to 102.
      const from = source({ gives: 2, fails: passing }, { gives: 0, fails: passing }, { gives: 6 })
      const seen: Array<number> = []
      const stream = from.run(97).pipe(RetryStream.untilFirst(policy, {
        begins: (element: number) => (seen.push(element), begins(element))
      }))
      const { elements, exit } = yield* observe(collected(stream))
      assert.isTrue(Exit.isSuccess(exit))
      assert.deepStrictEqual(elements, [97, 98, 99, 100, 101, 102])
      assert.deepStrictEqual(seen, [97, 98, 97, 98, 99, 100])
      assert.deepStrictEqual([from.openedAt, from.open], [[0, 1000, 3000], 0])
      assert.deepStrictEqual(events, ["failure", "retry 1", "failure", "retry 2", "success"])
      assert.strictEqual(yield* RetryQuota.balance, 95)
    }).pipe(quota))

  it.effect("with begins, fails with what comes after it, and with the last failure before it, without an element", () =>
    Effect.gen(function*() {
      const after = source({ gives: 4, fails: passing })
      const { elements, exit } = yield* collected(RetryStream.untilFirst(after.run(98), policy, { begins }))
      assert.deepStrictEqual([elements, errorOf(exit), after.openedAt], [[98, 99, 100, 101], passing, [0]])
      const before = source({ gives: 1, fails: passing })
      const failed = yield* collected(RetryStream.untilFirst(before.run(98), policy, { begins }))
      assert.deepStrictEqual([failed.elements, errorOf(failed.exit), before.openedAt.length], [[], passing, 3])
    }).pipe(quota))

  it.effect("with begins, a stream that ends before it is a success, with its elements in their chunks", () =>
    Effect.gen(function*() {
      const chunks: Array<ReadonlyArray<number>> = []
      const made = Stream.fromArray([1, 2, 3]).pipe(Stream.concat(Stream.fromArray([4, 5])))
      const stream = RetryStream.untilFirst(made, policy, { begins }).pipe(
        Stream.chunks,
        Stream.tap((chunk) => Effect.sync(() => chunks.push(chunk)))
      )
      assert.isTrue(Exit.isSuccess((yield* collected(stream)).exit))
      assert.deepStrictEqual(chunks, [[1, 2, 3], [4, 5]])
    }).pipe(quota))

  it.effect("with begins, holds back 100 elements at most: a stream of nothing else has begun then, and is not retried", () =>
    Effect.gen(function*() {
      for (const [gives, runs] of [[99, 3], [100, 1]] as const) {
        const from = source({ gives, fails: passing })
        const { elements } = yield* collected(RetryStream.untilFirst(from.run(1), policy, { begins: () => false }))
        assert.deepStrictEqual([from.openedAt.length, elements.length], [runs, runs === 1 ? 100 : 0])
      }
      const endless = Stream.forever(Stream.make(1))
      const { elements } = yield* collected(
        Stream.take(RetryStream.untilFirst(endless, policy, { begins: () => false }), 1000)
      )
      assert.strictEqual(elements.length, 1000)
    }).pipe(quota))

  it.effect("an element for which begins throws begins the stream", () =>
    Effect.gen(function*() {
      const from = source({ gives: 1, fails: passing })
      const throwing = () => {
        throw new Error("it cannot be read")
      }
      const { elements, exit } = yield* collected(RetryStream.untilFirst(from.run(1), policy, { begins: throwing }))
      assert.deepStrictEqual([elements, errorOf(exit), from.openedAt], [[1], passing, [0]])
    }).pipe(quota))

  it("refuses an impossible begins", () => {
    assert.throws(
      () => RetryStream.untilFirst(Stream.empty, policy, { begins: "text" as any }),
      InvalidOption as any,
      /begins must be a function of an element/
    )
  })

  it.effect("an attempt whose end throws is the failure that it was: retried, as is a run of resume", () =>
    Effect.gen(function*() {
      // So do the streams of the AI SDK: what closes one that failed rejects.
      const broken = (seen: Array<number>) =>
        Stream.unwrap(Effect.gen(function*() {
          if (seen.push(seen.length) === 3) return Stream.make(1)
          yield* Effect.addFinalizer(() => Effect.die("it cannot be closed"))
          return Stream.fail(passing)
        }))
      for (
        const retried of [
          (seen: Array<number>) => RetryStream.untilFirst(broken(seen), policy),
          (seen: Array<number>) => RetryStream.resume(policy, () => broken(seen))
        ]
      ) {
        const seen: Array<number> = []
        const { elements, exit } = yield* collected(retried(seen))
        assert.deepStrictEqual([seen.length, elements, exit._tag], [3, [1], "Success"])
      }
    }).pipe(quota))

  it.effect("interrupted at every quarter of a second before it has begun: closed, and nothing is held", () =>
    Effect.gen(function*() {
      for (let millis = 0; millis < 6000; millis += 250) {
        const from = source({ gives: 2, every: 600, fails: passing }, { gives: 2, every: 600 })
        const before = yield* RetryQuota.balance
        const stream = RetryStream.untilFirst(from.run(1), policy, { begins: () => false })
        const fiber = yield* Effect.forkChild(Stream.runDrain(stream))
        yield* TestClock.adjust(millis)
        yield* Fiber.interrupt(fiber)
        assert.strictEqual(from.open, 0)
        const spent = before - (yield* RetryQuota.balance)
        assert.include(from.openedAt.length === 1 || millis >= 3400 ? [0] : [5], spent, `at ${millis}`)
        yield* RetryQuota.deposit(100)
      }
    }).pipe(quota))

  it.effect("interrupted in the backoff or in an attempt: closed, and nothing is held", () =>
    Effect.gen(function*() {
      const back = source({ gives: 0, fails: passing })
      const waiting = yield* Effect.forkChild(Stream.runDrain(RetryStream.untilFirst(back.run(0), policy)))
      yield* TestClock.adjust("500 millis")
      assert.strictEqual(yield* RetryQuota.balance, 95)
      yield* Fiber.interrupt(waiting)
      assert.deepStrictEqual([yield* RetryQuota.balance, back.open], [100, 0])

      const slow = source({ gives: 1, every: 10_000 })
      const pulling = yield* Effect.forkChild(Stream.runDrain(RetryStream.untilFirst(slow.run(0), policy)))
      yield* TestClock.adjust("500 millis")
      assert.strictEqual(slow.open, 1)
      yield* Fiber.interrupt(pulling)
      assert.strictEqual(slow.open, 0)
    }).pipe(quota))
})

describe("Stream.retry", () => {
  it.effect("begins its policy at the first failure, and again after an element, with which the tokens come back", () =>
    Effect.gen(function*() {
      const { events, observe } = observed()
      const timed = RetryPolicy.deadline(policy, "5 seconds")
      const down = { gives: 0, fails: passing }
      // Its attempts last 10 seconds up to their element, then as long again: with a deadline of 5 from the first send
      // nothing would be retried.
      const slow = { gives: 2, every: 10_000, fails: passing }
      const from = source(down, slow, slow, down, down, down)
      const fiber = yield* Effect.forkChild(observe(Stream.runDrain(Stream.retry(from.run(0), timed))))
      yield* TestClock.adjust("10999 millis")
      assert.strictEqual(yield* RetryQuota.balance, 95)
      yield* TestClock.adjust("1 milli")
      assert.strictEqual(yield* RetryQuota.balance, 100)
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(errorOf(yield* Fiber.await(fiber)), passing)
      assert.deepStrictEqual(from.openedAt, [0, 1000, 22_000, 43_000, 45_000])
      assert.deepStrictEqual(events, [
        "retry 1",
        "success",
        "retry 1",
        "success",
        "retry 1",
        "failure",
        "retry 2",
        "failure",
        "max-attempts"
      ])
      assert.strictEqual(yield* RetryQuota.balance, 90)
    }).pipe(Effect.provide(RetryQuota.layer({ capacity: 100 }))))
})

describe("resume", () => {
  const quota = Effect.provide(RetryQuota.layer({ capacity: 100 }))

  it.effect("opens the stream after the last element: all of them, once", () =>
    Effect.gen(function*() {
      const from = source({ gives: 3, fails: passing }, { gives: 0, fails: passing }, { gives: 2 })
      const { elements, exit } = yield* collected(from.resumed())
      assert.isTrue(Exit.isSuccess(exit))
      assert.deepStrictEqual(elements, [0, 1, 2, 3, 4])
      assert.deepStrictEqual(from.begins, [0, 3, 3])
      assert.deepStrictEqual([from.openedAt, from.open], [[0, 1000, 3000], 0])
      assert.strictEqual(yield* RetryQuota.balance, 95)
    }).pipe(quota))

  it.effect("comes to an end with a stream that always fails after the first element", () =>
    Effect.gen(function*() {
      const { events, observe } = observed()
      const from = source({ gives: 1, fails: passing })
      const { elements, exit } = yield* observe(collected(from.resumed()))
      assert.strictEqual(errorOf(exit), passing)
      assert.deepStrictEqual(elements, [0, 1, 2])
      assert.deepStrictEqual([from.openedAt, from.open], [[0, 1000, 3000], 0])
      assert.deepStrictEqual(events, ["failure", "retry 1", "failure", "retry 2", "failure", "max-attempts"])
      assert.strictEqual(yield* RetryQuota.balance, 90)
    }).pipe(quota))

  it.effect("resets the count when a run lasts for resetAfter, just below and at it", () =>
    Effect.gen(function*() {
      // A run is 1 s until its first element, then as long as it takes for the others.
      for (const [gives, runs] of [[10, 3], [11, 20]] as const) {
        const scripts = Array.from({ length: 19 }, () => ({ gives, every: 1000, fails: passing }))
        const from = source(...scripts, { gives: 1 })
        const { exit } = yield* collected(from.resumed({ resetAfter: "10 seconds" }))
        assert.deepStrictEqual([Exit.isSuccess(exit), from.openedAt.length], [runs === 20, runs])
      }
    }).pipe(quota))

  it.effect("gives the tokens of its retry back while the run continues", () =>
    Effect.gen(function*() {
      const from = source({ gives: 0, fails: passing }, { gives: 1000, every: 1000 })
      const fiber = yield* Effect.forkChild(Stream.runDrain(from.resumed()))
      yield* TestClock.adjust("11999 millis")
      assert.strictEqual(yield* RetryQuota.balance, 95)
      yield* TestClock.adjust("1 milli")
      assert.strictEqual(yield* RetryQuota.balance, 100)
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual([yield* RetryQuota.balance, from.open], [100, 0])
    }).pipe(quota))

  it.effect("resetAfter 0 is the first element", () =>
    Effect.gen(function*() {
      const scripts = Array.from({ length: 9 }, () => ({ gives: 1, fails: passing }))
      const from = source(...scripts, { gives: 1 })
      const { elements } = yield* collected(from.resumed({ resetAfter: 0 }))
      assert.strictEqual(elements.length, 10)
      assert.strictEqual(yield* RetryQuota.balance, 100)
    }).pipe(quota))

  it.effect("stops at a final error, and when the quota is empty, with the error of the run", () =>
    Effect.gen(function*() {
      const terminal = new Terminal()
      const final = source({ gives: 2, fails: terminal })
      assert.strictEqual(errorOf((yield* collected(final.resumed())).exit), terminal)
      assert.strictEqual(final.openedAt.length, 1)
      yield* RetryQuota.reserve(96)
      const dry = source({ gives: 2, fails: passing })
      assert.strictEqual(errorOf((yield* collected(dry.resumed())).exit), passing)
      assert.strictEqual(dry.openedAt.length, 1)
    }).pipe(quota))

  it.effect("does not retry defects, in the stream or in what opens it", () =>
    Effect.gen(function*() {
      const defect = RetryStream.resume(policy, () => Stream.die("defect"))
      assert.strictEqual(errorOf((yield* collected(defect)).exit), "defect")
      const thrown = RetryStream.resume(policy, (): Stream.Stream<number> => {
        throw new RangeError("no stream")
      })
      assert.instanceOf(errorOf((yield* collected(thrown)).exit), RangeError)
      assert.strictEqual(yield* RetryQuota.balance, 100)
    }).pipe(quota))

  it.effect("left by its consumer after elements: what a retry holds goes back", () =>
    Effect.gen(function*() {
      const from = source({ gives: 0, fails: passing }, { gives: 10 })
      const { elements } = yield* collected(Stream.take(from.resumed(), 2))
      assert.deepStrictEqual([elements, from.open], [[0, 1], 0])
      assert.strictEqual(yield* RetryQuota.balance, 100)
    }).pipe(quota))

  it.effect("interrupted at every quarter of a second: nothing is held, all is closed", () =>
    Effect.gen(function*() {
      for (let millis = 0; millis < 9000; millis += 250) {
        const from = source({ gives: 2, every: 600, fails: passing }, { gives: 0, fails: passing }, {
          gives: 4,
          every: 600
        })
        const before = yield* RetryQuota.balance
        const fiber = yield* Effect.forkChild(Stream.runDrain(from.resumed()))
        yield* TestClock.adjust(millis)
        yield* Fiber.interrupt(fiber)
        assert.strictEqual(from.open, 0)
        const spent = before - (yield* RetryQuota.balance)
        // The first retry was sent and failed; the second is given back, unless it was sent without an element yet.
        const sent = from.openedAt.length
        assert.include(sent < 3 ? [0, 5].slice(0, sent) : [5, 10], spent, `at ${millis}`)
        yield* RetryQuota.deposit(100)
      }
    }).pipe(quota))

  it("refuses an impossible option", () => {
    assert.throws(
      () => RetryStream.resume(policy, () => Stream.empty, { resetAfter: "10s" as any }),
      InvalidOption as any,
      /resetAfter must be a finite duration of at least 0/
    )
  })
})

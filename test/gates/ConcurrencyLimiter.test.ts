import { assert, describe, it } from "@effect/vitest"
import {
  awsStandard,
  Backoff,
  InvalidOption,
  RetryInfo,
  RetryObserver,
  RetryPolicy,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import { type Criticality, CurrentCriticality } from "effect-retry/Criticality"
import { SendGateSuite } from "effect-retry/testing"
import * as Cause from "effect/Cause"
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { countedClock } from "../reliability/utils/clocks.ts"
import { budget } from "../utils/budget.ts"
import { constantRandom, Terminal, Throttled, TimedOut, Transient } from "../utils/call.ts"
import { sweep, thinned } from "../utils/sweep.ts"

const once = RetryPolicy.fromDelay(() => undefined)

class Unavailable extends Data.TaggedError("Unavailable")<{ readonly status: number; readonly headers?: object }> {}
class Wrapped extends Data.TaggedError("Wrapped")<{ readonly status?: number; readonly cause: unknown }> {}

/** A rule applied to samples in turn: an outcome and the sends in flight; `late` is a drop sent before a cut. */
const played = (rule: ConcurrencyLimiter.Rule, samples: ReadonlyArray<string>) => {
  let state = rule.initial
  return samples.map((sample) => {
    const [kind, inFlight] = sample.split(" ")
    state = rule.next(state, {
      outcome: kind === "ok" ? "success" : "timeout",
      inFlight: Number(inFlight),
      overtaken: kind === "late",
      rttMillis: undefined
    })
    return Math.round(rule.limit(state) * 1e6) / 1e6
  })
}

describe("the adaptive limit", () => {
  const { adaptive } = ConcurrencyLimiter
  const rows: ReadonlyArray<
    [name: string, rule: ConcurrencyLimiter.Rule, samples: Array<string>, limits: Array<number>]
  > = [
    ["grows by a quarter while half of it is used", adaptive(), ["ok 20", "ok 11", "ok 10"], [20.25, 20.5, 20.5]],
    ["does not grow while less is used", adaptive(), ["ok 9", "ok 1"], [20, 20]],
    ["is cut to a share of what is in flight, not of itself", adaptive(), ["drop 10", "drop 10"], [7, 4.9]],
    ["is cut from itself where more is in flight than it allows", adaptive(), ["drop 20", "drop 19"], [14, 9.8]],
    ["is cut once a round trip", adaptive(), ["drop 20", "late 19", "late 18", "late 1"], [14, 14, 14, 14]],
    ["does not grow with a drop, and is not cut by a success", adaptive(), ["drop 20", "ok 7", "ok 6"], [
      14,
      14.25,
      14.25
    ]],
    ["stops at 1 with a first drop", adaptive({ initial: 1 }), ["drop 1", "drop 1", "drop 1"], [1, 0.7, 0.49]],
    [
      "stops at 1 with the first drop after a success",
      adaptive({ initial: 1 }),
      ["drop 1", "ok 1", "drop 1", "drop 1"],
      [
        1,
        1.25,
        1,
        0.7
      ]
    ],
    ["falls to the minimum", adaptive({ initial: 1 }), Array.from({ length: 9 }, () => "drop 1"), [
      1,
      0.7,
      0.49,
      0.343,
      0.2401,
      0.16807,
      0.117649,
      0.1,
      0.1
    ]],
    ["is back at 1 with one success", adaptive({ initial: 0.1 }), ["ok 1", "ok 1"], [1, 1.25]],
    ["keeps to a minimum of its own", adaptive({ minimum: 5, initial: 6 }), ["drop 2", "drop 1"], [5, 5]],
    ["keeps to its maximum", adaptive({ maximum: 20 }), ["ok 20"], [20]],
    ["takes other constants", adaptive({ increase: 2, decrease: 0.5, initial: 4 }), ["ok 4", "drop 5"], [6, 2.5]]
  ]
  for (const [name, rule, samples, limits] of rows) {
    it(name, () => assert.deepStrictEqual(played(rule, samples), limits))
  }

  it("law: from the minimum, full use reaches any limit, for its whole part is never less than half of it", () => {
    for (let limit = 1; limit < 300; limit += 0.01) assert.isAtLeast(Math.floor(limit), limit / 2)
    const rule = adaptive({ minimum: 0.1, initial: 0.1, maximum: 200 })
    let state = rule.initial
    for (let success = 0; success < 1000; success++) {
      const inFlight = Math.max(1, Math.floor(rule.limit(state)))
      state = rule.next(state, { outcome: "success", inFlight, overtaken: false, rttMillis: undefined })
    }
    assert.strictEqual(rule.limit(state), 200)
  })

  it("law: no drop, no fall; a drop that counts leaves 0.7 of what is in flight at most, or 1, or the minimum", () => {
    const rule = adaptive()
    let seed = 7
    const draw = () => (seed = seed * 48271 % 2147483647) / 2147483647
    let state = rule.initial
    for (let step = 0; step < 20_000; step++) {
      const before = rule.limit(state)
      const inFlight = 1 + Math.floor(draw() * Math.max(1, before))
      const outcome = draw() < 0.9 ? "success" : "timeout"
      const overtaken = draw() < 0.5
      state = rule.next(state, { outcome, inFlight, overtaken, rttMillis: undefined })
      const after = rule.limit(state)
      if (outcome === "success") assert.isAtLeast(after, before)
      else if (overtaken) assert.strictEqual(after, before)
      else assert.isTrue(after <= before && after <= Math.max(0.7 * inFlight, 1))
      assert.isTrue(after >= 0.1 && after <= 1000)
    }
  })

  for (
    const [limit, times, pause] of [
      [1, [], 0],
      [0.5, [], 20],
      [0.1, [], 180],
      [0.1, ["drop 5000"], 9000],
      [0.5, ["drop 300"], 300],
      [0.5, ["drop 300", "drop 100"], 100]
    ] as const
  ) {
    it(`a limit of ${limit} after ${times.length === 0 ? "nothing" : times.join(", ")} ms pauses for ${pause} ms`, () => {
      const rule = adaptive({ initial: limit, minimum: limit })
      const state = times.reduce<unknown>((state, time) => {
        const [outcome, millis] = time.split(" ")
        return rule.next(state, {
          outcome: outcome === "drop" ? "timeout" : "success",
          inFlight: 1,
          overtaken: false,
          rttMillis: Number(millis)
        })
      }, rule.initial)
      assert.closeTo(rule.pauseMillis!(state, 0.5), pause, 1e-9)
      assert.closeTo(rule.pauseMillis!(state, 0), pause / 2, 1e-9)
      assert.closeTo(rule.pauseMillis!(state, 1), pause * 1.5, 1e-9)
    })
  }

  it("slowerThan counts a slow success as a drop", () => {
    const rule = adaptive({ slowerThan: "1 second" })
    const after = (rttMillis: number) =>
      rule.limit(rule.next(rule.initial, { outcome: "success", inFlight: 20, overtaken: false, rttMillis }))
    assert.deepStrictEqual([after(1000), after(1001)], [20.25, 14])
    assert.isTrue(rule.isTimed!(rule.initial))
    assert.isFalse(adaptive().isTimed!(adaptive().initial))
  })

  const refused: ReadonlyArray<[field: string, make: () => unknown]> = [
    ["minimum", () => adaptive({ minimum: 0 })],
    ["maximum", () => adaptive({ minimum: 5, maximum: 4 })],
    ["initial", () => adaptive({ initial: 2000 })],
    ["initial", () => adaptive({ initial: 1, minimum: 2 })],
    ["increase", () => adaptive({ increase: 0 })],
    ["decrease", () => adaptive({ decrease: 1 })],
    ["slowerThan", () => adaptive({ slowerThan: 0 })],
    ["limit", () => ConcurrencyLimiter.fixed(0)],
    ["limit", () => ConcurrencyLimiter.fixed(1.5)],
    ["rule", () => ConcurrencyLimiter.layer({ rule: 5 as never })],
    ["rule", () => ConcurrencyLimiter.layer({ rule: { limit: () => 1, next: () => 1 } as never })],
    ["rule", () => ConcurrencyLimiter.layer({ rule: { ...adaptive(), isTimed: true as never } })],
    ["rule", () => ConcurrencyLimiter.layer({ rule: { ...adaptive(), pauseMillis: 100 as never } })],
    ["isDrop", () => ConcurrencyLimiter.layer({ isDrop: 503 as never })],
    ["onExceeded", () => ConcurrencyLimiter.layer({ onExceeded: "stop" as never })],
    ["maxWait", () => ConcurrencyLimiter.layer({ maxWait: 0 })],
    ["maxWaiters", () => ConcurrencyLimiter.layer({ maxWaiters: -1 })],
    ["order", () => ConcurrencyLimiter.layer({ order: "random" as never })]
  ]
  for (const [field, make] of refused) {
    it(`refuses an impossible ${field}: ${String(make).slice(6)}`, () => {
      try {
        make()
      } catch (error) {
        assert.instanceOf(error, InvalidOption)
        return assert.strictEqual(error.field, field)
      }
      assert.fail("was not refused")
    })
  }
})

describe("ConcurrencyLimiter", () => {
  /** Calls of a given duration, behind a limiter. */
  const subject = (options: ConcurrencyLimiter.Options) =>
    Effect.gen(function*() {
      const limiter = yield* ConcurrencyLimiter.make(options)
      const sent: Array<string> = []
      const call = (name: string, millis: number, error?: unknown, criticality: Criticality = "normal") =>
        Effect.forkChild(
          Effect.suspend(() => {
            sent.push(name)
            return Effect.andThen(Effect.sleep(millis), error === undefined ? Effect.void : Effect.fail(error))
          }).pipe(
            withRetry(once),
            Effect.provideService(ConcurrencyLimiter.ConcurrencyLimiter, limiter),
            Effect.provideService(CurrentCriticality, criticality),
            Effect.result
          ),
          { startImmediately: true }
        )
      return { limiter, sent, call }
    })

  it.effect("lets a number of sends be in flight, then first come, first served", () =>
    Effect.gen(function*() {
      const { call, limiter, sent } = yield* subject({ rule: ConcurrencyLimiter.fixed(2) })
      for (const name of ["a", "b", "c", "d"]) yield* call(name, 100)
      assert.deepStrictEqual(sent, ["a", "b"])
      assert.deepStrictEqual(yield* limiter.state, { limit: 2, inFlight: 2, waiting: 2 })
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(sent, ["a", "b", "c", "d"])
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(yield* limiter.state, { limit: 2, inFlight: 0, waiting: 0 })
    }))

  it.effect("serves the last to arrive first where configured", () =>
    Effect.gen(function*() {
      const { call, sent } = yield* subject({ rule: ConcurrencyLimiter.fixed(1), order: "lifo" })
      for (const name of ["a", "b", "c", "d"]) yield* call(name, 50)
      yield* TestClock.adjust(200)
      assert.deepStrictEqual(sent, ["a", "d", "c", "b"])
    }))

  it.effect("serves what matters more first, and refuses what matters less when too many wait", () =>
    Effect.gen(function*() {
      const { call, limiter, sent } = yield* subject({ rule: ConcurrencyLimiter.fixed(1), maxWaiters: 3 })
      yield* call("a", 50)
      const first = yield* call("shed 1", 50, undefined, "sheddable")
      const second = yield* call("shed 2", 50, undefined, "sheddable")
      yield* call("normal", 50)
      yield* call("critical", 50, undefined, "critical")
      const third = yield* call("shed 3", 50, undefined, "sheddable")
      assert.strictEqual((yield* limiter.state).waiting, 3)
      yield* TestClock.adjust(250)
      assert.deepStrictEqual(sent, ["a", "critical", "normal", "shed 1"])
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(first)))
      for (const fiber of [second, third]) {
        const result = yield* Fiber.join(fiber)
        assert.isTrue(result._tag === "Failure")
        assert.deepInclude((result as any).failure, { _tag: "ConcurrencyLimitExceeded", reason: "queue-full" })
      }
    }))

  it.effect("waits for a limited time, then fails, never sent", () =>
    Effect.gen(function*() {
      const { call, limiter, sent } = yield* subject({ rule: ConcurrencyLimiter.fixed(1) })
      yield* call("a", 1000)
      const fibers = [yield* call("b", 10), yield* call("c", 10)]
      yield* TestClock.adjust(100)
      fibers.push(yield* call("d", 10))
      yield* TestClock.adjust(149)
      assert.strictEqual((yield* limiter.state).waiting, 3)
      yield* TestClock.adjust(1)
      assert.strictEqual((yield* limiter.state).waiting, 1)
      yield* TestClock.adjust(100)
      for (const fiber of fibers) {
        const result = yield* Fiber.join(fiber)
        assert.instanceOf((result as any).failure, ConcurrencyLimiter.ConcurrencyLimitExceeded)
        assert.strictEqual((result as any).failure.message, "no free slot: at most 1 in flight")
      }
      assert.deepStrictEqual(sent, ["a"])
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual(yield* limiter.state, { limit: 1, inFlight: 0, waiting: 0 })
    }))

  it.effect("fails immediately where configured", () =>
    Effect.gen(function*() {
      const { call, sent } = yield* subject({ rule: ConcurrencyLimiter.fixed(1), onExceeded: "fail" })
      yield* call("a", 10)
      const result = yield* Fiber.join(yield* call("b", 10))
      assert.deepInclude((result as any).failure, { reason: "full", limit: 1 })
      assert.deepStrictEqual(sent, ["a"])
    }))

  it.effect("an interrupted waiter frees nothing, and the next in line keeps the time", () =>
    Effect.gen(function*() {
      const { call, limiter, sent } = yield* subject({ rule: ConcurrencyLimiter.fixed(1) })
      yield* call("a", 1000)
      const head = yield* call("b", 10)
      const next = yield* call("c", 10)
      yield* Fiber.interrupt(head)
      assert.deepStrictEqual(yield* limiter.state, { limit: 1, inFlight: 1, waiting: 1 })
      yield* TestClock.adjust(250)
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(next)))
      assert.deepStrictEqual(sent, ["a"])
    }))

  const crowd = budget(20_000, 10_000)
  it.effect(`${crowd} waiters come, give up and are interrupted without a deep stack`, () =>
    Effect.gen(function*() {
      const { call, limiter } = yield* subject({ rule: ConcurrencyLimiter.fixed(1), maxWaiters: Infinity })
      yield* call("a", 1000)
      for (let waiter = 0; waiter < crowd; waiter++) yield* call("b", 10)
      yield* TestClock.adjust(250)
      // On a busy machine the clock does not wait for the last of them.
      const settled = Effect.andThen(Effect.yieldNow, limiter.state)
      const state = yield* Effect.repeat(settled, { until: ({ waiting }) => waiting === 0, times: 100_000 })
      assert.deepStrictEqual(state, { limit: 1, inFlight: 1, waiting: 0 })
      const fibers = []
      for (let waiter = 0; waiter < crowd; waiter++) fibers.push(yield* call("b", 10))
      yield* Fiber.interruptAll(fibers)
      assert.strictEqual((yield* limiter.state).waiting, 0)
    }))

  const drops: ReadonlyArray<[what: string, error: unknown, limit: number]> = [
    ["a throttle", new Throttled({}), 0.7],
    ["a timeout", new TimedOut(), 0.7],
    ["a 504", new Unavailable({ status: 504 }), 0.7],
    ["an error that a 504 has caused", new Wrapped({ cause: new Unavailable({ status: 504 }) }), 0.7],
    ["a 503 with a hint", new Unavailable({ status: 503, headers: { "retry-after": "1" } }), 0.7],
    ["a 503", new Unavailable({ status: 503 }), 20],
    ["a 529", new Unavailable({ status: 529 }), 20],
    ["UNAVAILABLE of gRPC", Object.assign(new Error(), { code: 14, details: "" }), 20],
    ["UNAVAILABLE of Connect", Object.assign(new Error(), { code: 14, metadata: new Headers() }), 20],
    ["a 500", new Unavailable({ status: 500 }), 20],
    ["a 500 that a 504 has caused", new Wrapped({ status: 500, cause: new Unavailable({ status: 504 }) }), 20],
    ["INTERNAL of gRPC", Object.assign(new Error(), { code: 13, details: "" }), 20],
    ["a code 14 that is none of gRPC", Object.assign(new Error(), { code: 14 }), 20],
    ["a transient failure", new Transient(), 20],
    ["a failure that is final", new Terminal(), 20],
    ["an unknown error", new Error("unknown"), 20]
  ]
  for (const [what, error, limit] of drops) {
    it.effect(`${what} ${limit === 20 ? "changes nothing" : "cuts the limit"}`, () =>
      Effect.gen(function*() {
        const { call, limiter } = yield* subject({})
        yield* call("a", 10, error)
        yield* TestClock.adjust(10)
        yield* call("b", 10, error)
        yield* TestClock.adjust(10)
        assert.deepStrictEqual(yield* limiter.state, { limit, inFlight: 0, waiting: 0 })
      }))
  }

  it.effect("a burst of drops is one", () =>
    Effect.gen(function*() {
      const { call, limiter } = yield* subject({})
      for (let send = 0; send < 20; send++) yield* call("a", 10 + send, new TimedOut())
      yield* TestClock.adjust(100)
      assert.strictEqual((yield* limiter.state).limit, 14)
    }))

  it.effect("a retry is not sent after a timeout until a send succeeds; one of a throttle is", () =>
    Effect.gen(function*() {
      const limiter = yield* ConcurrencyLimiter.make({ maxWait: "1 second" })
      const policy = Backoff.fixed(10).pipe(RetryPolicy.maxAttempts(3))
      const sends = (...errors: ReadonlyArray<unknown>) =>
        Effect.gen(function*() {
          let count = 0
          const call = Effect.suspend(() => {
            const error = errors[count++]
            return Effect.andThen(Effect.sleep(5), error === undefined ? Effect.void : Effect.fail(error))
          })
          let end: string | undefined
          const fiber = yield* call.pipe(
            withRetry(policy),
            Effect.provideService(ConcurrencyLimiter.ConcurrencyLimiter, limiter),
            Effect.provideService(RetryObserver.CurrentObserver, {
              onStop: ({ gate, reason }) => void (end = gate ?? reason)
            }),
            Effect.exit,
            Effect.forkChild
          )
          yield* TestClock.adjust("1 minute")
          const exit = yield* Fiber.join(fiber)
          if (Exit.isFailure(exit)) assert.strictEqual(Cause.squash(exit.cause), errors[count - 1])
          return [count, end]
        })
      const timedOut = new TimedOut()
      // Nothing speaks for a retry yet.
      assert.deepStrictEqual(yield* sends(timedOut), [1, "ConcurrencyLimiter"])
      assert.deepStrictEqual(yield* sends(timedOut), [1, "ConcurrencyLimiter"])
      assert.deepStrictEqual(yield* sends(), [1, undefined])
      // There were two in a row: a success after them promises nothing for the next.
      assert.deepStrictEqual(yield* sends(timedOut), [1, "ConcurrencyLimiter"])
      assert.deepStrictEqual(yield* sends(), [1, undefined])
      // The last was by chance, so the next may be.
      assert.deepStrictEqual(yield* sends(timedOut), [2, undefined])
      assert.deepStrictEqual(yield* sends(timedOut, timedOut), [2, "ConcurrencyLimiter"])
      const throttled = new Throttled({})
      assert.deepStrictEqual(yield* sends(throttled, throttled, throttled), [3, "max-attempts"])
      assert.deepStrictEqual(yield* sends(throttled, timedOut), [2, "ConcurrencyLimiter"])
    }))

  /** 100 calls a second of 100 ms each, with a timeout of one second; those of the eleventh to thirteenth second that `fault` names fail. */
  const succeeding = (
    fault: (call: number) => Effect.Effect<never, unknown> | undefined,
    seconds: ReadonlyArray<number>
  ) =>
    Effect.gen(function*() {
      let [call, succeeded] = [0, 0]
      const one = Effect.suspend(() => {
        const failing = call >= 1000 && call < 1300 ? fault(call) : undefined
        call++
        return failing ?? Effect.sleep(100)
      }).pipe(
        Effect.timeout("1 second"),
        withRetry(awsStandard),
        Effect.matchEffect({ onFailure: () => Effect.void, onSuccess: () => Effect.sync(() => void succeeded++) })
      )
      const found: Array<number> = []
      for (let second = 1; second <= Math.max(...seconds); second++) {
        succeeded = 0
        for (let sends = 0; sends < 100; sends++) {
          yield* Effect.forkChild(one)
          yield* TestClock.adjust(10)
        }
        if (seconds.includes(second)) found.push(succeeded)
      }
      return found
    }).pipe(Effect.provide([RetryQuota.layer(), ConcurrencyLimiter.layer()]))

  const gateway = (millis: number) => Effect.delay(Effect.fail(new Unavailable({ status: 504 })), millis)
  const short = Effect.timeout(Effect.never, "30 millis")
  const longer = Effect.timeout(Effect.never, "150 millis")
  const fastTimeouts: ReadonlyArray<readonly [string, (call: number) => Effect.Effect<never, unknown> | undefined]> = [
    ["six 504s, after 5 ms each", (call) => call % 50 === 0 ? gateway(5) : undefined],
    ["a burst of 504s, before any send is timed", (call) => call < 1040 ? gateway(5) : undefined],
    ["sends of another operation, with a timeout of 30 ms", (call) => call % 40 === 0 ? short : undefined],
    ["of one with a timeout just above the usual latency", (call) => call % 40 === 0 ? longer : undefined],
    [
      "of both, mixed with timeouts of a second",
      (call) => call % 20 === 0 ? [short, longer, Effect.never][call / 20 % 3] : undefined
    ]
  ]
  for (const [what, fault] of fastTimeouts) {
    it.effect(`recovers within seconds after short timeouts: ${what}`, () =>
      Effect.gen(function*() {
        const [before, , , late] = yield* succeeding(fault, [10, 13, 20, 30])
        assert.deepStrictEqual([before, late], [100, 100])
      }))
  }

  it.effect("a retry is sent again 30 seconds after the last timeout, and after a final answer", () =>
    Effect.gen(function*() {
      const ends = Effect.fnUntraced(function*(delay: number, between?: Effect.Effect<unknown, unknown>) {
        const limiter = yield* ConcurrencyLimiter.make()
        const limited = Effect.provideService(ConcurrencyLimiter.ConcurrencyLimiter, limiter)
        let sends = 0
        const call = Effect.suspend(() => ++sends === 1 ? Effect.fail(new TimedOut()) : Effect.void)
        yield* Effect.forkChild(withRetry(call, Backoff.fixed(delay)).pipe(limited))
        yield* TestClock.adjust(1)
        if (between !== undefined) yield* Effect.forkChild(Effect.exit(withRetry(between, once)).pipe(limited))
        yield* TestClock.adjust("1 minute")
        return sends
      })
      assert.strictEqual(yield* ends(29_999), 1)
      assert.strictEqual(yield* ends(30_000), 2)
      assert.strictEqual(yield* ends(10, Effect.die("defect")), 1)
      assert.strictEqual(yield* ends(10, Effect.fail(new Transient())), 1)
      // None of these is an answer of the service.
      const aborted = Object.assign(new Error("aborted"), { name: "AbortError" })
      const overloaded = { status: 503, headers: { "x-envoy-overloaded": "true" } }
      for (const error of [aborted, new Error("lost", { cause: aborted }), overloaded, { status: 501 }]) {
        assert.strictEqual(yield* ends(10, Effect.fail(error)), 1)
      }
      assert.strictEqual(yield* ends(10, Effect.fail(new Terminal())), 2)
      assert.strictEqual(yield* ends(10, Effect.fail({ status: 404 })), 2)
      assert.strictEqual(yield* ends(10, Effect.void), 2)
    }))

  it.effect("a send waits for a quarter of the timeout, once it has seen one", () =>
    Effect.gen(function*() {
      const { call, limiter } = yield* subject({ rule: ConcurrencyLimiter.adaptive({ initial: 1 }) })
      yield* call("a", 100, new TimedOut())
      yield* TestClock.adjust(100)
      yield* call("b", 1000)
      const fiber = yield* call("c", 10)
      yield* TestClock.adjust(24)
      assert.strictEqual((yield* limiter.state).waiting, 1)
      yield* TestClock.adjust(1)
      assert.deepInclude(((yield* Fiber.join(fiber)) as any).failure, { reason: "full" })
    }))

  it.effect("from the first timeout on sends are timed, and slow ones hardly grow the limit", () =>
    Effect.gen(function*() {
      const { call, limiter } = yield* subject({})
      const burst = Effect.fnUntraced(function*(sends: number, millis: number, error?: unknown) {
        for (let send = 0; send < sends; send++) yield* call("a", millis, error)
        yield* TestClock.adjust(millis)
        return (yield* limiter.state).limit
      })
      assert.strictEqual(yield* burst(20, 1000, new TimedOut()), 14)
      // How long the first took is unknown: untimed.
      assert.strictEqual(yield* burst(14, 900), 15.75)
      assert.strictEqual(yield* burst(15, 1000, new TimedOut()), 10.5)
      assert.closeTo(yield* burst(10, 900), 10.55, 0.01)
      // The mean falls to half of the timeout and below.
      for (let second = 0; second < 5; second++) yield* burst(10, 100)
      assert.isAbove(yield* burst(10, 100), 13)
    }))

  it.effect("below one, sends are paced: one, then a pause; the first after any idle time passes immediately", () =>
    Effect.gen(function*() {
      const { call, limiter, sent } = yield* subject({
        rule: ConcurrencyLimiter.adaptive({ initial: 1 }),
        maxWait: "5 seconds"
      })
      for (let drop = 0; drop < 2; drop++) {
        yield* call("drop", 500, new TimedOut())
        yield* TestClock.adjust(500)
      }
      assert.strictEqual((yield* limiter.state).limit, 0.7)
      // 500 ms * (1 / 0.7 - 1), with a random number of 0.5.
      yield* call("next", 10)
      yield* TestClock.adjust(214)
      assert.deepStrictEqual(sent, ["drop", "drop"])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(sent, ["drop", "drop", "next"])
      yield* TestClock.adjust(10)
      assert.strictEqual((yield* limiter.state).limit, 1)
      for (let drop = 0; drop < 2; drop++) {
        yield* call("drop", 500, new TimedOut())
        yield* TestClock.adjust("1 minute")
      }
      yield* call("late", 10)
      assert.strictEqual(sent.at(-1), "late")
    }).pipe(Effect.provideService(Random.Random, constantRandom(0.5))))

  it.effect("a retry waits no longer than its deadline; a refusal is not retried, and costs no token", () =>
    Effect.gen(function*() {
      const stops: Array<string> = []
      const limiter = yield* ConcurrencyLimiter.make({ rule: ConcurrencyLimiter.fixed(1), maxWait: "1 minute" })
      let sends = 0
      const program = Effect.suspend(() => {
        sends++
        return Effect.fail(new Throttled({}))
      }).pipe(
        withRetry(awsStandard.pipe(RetryPolicy.deadline("30 seconds"))),
        Effect.provide(RetryObserver.layer({ onStop: ({ reason }) => void stops.push(reason) }))
      )
      const behind = (service: ConcurrencyLimiter.Service) =>
        Effect.flip(Effect.provideService(program, ConcurrencyLimiter.ConcurrencyLimiter, service))
      const fiber = yield* Effect.forkChild(behind(limiter), { startImmediately: true })
      const scope = yield* Scope.make()
      yield* Scope.provide(limiter.slot, scope)
      yield* TestClock.adjust("30 seconds")
      assert.instanceOf(yield* Fiber.join(fiber), Throttled)
      assert.deepStrictEqual([sends, stops], [1, ["deadline"]])
      assert.strictEqual(yield* RetryQuota.balance, 500)
      yield* Scope.close(scope, Exit.void)

      const fast = yield* ConcurrencyLimiter.make({ rule: ConcurrencyLimiter.fixed(1), onExceeded: "fail" })
      yield* Effect.scoped(Effect.gen(function*() {
        yield* fast.slot
        const error = yield* behind(fast)
        assert.instanceOf(error, ConcurrencyLimiter.ConcurrencyLimitExceeded)
        assert.deepStrictEqual(RetryInfo.fromError(error), RetryInfo.fromError(new Terminal()))
      }))
      assert.strictEqual(sends, 1)
      assert.strictEqual(yield* RetryQuota.balance, 500)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("a slot is held until its scope is closed, and sees how", () =>
    Effect.gen(function*() {
      const slotted = (exit: Exit.Exit<unknown, unknown>) =>
        Effect.gen(function*() {
          const scope = yield* Scope.make()
          yield* Scope.provide(ConcurrencyLimiter.slot, scope)
          assert.strictEqual((yield* ConcurrencyLimiter.state).inFlight, 1)
          yield* Scope.close(scope, exit)
          return yield* ConcurrencyLimiter.state
        })
      assert.deepStrictEqual(yield* slotted(Exit.void), { limit: 2.25, inFlight: 0, waiting: 0 })
      assert.deepStrictEqual(yield* slotted(Exit.fail(new Transient())), { limit: 2.25, inFlight: 0, waiting: 0 })
      assert.deepStrictEqual(yield* slotted(Exit.die("defect")), { limit: 2.25, inFlight: 0, waiting: 0 })
      assert.deepStrictEqual(yield* slotted(Exit.fail(new TimedOut())), { limit: 1, inFlight: 0, waiting: 0 })
      const lines = Stream.unwrap(
        Effect.as(
          ConcurrencyLimiter.slot,
          Stream.fromEffect(Effect.map(ConcurrencyLimiter.state, (now) => now.inFlight))
        )
      )
      assert.deepStrictEqual(Array.from(yield* Stream.runCollect(lines)), [1])
      assert.strictEqual((yield* ConcurrencyLimiter.state).inFlight, 0)
    }).pipe(Effect.provide(ConcurrencyLimiter.layer({ rule: ConcurrencyLimiter.adaptive({ initial: 2 }) }))))

  for (const [what, options] of [["in line", {}], ["last in, first out", { order: "lifo" }]] as const) {
    it.effect(`${what}: whatever interrupts them, calls and slots leave nothing in flight and nothing waiting`, () =>
      Effect.gen(function*() {
        let limiter = yield* ConcurrencyLimiter.make({ rule: ConcurrencyLimiter.fixed(1), ...options })
        const call = Effect.andThen(Effect.sleep(20), Effect.fail(new TimedOut())).pipe(withRetry(once), Effect.exit)
        const slotted = Effect.exit(Effect.scoped(Effect.andThen(ConcurrencyLimiter.slot, Effect.sleep(30))))
        const program = Effect.suspend(() =>
          Effect.all([call, slotted, call, slotted], { concurrency: 4 }).pipe(
            Effect.provideService(ConcurrencyLimiter.ConcurrencyLimiter, limiter)
          )
        )
        const steps = yield* sweep(program, () =>
          Effect.gen(function*() {
            assert.deepStrictEqual(yield* limiter.state, { limit: 1, inFlight: 0, waiting: 0 })
            limiter = yield* ConcurrencyLimiter.make({ rule: ConcurrencyLimiter.fixed(1), ...options })
          })).pipe(thinned(5))
        assert.isAtLeast(steps, 40)
      }))
  }

  for (
    const [name, driver] of Object.entries({
      withRetry: <E>(send: Effect.Effect<void, E>) => withRetry(send, once),
      "Effect.retry": <E>(send: Effect.Effect<void, E>) => Effect.retry(send, once)
    })
  ) {
    it.effect(`the wait for another gate is no part of a send's time: ${name}`, () =>
      Effect.gen(function*() {
        yield* CoolDown.close("1 second")
        const call = yield* Effect.forkChild(driver(Effect.sleep(50)), { startImmediately: true })
        yield* TestClock.adjust(2000)
        assert.isTrue(Exit.isSuccess(call.pollUnsafe()!))
        assert.strictEqual((yield* ConcurrencyLimiter.state).limit, 20)
      }).pipe(Effect.provide([
        CoolDown.layer(),
        ConcurrencyLimiter.layer({ rule: ConcurrencyLimiter.adaptive({ slowerThan: "400 millis" }) })
      ])))
  }

  it.effect("takes a custom rule", () =>
    Effect.gen(function*() {
      const seen: Array<ConcurrencyLimiter.Sample> = []
      const rule: ConcurrencyLimiter.Rule<number> = {
        initial: 1,
        limit: (limit) => limit,
        next: (limit, sample) => {
          seen.push(sample)
          return limit + 1
        }
      }
      const { call, limiter } = yield* subject({ rule })
      yield* call("a", 30)
      yield* TestClock.adjust(30)
      assert.deepStrictEqual(seen, [{ outcome: "success", inFlight: 1, overtaken: false, rttMillis: 30 }])
      assert.strictEqual((yield* limiter.state).limit, 2)
    }))

  it.effect("reads no clock while the limit is high, and none for a send that passes", () =>
    Effect.gen(function*() {
      const clock = yield* countedClock
      const limiter = yield* ConcurrencyLimiter.make()
      yield* Effect.void.pipe(
        withRetry(once),
        Effect.provideService(ConcurrencyLimiter.ConcurrencyLimiter, limiter),
        clock.provide
      )
      assert.strictEqual(clock.readings, 0)
    }))

  it.effect("takes its options from configuration", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* ConcurrencyLimiter.state).limit, 20)
    }).pipe(
      Effect.provide(Layer.provide(
        ConcurrencyLimiter.layerConfig({ maxWaiters: Config.Int("WAITERS") }),
        ConfigProvider.layer(ConfigProvider.fromUnknown({ WAITERS: 5 }))
      ))
    ))
})

const gateOf = (options: ConcurrencyLimiter.Options) => Effect.map(ConcurrencyLimiter.make(options), ({ gate }) => gate)

const gates = {
  "a fixed limit": [gateOf({ rule: ConcurrencyLimiter.fixed(5), maxWait: "1 hour" }), {}],
  "a fixed limit that fails fast": [gateOf({ rule: ConcurrencyLimiter.fixed(5), onExceeded: "fail" }), {
    onExceeded: "refuses"
  }],
  "a fixed limit without a line": [gateOf({ rule: ConcurrencyLimiter.fixed(1), maxWaiters: 0 }), {
    onExceeded: "refuses"
  }],
  "an adaptive limit": [gateOf({ rule: ConcurrencyLimiter.adaptive({ initial: 1 }), maxWait: "1 hour" }), {}]
} satisfies Record<string, readonly [Effect.Effect<any>, SendGateSuite.Options]>

describe.each(Object.entries(gates))("the contract of a gate: %s", (_, [make, options]) => {
  for (const law of SendGateSuite.laws(make, options)) it.effect(law.name, () => thinned(5)(law.run))
})

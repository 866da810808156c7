import { assert, describe, it } from "@effect/vitest"
import {
  awsStandard,
  Backoff,
  Hedge,
  RetryMetrics,
  RetryObserver,
  RetryPolicy,
  RetryQuota,
  type RetryQuotaStore,
  SendGate,
  withRetry
} from "effect-retry"
import * as AdaptiveRateLimiter from "effect-retry/AdaptiveRateLimiter"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import * as RetryBudget from "effect-retry/RetryBudget"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { countedClock } from "../reliability/utils/clocks.ts"
import { invalidOptionOf, Terminal, Throttled, TimedOut, Transient } from "../utils/call.ts"

/** A budget that never runs out, for tests of other things. */
const unlimited: RetryQuotaStore.RetryQuotaStore = {
  capacity: Infinity,
  successIncrement: 0,
  firstAttemptCost: 0,
  onExceeded: "stop",
  reserve: (cost) => ({ cost, giveBack: () => true, spend: () => true }),
  deposit: () => {},
  balance: () => Infinity
}

/** A budget that never pays. */
const empty: RetryQuotaStore.RetryQuotaStore = { ...unlimited, reserve: () => undefined }

const paid = Hedge.layer({ budget: unlimited })

/** One send: how long it takes, and what it fails with, if it fails. */
type Turn = readonly [millis: number, error?: unknown]

/** A call whose sends follow the turns in order; the last turn repeats. */
const serving = (turns: ReadonlyArray<Turn>) => {
  const told = { at: [] as Array<number>, interrupted: [] as Array<number>, open: 0 }
  const send: Effect.Effect<number, any> = Effect.gen(function*() {
    const index = told.at.length
    told.at.push(yield* Clock.currentTimeMillis)
    const [millis, error] = turns[Math.min(index, turns.length - 1)]!
    told.open++
    yield* Effect.sleep(millis).pipe(
      Effect.onInterrupt(() => Effect.sync(() => told.interrupted.push(index))),
      Effect.ensuring(Effect.sync(() => told.open--))
    )
    return error === undefined ? index : yield* Effect.fail(error)
  })
  return { told, send }
}

/** Runs an effect while time passes; how it ends, and when, in milliseconds. */
const timed = <A, E, R>(self: Effect.Effect<A, E, R>, time: Duration.Input = "1 minute") =>
  Effect.gen(function*() {
    const start = yield* Clock.currentTimeMillis
    let end = Number.NaN
    const fiber = yield* Effect.forkChild(
      Effect.onExit(self, () => Effect.map(Clock.currentTimeMillis, (now) => void (end = now - start))),
      { startImmediately: true }
    )
    const steps = Math.min(2000, Duration.toMillis(time))
    for (let step = 0; step < steps && fiber.pollUnsafe() === undefined; step++) {
      yield* TestClock.adjust(Duration.toMillis(time) / steps)
    }
    const exit = fiber.pollUnsafe()
    yield* Fiber.interrupt(fiber)
    return { exit, end, value: exit !== undefined && Exit.isSuccess(exit) ? exit.value : undefined }
  })

const errorOf = (exit: Exit.Exit<unknown, unknown> | undefined): unknown =>
  exit !== undefined && Exit.isFailure(exit) ? exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error : exit

describe("who wins", () => {
  const first = new Transient()
  const second = new TimedOut()
  const final = new Terminal()
  interface Row {
    readonly name: string
    readonly turns: ReadonlyArray<Turn>
    readonly options?: Hedge.CallOptions
    readonly at: ReadonlyArray<number>
    readonly end: number
    readonly value?: number
    readonly error?: unknown
    readonly interrupted?: ReadonlyArray<number>
  }
  const after = { after: 20 } as const
  const rows: ReadonlyArray<Row> = [
    { name: "a fast call is sent once", turns: [[19]], at: [0], end: 19, value: 0 },
    {
      name: "a slow one is sent again, and the hedge wins",
      turns: [[100], [10]],
      at: [0, 20],
      end: 30,
      value: 1,
      interrupted: [0]
    },
    {
      name: "the first send wins if it is faster after all",
      turns: [[25], [10]],
      at: [0, 20],
      end: 25,
      value: 0,
      interrupted: [1]
    },
    {
      name: "the third wins",
      turns: [[100], [100], [5]],
      options: { after: 20, atMost: 2 },
      at: [0, 20, 40],
      end: 45,
      value: 2,
      interrupted: [0, 1]
    },
    { name: "no more are made than asked for", turns: [[100]], at: [0, 20], end: 100, value: 0, interrupted: [1] },
    { name: "none with atMost 0", turns: [[100]], options: { after: 20, atMost: 0 }, at: [0], end: 100, value: 0 },
    {
      name: "after 0, all are made immediately",
      turns: [[30], [20], [10]],
      options: { after: 0, atMost: 2 },
      at: [0, 0, 0],
      end: 10,
      value: 2,
      interrupted: [0, 1]
    },
    {
      name: "a retryable failure has the next sent immediately",
      turns: [[5, first], [10]],
      at: [0, 5],
      end: 15,
      value: 1
    },
    {
      name: "a final failure ends all",
      turns: [[100], [10, final]],
      at: [0, 20],
      end: 30,
      error: final,
      interrupted: [0]
    },
    { name: "a final failure of the first send ends all", turns: [[5, final]], at: [0], end: 5, error: final },
    {
      name: "when all fail, it fails as the first send did",
      turns: [[50, first], [10, second]],
      at: [0, 20],
      end: 50,
      error: first
    },
    {
      name: "a hedge that fails leaves the first send alone",
      turns: [[50], [10, second]],
      at: [0, 20],
      end: 50,
      value: 0
    },
    {
      name: "and has the next made immediately, and the one after it in time",
      turns: [[100], [10, second], [100], [1]],
      options: { after: 20, atMost: 3 },
      at: [0, 20, 30, 50],
      end: 51,
      value: 3,
      interrupted: [0, 2]
    },
    {
      name: "after infinity, the next is made when one has failed",
      turns: [[50, first], [50, second], [50]],
      options: { after: Duration.infinity, atMost: 2 },
      at: [0, 50, 100],
      end: 150,
      value: 2
    },
    {
      name: "a server that asks for time gets it while another send is in flight",
      turns: [[100], [10, new Throttled({ retryAfter: 40 })], [1]],
      options: { after: 20, atMost: 2 },
      at: [0, 20, 70],
      end: 71,
      value: 2,
      interrupted: [0]
    },
    {
      name: "with none in flight the call fails, and a caller that retries it waits",
      turns: [[10, new Throttled({ retryAfter: 40 })], [1]],
      at: [0],
      end: 10,
      error: "Throttled"
    },
    {
      name: "a server that asks for more than a minute ends the hedges",
      turns: [[100], [10, new Throttled({ retryAfter: 60_001 })]],
      options: { after: 20, atMost: 2 },
      at: [0, 20],
      end: 100,
      value: 0
    },
    {
      name: "an error that nobody knows is final",
      turns: [[100], [1, "what?"]],
      at: [0, 20],
      end: 21,
      error: "what?",
      interrupted: [0]
    },
    {
      name: "isRetryable decides",
      turns: [[5, "what?"], [1]],
      options: { isRetryable: (error) => error === "what?" },
      at: [0, 5],
      end: 6,
      value: 1
    }
  ]
  for (const { at, end, error, interrupted = [], name, options, turns, value } of rows) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const { send, told } = serving(turns)
        const played = yield* timed(send.pipe(Hedge.hedged({ ...after, ...options })), "200 millis")
        assert.deepStrictEqual(told.at, at)
        assert.strictEqual(played.end, end)
        if (error === undefined) assert.strictEqual(played.value, value)
        else if (error === "Throttled") assert.instanceOf(errorOf(played.exit), Throttled)
        else assert.strictEqual(errorOf(played.exit), error)
        assert.deepStrictEqual(told.interrupted, interrupted)
        assert.strictEqual(told.open, 0)
      }).pipe(Effect.provide(paid)))
  }
})

describe("losing sends", () => {
  it.effect("are not waited for: one that needs 500 ms to abort adds less than 1 ms", () =>
    Effect.gen(function*() {
      let aborted = Number.NaN
      let sends = 0
      const call = Effect.suspend(() => {
        const index = sends++
        return Effect.delay(Effect.succeed(index), index === 0 ? 1000 : 20).pipe(
          Effect.onInterrupt(() =>
            Effect.andThen(
              Effect.sleep(500),
              Effect.map(Clock.currentTimeMillis, (now) => void (aborted = now))
            )
          )
        )
      })
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(paid, scope)
      const hedged = call.pipe(Hedge.hedged({ after: 10 }), Effect.provide(context))
      assert.deepInclude(yield* timed(hedged, "100 millis"), { value: 1, end: 30 })
      sends = 0
      const race = yield* Effect.forkChild(Effect.race(call, Effect.delay(call, 10)), { startImmediately: true })
      yield* TestClock.adjust(529)
      assert.isUndefined(race.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(race.pollUnsafe(), Exit.succeed(1))
      aborted = Number.NaN
      sends = 0
      assert.strictEqual((yield* timed(hedged, "30 millis")).value, 1)
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
      assert.isUndefined(closing.pollUnsafe())
      yield* TestClock.adjust(500)
      assert.isDefined(closing.pollUnsafe())
      assert.isNotNaN(aborted)
    }))
})

/** A gate that records which passes are open, and how each one ended. */
const accounting = () => {
  const account = {
    open: 0,
    entered: 0,
    ends: [] as Array<string>,
    attempts: [] as Array<number>,
    refuses: false,
    isStrained: false
  }
  const gate: SendGate.SendGate<GateClosed> = {
    order: 1,
    isStrained: () => account.isStrained,
    enter: (send): void | Effect.Effect<void, GateClosed> => {
      if (account.refuses) return Effect.fail(new GateClosed())
      account.open++
      account.entered++
      account.attempts.push(send.attempt)
      send.hold({
        settle: ({ _tag }) => {
          account.open--
          account.ends.push(_tag)
        },
        cancel: () => {
          account.open--
          account.ends.push("canceled")
        }
      })
    }
  }
  return { account, gate }
}

class GateClosed extends Data.TaggedError("GateClosed")<{}> {
  readonly [SendGate.Refused] = true
}

class Gate extends SendGate.Service<Gate, GateClosed>()("test/Hedge/Gate") {}

const around = {
  "alone": <E>(call: Effect.Effect<number, E, Hedge.Hedge>) => call,
  "under withRetry": <E>(call: Effect.Effect<number, E, Hedge.Hedge>) => withRetry(call, awsStandard),
  "under Effect.retry": <E>(call: Effect.Effect<number, E, Hedge.Hedge>) => Effect.retry(call, awsStandard),
  "under withRetry and a deadline": <E>(call: Effect.Effect<number, E, Hedge.Hedge>) =>
    withRetry(call, awsStandard.pipe(RetryPolicy.deadline("1 minute"))),
  "under RetryStrategy.run": <E>(call: Effect.Effect<number, E, Hedge.Hedge>) =>
    RetryStrategy.run(call).pipe(
      Effect.provideServiceEffect(RetryStrategy.RetryStrategy, RetryStrategy.make(awsStandard))
    ),
  "under withRetry, in a timeout": <E>(call: Effect.Effect<number, E, Hedge.Hedge>) =>
    withRetry(Effect.timeout(call, "10 seconds"), awsStandard)
}

describe("every send asks the gates, and reports to them how it ends, once", () => {
  for (const [name, driver] of Object.entries(around)) {
    const played = (turns: ReadonlyArray<Turn>, options: Hedge.CallOptions = {}) =>
      Effect.gen(function*() {
        const { account, gate } = accounting()
        const { send, told } = serving(turns)
        const attempts: Array<boolean> = []
        const observer: RetryObserver.RetryObserver = { onAttempt: (succeeded) => void attempts.push(succeeded) }
        const result = yield* timed(
          driver(send.pipe(Hedge.hedged({ after: 20, ...options }))).pipe(
            Effect.provideService(Gate, gate),
            Effect.provideService(RetryObserver.CurrentObserver, observer),
            Effect.provide(RetryQuota.layer())
          ) as Effect.Effect<number, unknown, Hedge.Hedge>
        )
        assert.strictEqual(account.open, 0)
        return { ...result, attempts, account, sends: told.at.length }
      }).pipe(Effect.provide(paid))

    it.effect(`${name}: the loser has no outcome, the winner a success`, () =>
      Effect.gen(function*() {
        const { account, attempts, sends, value } = yield* played([[100], [10]])
        assert.deepStrictEqual([value, sends, account.entered], [1, 2, 2])
        assert.deepStrictEqual(account.ends, ["Success", "Unknown"])
        assert.deepStrictEqual(attempts, [true])
      }))

    it.effect(`${name}: a failure next to a success is a failure`, () =>
      Effect.gen(function*() {
        const { account, attempts, sends } = yield* played([[5, new Transient()], [10]])
        assert.deepStrictEqual([sends, account.entered], [2, 2])
        assert.deepStrictEqual(account.ends, ["Failure", "Success"])
        assert.deepStrictEqual(attempts, [false, true])
      }))

    it.effect(`${name}: all that fail are failures, and each is reported once`, () =>
      Effect.gen(function*() {
        const { account, attempts, sends } = yield* played([[50, new Transient()], [10, new Terminal()]])
        assert.deepStrictEqual([sends, account.entered], [2, 2])
        assert.deepStrictEqual(account.ends, ["Failure", "Unknown"])
        assert.deepStrictEqual(attempts, [false])
      }))
  }

  it.effect("all have failed: the retry after it is an ordinary one, and its tokens come back with its success", () =>
    Effect.gen(function*() {
      const { account, gate } = accounting()
      const { send } = serving([[5, new Transient()], [5, new Transient()], [30], [1]])
      const { value } = yield* timed(
        send.pipe(
          Hedge.hedged({ after: 20 }),
          withRetry(awsStandard),
          Effect.provideService(Gate, gate)
        ) as Effect.Effect<
          number,
          unknown,
          any
        >
      )
      assert.strictEqual(value, 3)
      assert.deepStrictEqual(account.ends, ["Failure", "Failure", "Success", "Unknown"])
      assert.strictEqual(yield* RetryQuota.balance, 500)
    }).pipe(Effect.provide([RetryQuota.layer(), paid])))

  it.effect("a quota of retries neither pays for hedges nor earns by them: one success for each call", () =>
    Effect.gen(function*() {
      const { send } = serving([[100], [10]])
      yield* timed(
        send.pipe(Hedge.hedged({ after: 20 }), withRetry(awsStandard)) as Effect.Effect<unknown, unknown, any>
      )
      assert.strictEqual(yield* RetryQuota.balance, 101)
    }).pipe(Effect.provide([RetryQuota.layer({ initial: 100 }), paid])))
})

describe("a hedge that is refused leaves those in flight alone", () => {
  const refusals: Readonly<Record<string, Parameters<typeof hedges>[0]>> = {
    budget: { budget: empty },
    gate: { refuses: true },
    strained: { isStrained: true }
  }
  const hedges = ({ budget = unlimited, isStrained = false, refuses = false }: {
    readonly budget?: RetryQuotaStore.RetryQuotaStore
    readonly refuses?: boolean
    readonly isStrained?: boolean
  }) =>
    Effect.gen(function*() {
      const { account, gate } = accounting()
      const events: Array<string> = []
      const observer: RetryObserver.RetryObserver = {
        onHedge: ({ event, hedge, reason = "" }) => void events.push(`${hedge} ${event} ${reason}`.trim())
      }
      const { send, told } = serving([[100]])
      const call = send.pipe(
        Hedge.hedged({ after: 20, atMost: 3 }),
        Effect.tap(Effect.void),
        withRetry(awsStandard),
        Effect.provideService(Gate, gate),
        Effect.provide(RetryObserver.layerOnly(observer)),
        Effect.provide([RetryQuota.layer(), Hedge.layer({ budget })])
      )
      const fiber = yield* Effect.forkChild(call, { startImmediately: true })
      Object.assign(account, { isStrained, refuses })
      yield* TestClock.adjust(200)
      assert.strictEqual(account.open, 0)
      return { exit: fiber.pollUnsafe(), sends: told.at, events }
    })
  for (const [reason, options] of Object.entries(refusals)) {
    it.effect(`by ${reason}`, () =>
      Effect.gen(function*() {
        const { events, exit, sends } = yield* hedges(options)
        assert.deepStrictEqual(exit, Exit.succeed(0))
        assert.deepStrictEqual(sends, [0])
        assert.deepStrictEqual(events, [`1 refused ${reason}`])
      }))
  }

  it.effect("and the failure of the last of them is then that of the call", () =>
    Effect.gen(function*() {
      const error = new Transient()
      const { send } = serving([[50, error]])
      const { end, exit } = yield* timed(send.pipe(Hedge.hedged({ after: 20 })))
      assert.deepStrictEqual([errorOf(exit), end], [error, 50])
    }).pipe(Effect.provide(Hedge.layer({ budget: empty }))))

  for (
    const [name, retry] of [
      ["withRetry", (call) => withRetry(call, awsStandard.pipe(RetryPolicy.deadline("20 millis")))],
      ["attempt", (call) => Effect.retry(call, awsStandard.pipe(RetryPolicy.deadline("20 millis")))]
    ] satisfies ReadonlyArray<
      [string, (call: Effect.Effect<number, Transient, Hedge.Hedge>) => Effect.Effect<number, unknown, any>]
    >
  ) {
    it.effect(`none is made after the deadline of the policy around it: ${name}`, () =>
      Effect.gen(function*() {
        const { send, told } = serving([[100]])
        yield* timed(retry(send.pipe(Hedge.hedged({ after: 20 }))))
        assert.deepStrictEqual(told.at, [0])
      }).pipe(Effect.provide([RetryQuota.layer(), paid])))
  }
})

const once = <E>(call: Effect.Effect<number, E, Hedge.Hedge>) =>
  withRetry(call, awsStandard.pipe(RetryPolicy.maxAttempts(1)))

describe("a send that waits for a gate", () => {
  const waitsOnce = (millis: number, attempt = 1): SendGate.SendGate => ({
    order: 1,
    enter: (send) => {
      const pass = () => send.hold({ settle: () => {}, cancel: () => {} })
      return send.attempt === attempt ? Effect.andThen(Effect.sleep(millis), Effect.sync(pass)) : pass()
    }
  })

  it.effect("is not late: the hedge counts from when it leaves", () =>
    Effect.gen(function*() {
      const { send, told } = serving([[100], [10]])
      const call = send.pipe(Hedge.hedged({ after: 50 }), Effect.provideService(Gate, waitsOnce(30)))
      assert.deepInclude(yield* timed(call, "1 second"), { value: 1, end: 90 })
      assert.deepStrictEqual(told.at, [30, 80])
    }).pipe(Effect.provide(paid)))

  it.effect("and is a hedge: the next counts from when it leaves, whatever failed before", () =>
    Effect.gen(function*() {
      const at: Array<number> = []
      const send = Effect.flatMap(
        Clock.currentTimeMillis,
        (now) => at.push(now) === 2 ? Effect.fail(new Transient()) : Effect.sleep(200)
      )
      const call = send.pipe(
        Hedge.hedged({ after: 20, atMost: 3 }),
        Effect.provideService(Gate, waitsOnce(30, 3))
      )
      yield* timed(call, "1 second")
      assert.deepStrictEqual(at, [0, 20, 50, 70])
    }).pipe(Effect.provide(paid)))

  it.effect("and is a hedge: the next still comes when a server has asked for it", () =>
    Effect.gen(function*() {
      const { send, told } = serving([[25, new Throttled({ retryAfter: 200 })], [500]])
      const call = send.pipe(
        Hedge.hedged({ after: 20, atMost: 2 }),
        Effect.provideService(Gate, waitsOnce(30, 2))
      )
      yield* timed(call, "2 seconds")
      assert.deepStrictEqual(told.at, [0, 50, 225])
    }).pipe(Effect.provide(paid)))

  it.effect("has its hedges made immediately if all are", () =>
    Effect.gen(function*() {
      const { send, told } = serving([[100]])
      const call = send.pipe(Hedge.hedged({ after: 0, atMost: 2 }), Effect.provideService(Gate, waitsOnce(30)))
      assert.deepInclude(yield* timed(call, "1 second"), { end: 100 })
      assert.deepStrictEqual(told.at, [0, 0, 30])
    }).pipe(Effect.provide(paid)))
})

describe("gates that are strained", () => {
  it.effect("a limit that was cut makes no hedge for 10 seconds", () =>
    Effect.gen(function*() {
      const limiter = yield* ConcurrencyLimiter.make()
      const asked = Effect.map(TestClock.adjust(0), () => limiter.gate.isStrained?.(nowMillis))
      let nowMillis = 0
      assert.isFalse(yield* asked)
      yield* Effect.exit(
        withRetry(Effect.fail(new TimedOut()), Backoff.fixed(1).pipe(RetryPolicy.maxAttempts(1))).pipe(
          Effect.provideService(ConcurrencyLimiter.ConcurrencyLimiter, limiter)
        )
      )
      assert.isTrue(yield* asked)
      nowMillis = 9999
      assert.isTrue(yield* asked)
      nowMillis = 10_000
      assert.isFalse(yield* asked)
    }))

  it.effect("nor does one that is reached", () =>
    Effect.gen(function*() {
      const { send, told } = serving([[100]])
      const { value } = yield* timed(send.pipe(Hedge.hedged({ after: 20 })))
      assert.deepStrictEqual([value, told.at], [0, [0]])
    }).pipe(Effect.provide([paid, ConcurrencyLimiter.layer({ rule: ConcurrencyLimiter.fixed(1) })])))

  it.effect("nor a resource that is cooling down", () =>
    Effect.gen(function*() {
      const { send, told } = serving([[100]])
      const fiber = yield* Effect.forkChild(send.pipe(Hedge.hedged({ after: 20 })), { startImmediately: true })
      yield* CoolDown.close(10)
      yield* TestClock.adjust(200)
      assert.deepStrictEqual([fiber.pollUnsafe(), told.at], [Exit.succeed(0), [0]])
    }).pipe(Effect.provide([paid, CoolDown.layer()])))
})

describe("an adaptive rate limiter is strained", () => {
  const throttled = Effect.gen(function*() {
    const limiter = yield* AdaptiveRateLimiter.make()
    const isStrained = (nowMillis: number) => limiter.gate!.isStrained!(nowMillis)
    yield* TestClock.adjust(1000)
    assert.isFalse(isStrained(1000))
    for (let send = 0; send < 50; send++) {
      yield* limiter.acquire
      yield* limiter.update(false)
      yield* TestClock.adjust(20)
    }
    assert.isFalse(isStrained(2000))
    yield* limiter.update(true)
    return { limiter, isStrained }
  })

  it.effect("for 10 seconds after a throttle", () =>
    Effect.gen(function*() {
      const { isStrained } = yield* throttled
      assert.isTrue(isStrained(2000))
      assert.isTrue(isStrained(11_999))
      assert.isFalse(isStrained(12_000))
    }))

  it.effect("and while it has no token for another send", () =>
    Effect.gen(function*() {
      const { isStrained, limiter } = yield* throttled
      yield* TestClock.adjust("20 seconds")
      assert.isFalse(isStrained(22_000))
      for (let { capacity } = yield* limiter.state; capacity >= 1; capacity--) yield* limiter.acquire
      assert.isTrue(isStrained(22_000))
    }))
})

describe("what is left over", () => {
  it.effect("no timer, even if sends fail in their first step", () =>
    Effect.gen(function*() {
      const clock = yield* countedClock
      let sends = 0
      const send = Effect.suspend(() =>
        ++sends < 3 ? Effect.fail(new Transient()) : Effect.delay(Effect.succeed(sends), 5)
      )
      const call = send.pipe(Hedge.hedged({ after: "1 minute", atMost: 5 }))
      assert.deepInclude(yield* timed(clock.provide(call), "1 second"), { value: 3, end: 5 })
      assert.strictEqual(clock.asleep, 0)
    }).pipe(Effect.provide(paid)))

  it.effect("no timer, whichever wins and whatever fails", () =>
    Effect.gen(function*() {
      const clock = yield* countedClock
      const turns: ReadonlyArray<ReadonlyArray<Turn>> = [[[5]], [[100], [1]], [[5, new Transient()], [30]], [[
        5,
        new Terminal()
      ]]]
      for (const each of turns) {
        const { end } = yield* timed(clock.provide(serving(each).send.pipe(Hedge.hedged({ after: 20, atMost: 3 }))))
        assert.isNotNaN(end)
        assert.strictEqual(clock.asleep, 0)
      }
    }).pipe(Effect.provide(paid)))
})

describe("never inside itself", () => {
  it.effect("the inner of two is not hedged", () =>
    Effect.gen(function*() {
      const { send, told } = serving([[100], [100], [10]])
      yield* timed(send.pipe(Hedge.hedged({ after: 20, atMost: 3 }), Hedge.hedged({ after: 5 })))
      assert.deepStrictEqual(told.at, [0, 5])
    }).pipe(Effect.provide(paid)))

  it.effect("a send says which it is", () =>
    Effect.gen(function*() {
      const seen: Array<number | undefined> = []
      const call = Effect.delay(Effect.map(Hedge.CurrentSend, (send) => void seen.push(send)), 0)
      yield* timed(Effect.andThen(call, Effect.sleep(50)).pipe(Hedge.hedged({ after: 20, atMost: 2 })))
      yield* timed(call)
      assert.deepStrictEqual(seen, [0, 1, 2, undefined])
    }).pipe(Effect.provide(paid)))
})

describe("a budget that sees which sends are made", () => {
  const rows: ReadonlyArray<
    [name: string, budget: Effect.Effect<RetryQuotaStore.RetryQuotaStore>, turn: Turn, hedges: ReadonlyArray<number>]
  > = [
    ["in flight: at most two hedges at a time", RetryBudget.inFlight({ share: 0, atLeast: 2 }), [100], [2, 2]],
    ["a share: half of the calls", RetryBudget.share({ share: 0.5, minPerSecond: 0 }), [100], [10, 10]],
    [
      "gRPC's throttle: until half of its tokens are gone",
      RetryBudget.grpc({ maxTokens: 40 }),
      [30, new Transient()],
      [20, 0]
    ]
  ]
  for (const [name, make, turn, hedges] of rows) {
    for (const [around, retry] of Object.entries({ alone: <A>(call: A) => call, "under withRetry": once })) {
      it.effect(`${name}, ${around}`, () =>
        Effect.gen(function*() {
          const budget = yield* make
          const { send, told } = serving([turn])
          const call = retry(send.pipe(Hedge.hedged({ after: 20 }))).pipe(
            Effect.provide([Hedge.layer({ budget }), RetryQuota.layer()])
          ) as Effect.Effect<number>
          const calls = Array.from({ length: 20 }, () => Effect.exit(call))
          const made: Array<number> = []
          for (let round = 0; round < 2; round++) {
            const before = told.at.length
            yield* timed(Effect.all(calls, { concurrency: "unbounded" }), "1 second")
            made.push(told.at.length - before - 20)
          }
          assert.deepStrictEqual(made, hedges)
        }))
    }
  }
})

describe("the share of the traffic", () => {
  const calls = (many: number) =>
    Effect.gen(function*() {
      const { send, told } = serving([[30]])
      const hedged = send.pipe(Hedge.hedged({ after: 10 }))
      for (let call = 0; call < many; call++) yield* timed(hedged, "30 millis")
      return told.at.length - many
    })

  it.effect("starts empty: the fiftieth call is the first that may hedge", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* calls(49), 0)
      assert.strictEqual(yield* calls(1), 1)
      assert.strictEqual(yield* calls(49), 0)
      assert.strictEqual(yield* calls(1), 1)
    }).pipe(Effect.provide(Hedge.layer())))

  // Source of the rows: Finagle's RetryBudgetTest, `depositAndTryEach` 10,000, with shares up to 1, here exact.
  const shares: ReadonlyArray<[share: number, hedges: number]> = [
    [0.1, 1000],
    [0.5, 5000],
    [0.25, 2500],
    [0.75, 7500],
    [0.99, 9900],
    [0.999, 9990],
    [0.9999, 9999],
    [0.01, 100],
    [0.001, 10],
    [0.0001, 1],
    [1, 10_000],
    [0.03, 300],
    [0.6, 6000]
  ]
  for (const [share, hedges] of shares) {
    it.effect(`${share} of 10,000 calls is ${hedges} hedges`, () =>
      Effect.scoped(Effect.gen(function*() {
        const { budget } = yield* Hedge.make({ share, shareWindow: "1 minute" })
        const clock = yield* Clock.Clock
        let taken = 0
        for (let call = 0; call < 10_000; call++) {
          budget.deposit(budget.successIncrement, clock)
          const answer = budget.reserve(1, clock)
          if (typeof answer === "object" && answer.spend()) taken++
        }
        assert.strictEqual(taken, hedges)
      })))
  }

  it.effect("unused shares expire, the oldest are used first, and unsent ones come back", () =>
    Effect.scoped(Effect.gen(function*() {
      const { budget, state } = yield* Hedge.make({ share: 0.5 })
      const clock = yield* Clock.Clock
      const balance = Effect.map(state, ({ balance }) => balance)
      const deposit = (calls: number) => budget.deposit(calls * 0.5, clock)
      deposit(4)
      yield* TestClock.adjust("5 seconds")
      deposit(4)
      assert.strictEqual(yield* balance, 4)
      const held = budget.reserve(1, clock)
      assert.strictEqual(yield* balance, 3)
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(yield* balance, 2)
      assert.isTrue(typeof held === "object" && held.giveBack())
      assert.isFalse(typeof held === "object" && held.giveBack())
      assert.strictEqual(yield* balance, 3)
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(yield* balance, 0)
      assert.isUndefined(budget.reserve(1, clock))
    })))

  it.effect("law: never more hedges than the share of the calls, whatever happens", () =>
    Effect.scoped(Effect.gen(function*() {
      const { budget } = yield* Hedge.make({ share: 0.07 })
      const clock = yield* Clock.Clock
      let state = 7
      const draw = () => (state = state * 48271 % 2147483647) / 2147483647
      let calls = 0
      let hedges = 0
      for (let step = 0; step < 5000; step++) {
        if (draw() < 0.7) {
          calls++
          budget.deposit(budget.successIncrement, clock)
        }
        const answer = draw() < 0.3 ? budget.reserve(1, clock) : undefined
        if (typeof answer === "object" && (draw() < 0.8 ? answer.spend() : !answer.giveBack())) hedges++
        if (draw() < 0.2) yield* TestClock.adjust(Math.floor(draw() * 3000))
        assert.isAtMost(hedges, calls * 0.07 + 1e-6)
        assert.isAtLeast(budget.balance(clock), -1e-6)
      }
      assert.isAbove(hedges, 20)
    })))
})

describe("the quantile", () => {
  const records = (millis: ReadonlyArray<number>, options?: Hedge.Options) =>
    Effect.gen(function*() {
      const hedge = yield* Hedge.make({ budget: unlimited, ...options })
      for (const latency of millis) hedge.home.latencies.record(latency, 0)
      return (q: number) => Effect.map(hedge.latency(q), (latency) => latency!)
    })

  const times = (many: number, millis: number) => Array.from({ length: many }, () => millis)

  // Source: finagle `BackupRequestFilterTest`: the percentile follows maxExtraLoad.
  it.effect("of 90 of 50 ms and 10 of 100 ms: 50 at 0.9, 100 at 0.99", () =>
    Effect.scoped(Effect.gen(function*() {
      const latency = yield* records([...times(90, 50), ...times(10, 100)])
      assert.approximately(yield* latency(0.9), 50, 0.3)
      assert.approximately(yield* latency(0.99), 100, 0.6)
    })))

  // Source: failsafe-go `quantile_test.go`: its convergence for 10,000 uniform samples to 1,000, and a constant.
  it.effect("of 10,000 uniform samples is within failsafe-go's tolerances", () =>
    Effect.scoped(Effect.gen(function*() {
      let x = 12_345
      const uniform = Array.from({ length: 10_000 }, () => {
        x = Number((1_103_515_245n * BigInt(x) + 12_345n) % 2n ** 31n)
        return x / 2 ** 31 * 1000
      })
      const latency = yield* records(uniform)
      assert.approximately(yield* latency(0.5), 500, 50 / 4)
      assert.approximately(yield* latency(0.95), 950, 100 / 8)
      assert.approximately(yield* latency(0.99), 990, 250 / 20)
      const constant = yield* records(times(100, 42))
      assert.approximately(yield* constant(0.5), 42, 0.25)
    })))

  it.effect("forgets what is older than the window", () =>
    Effect.scoped(Effect.gen(function*() {
      const hedge = yield* Hedge.make({ budget: unlimited })
      const record = (millis: number) =>
        Effect.map(Clock.currentTimeMillis, (now) => hedge.home.latencies.record(millis, now))
      yield* record(10)
      yield* TestClock.adjust("20 seconds")
      yield* record(100)
      assert.approximately((yield* hedge.latency(0.5))!, 10, 0.1)
      assert.strictEqual((yield* hedge.state).latencies, 2)
      yield* TestClock.adjust("10 seconds")
      assert.approximately((yield* hedge.latency(0.5))!, 100, 1)
      yield* TestClock.adjust("10 minutes")
      assert.isUndefined(yield* hedge.latency(0.5))
      assert.strictEqual((yield* invalidOptionOf(hedge.latency(1))).field, "quantile")
      assert.strictEqual((yield* hedge.state).latencies, 0)
    })))

  const after = (turns: ReadonlyArray<Turn>, quantile: Hedge.Quantile) =>
    Effect.gen(function*() {
      const { send, told } = serving(turns)
      const hedged = send.pipe(Hedge.hedged({ after: quantile }))
      for (let call = 0; call < turns.length; call++) yield* timed(hedged, `${turns[call]![0] + 1} millis`)
      return told.at.length - turns.length
    })

  const turns = (many: number, millis: number): ReadonlyArray<Turn> => times(many, millis).map((each) => [each])

  // Source: failsafe-go `hedgepolicy_test.go`: quantile 0.95, threshold 20.
  it.effect("makes no hedge while it warms up: 20 calls, none", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* after([...turns(19, 5), [200]], Hedge.quantile(0.95)), 0)
    }).pipe(Effect.provide(paid)))

  it.effect("25 calls of 5 ms, then one of 200 ms: one hedge", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* after([...turns(25, 5), [200]], Hedge.quantile(0.95)), 1)
    }).pipe(Effect.provide(paid)))

  it.effect("waits for the first delay until it is warm, and never less than the floor", () =>
    Effect.gen(function*() {
      const cold = Hedge.quantile(0.95, { first: 50 })
      assert.strictEqual(yield* after([[49]], cold), 0)
      assert.strictEqual(yield* after([[60]], cold), 1)
      const floored = Hedge.quantile(0.5, { warmUp: 1, atLeast: 300 })
      assert.strictEqual(yield* after([[200]], floored), 0)
    }).pipe(Effect.provide(paid)))

  it.effect("a failure is no latency, a timeout is one, and so is a send that was given up after its delay", () =>
    Effect.scoped(Effect.gen(function*() {
      const hedge = yield* Hedge.make({ budget: unlimited })
      const known = Effect.map(hedge.state, ({ latencies }) => latencies)
      const play = (turns: ReadonlyArray<Turn>, after = 20) =>
        Effect.provideService(timed(serving(turns).send.pipe(Hedge.hedged({ after }))), Hedge.Hedge, hedge)
      yield* play([[5, new Terminal()]])
      assert.strictEqual(yield* known, 0)
      yield* play([[5, new TimedOut()], [5, new Terminal()]])
      assert.strictEqual(yield* known, 1)
      yield* play([[100], [5]])
      assert.strictEqual(yield* known, 3)
      yield* play([[25], [100]])
      assert.strictEqual(yield* known, 4)
    })))

  it.effect("without a number it is what the share leaves", () =>
    Effect.scoped(Effect.gen(function*() {
      const quantileOf = (options: Hedge.Options) => Effect.map(Hedge.make(options), ({ home }) => home.quantile)
      assert.strictEqual(yield* quantileOf({}), 0.98)
      assert.strictEqual(yield* quantileOf({ share: 0.05 }), 0.95)
      assert.strictEqual(yield* quantileOf({ share: 1 }), 0.5)
    })))
})

describe("who is notified", () => {
  const events = (turns: ReadonlyArray<Turn>) =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const observer: RetryObserver.RetryObserver = {
        onHedge: ({ event, hedge }, error) =>
          void seen.push(`${hedge} ${event}${error === undefined ? "" : " with an error"}`)
      }
      const { send } = serving(turns)
      const call = send.pipe(Hedge.hedged({ after: 20, atMost: 2 }), Effect.provide(RetryObserver.layer(observer)))
      yield* timed(call, "200 millis")
      return seen
    }).pipe(Effect.provide(paid))

  it.effect("of hedges that are sent, and of what becomes of each", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* events([[10]]), [])
      assert.deepStrictEqual(yield* events([[100], [100], [10]]), ["1 sent", "2 sent", "1 lost", "2 won"])
      assert.deepStrictEqual(yield* events([[50], [10, new Transient()], [100]]), [
        "1 sent",
        "2 sent",
        "1 lost with an error",
        "2 lost"
      ])
    }))

  it.effect("once, even if a send interrupts itself", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const observer: RetryObserver.RetryObserver = {
        onHedge: ({ event, hedge }) => void seen.push(`${hedge} ${event}`)
      }
      const send = Effect.andThen(Effect.sleep(30), Effect.interrupt).pipe(
        Hedge.hedged({ after: 20 }),
        Effect.provide(RetryObserver.layer(observer))
      )
      const { exit } = yield* timed(send, "200 millis")
      assert.isTrue(exit !== undefined && Exit.hasInterrupts(exit))
      assert.deepStrictEqual(seen, ["1 sent", "1 lost"])
    }).pipe(Effect.provide(paid)))

  it.effect("once, even if the caller is interrupted while an observer makes it wait", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const observer: RetryObserver.RetryObserver = {
        onHedge: ({ event, hedge }) => {
          seen.push(`${hedge} ${event}`)
          return event === "sent" ? undefined : Effect.sleep("1 second")
        }
      }
      const { send } = serving([[100], [10]])
      const call = send.pipe(Hedge.hedged({ after: 20 }), Effect.provide(RetryObserver.layer(observer)))
      const fiber = yield* Effect.forkChild(call, { startImmediately: true })
      yield* TestClock.adjust(500)
      assert.isUndefined(fiber.pollUnsafe())
      const ending = yield* Effect.forkChild(Fiber.interrupt(fiber), { startImmediately: true })
      yield* Effect.yieldNow
      assert.isDefined(ending.pollUnsafe())
      assert.deepStrictEqual(seen, ["1 sent", "1 won"])
    }).pipe(Effect.provide(paid)))

  it.effect("the metrics, with counters", () =>
    Effect.gen(function*() {
      const { send } = serving([[100], [10]])
      yield* timed(send.pipe(Hedge.hedged({ after: 20 })))
      const count = (event: string) =>
        Effect.map(Metric.value(Metric.withAttributes(RetryMetrics.hedges, { event })), ({ count }) => count)
      assert.deepStrictEqual(yield* Effect.all(["sent", "won", "lost"].map(count)), [1, 1, 0])
    }).pipe(Effect.provide([paid, RetryMetrics.layer()]), Effect.provideService(Metric.MetricRegistry, new Map())))

  it.effect("an observer that dies changes nothing, and nothing is left", () =>
    Effect.gen(function*() {
      const { send, told } = serving([[100], [10]])
      const dies: RetryObserver.RetryObserver = { onHedge: () => Effect.die("the observer") }
      const { exit } = yield* timed(send.pipe(Hedge.hedged({ after: 20 }), Effect.provide(RetryObserver.layer(dies))))
      assert.isTrue(exit !== undefined && Exit.isSuccess(exit))
      assert.strictEqual(told.open, 0)
    }).pipe(Effect.provide(paid)))
})

describe("options", () => {
  const refused: ReadonlyArray<[field: string, make: () => unknown]> = [
    ["share", () => Hedge.layer({ share: 0 })],
    ["share", () => Hedge.layer({ share: 1.01 })],
    ["share", () => Hedge.layer({ share: Number.NaN })],
    ["shareWindow", () => Hedge.layer({ shareWindow: 0 })],
    ["latencyWindow", () => Hedge.layer({ latencyWindow: 0 })],
    ["latencyWindow", () => Hedge.layer({ latencyWindow: Infinity })],
    ["budget", () => Hedge.layer({ budget: 5 as any })],
    ["quantile", () => Hedge.quantile(0)],
    ["quantile", () => Hedge.quantile(1)],
    ["quantile", () => Hedge.quantile(Number.NaN)],
    ["warmUp", () => Hedge.quantile(0.9, { warmUp: 0 })],
    ["warmUp", () => Hedge.quantile(0.9, { warmUp: 1.5 })],
    ["atLeast", () => Hedge.quantile(0.9, { atLeast: -1 })],
    ["first", () => Hedge.quantile(0.9, { first: Infinity })],
    ["after", () => Hedge.hedged({ after: -1 })],
    ["after", () => Hedge.hedged({ after: "soon" as any })],
    ["atMost", () => Hedge.hedged({ atMost: -1 })],
    ["atMost", () => Hedge.hedged({ atMost: 11 })],
    ["atMost", () => Hedge.hedged({ atMost: 1.5 })],
    ["cost", () => Hedge.hedged({ cost: 0 })],
    ["isRetryable", () => Hedge.hedged({ isRetryable: true as any })]
  ]
  for (const [field, make] of refused) {
    it(`an impossible ${field} is refused: ${make.toString().slice(make.toString().indexOf("Hedge."))}`, () => {
      try {
        make()
      } catch (error) {
        assert.deepInclude(error, { _tag: "InvalidOption", field })
        return
      }
      assert.fail("it was taken")
    })
  }

  it.effect("of the layer come from configuration", () =>
    Effect.gen(function*() {
      const { home } = yield* Hedge.Hedge
      assert.strictEqual(home.quantile, 0.9)
      assert.deepStrictEqual(yield* Hedge.state, { balance: 0, latencies: 0 })
    }).pipe(
      Effect.provide(Layer.provide(
        Hedge.layerConfig({ share: Config.Finite("SHARE") }),
        ConfigProvider.layer(ConfigProvider.fromUnknown({ SHARE: "0.1" }))
      ))
    ))

  it.effect("impossible ones in the configuration are typed failures", () =>
    Effect.gen(function*() {
      const layer = Hedge.layerConfig({ share: Config.succeed(2) })
      const exit = yield* Effect.exit(Effect.provide(Hedge.state, layer))
      assert.deepInclude(errorOf(exit), { _tag: "InvalidOption", field: "share" })
    }))
})

/** When and how often what a send holds is settled, to the step: only mutation testing found these untested. */
import { assert, describe, it } from "@effect/vitest"
import {
  attempt,
  Backoff,
  RetryClassifier,
  RetryInfo,
  RetryObserver,
  RetryPolicy,
  RetryQuota,
  type RetryQuotaStore,
  SendGate,
  withRetry,
  withRetryOrElse
} from "effect-retry"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as TestClock from "effect/testing/TestClock"
import { scripted, Terminal, Throttled, Transient } from "../utils/call.ts"
import { inTime } from "../utils/inTime.ts"
import { countedClock } from "./utils/clocks.ts"

type Policy = RetryPolicy.RetryPolicy<any, never, RetryQuota.RetryQuota>
type Call = Effect.Effect<unknown, unknown, any>

const drivers = [
  { form: "Effect.retry", run: (self: Call, policy: Policy): Call => Effect.retry(self, policy) },
  { form: "withRetry", run: (self: Call, policy: Policy): Call => withRetry(self, policy) }
] as const

const fixed = Backoff.fixed(100)
const gated = fixed.pipe(RetryPolicy.quotaGated({ cost: 5 }))

class Gate extends SendGate.Service<Gate, unknown>()("test/reliability/settling/Gate") {}

/** A gate that says how its passes end, and waits as configured. */
const watching = (told: Array<string>, wait: (attempt: number) => Effect.Effect<void, unknown> | void = () => {}) => {
  const gate: SendGate.SendGate<unknown> = {
    order: 1,
    enter: (send) => {
      send.hold({ settle: ({ _tag }) => told.push(_tag), cancel: () => told.push("canceled") })
      return wait(send.attempt)
    }
  }
  return gate
}

/** A store that says how each reservation ends. */
const ledger = (told: Array<string>, answersLater = false): RetryQuotaStore.RetryQuotaStore => {
  const reservation = (cost: number): RetryQuotaStore.Reservation => ({
    cost,
    giveBack: () => told.push("back") > 0,
    spend: () => told.push("spent") > 0
  })
  return {
    capacity: 10,
    successIncrement: 0,
    firstAttemptCost: 0,
    onExceeded: "stop",
    reserve: (cost) => {
      told.push("taken")
      return answersLater
        ? (_, hold) => Effect.delay(Effect.sync(() => hold(reservation(cost))), 10)
        : reservation(cost)
    },
    deposit: () => {},
    balance: () => 10
  }
}

const paidBy = (store: RetryQuotaStore.RetryQuotaStore) =>
  Effect.provideService(RetryQuota.RetryQuota, RetryQuota.fromStore(store))
const observedBy = (observer: RetryObserver.RetryObserver) =>
  Effect.provideService(RetryObserver.CurrentObserver, observer)

describe.each(drivers)("$form", ({ run }) => {
  const boom = new Error("boom")
  const both = Cause.fromReasons<unknown>([...Cause.fail(new Transient()).reasons, ...Cause.die(boom).reasons])
  const ends: ReadonlyArray<readonly [string, Cause.Cause<unknown>, string]> = [
    ["dies", Cause.die(boom), "Unknown"],
    ["is interrupted from inside", Cause.interrupt(), "Unknown"],
    ["fails and dies", both, "Unknown"],
    ["fails for good", Cause.fail(new Terminal()), "Failure"],
    ["fails with nothing", Cause.empty, "Unknown"]
  ]
  for (const [name, cause, end] of ends) {
    for (const retry of [0, 1]) {
      it.effect(`a send that ${name} is settled before its fiber goes on: ${retry === 0 ? "the first" : "a retry"}`, () =>
        Effect.gen(function*() {
          const told: Array<string> = []
          let sends = 0
          const send = Effect.suspend(() => sends++ < retry ? Effect.fail(new Transient()) : Effect.failCause(cause))
          const call = Effect.exit(run(send, gated.pipe(RetryPolicy.maxAttempts(2), RetryPolicy.whileRetryable)))
          const seen = yield* inTime(
            Effect.map(call, (exit) => {
              if (name === "fails with nothing") assert.deepStrictEqual(exit, Exit.failCause(cause))
              return [...told]
            }).pipe(Effect.provideService(Gate, watching(told)), paidBy(ledger(told)))
          )
          assert.deepStrictEqual(
            seen,
            Exit.succeed(retry === 0 ? [end] : ["Failure", "taken", "spent", end])
          )
        }))
    }
  }

  it.effect("a retry that a gate holds until the deadline is settled before its fiber goes on", () =>
    Effect.gen(function*() {
      const told: Array<string> = []
      const policy = gated.pipe(RetryPolicy.deadline("1 second"))
      const gate = watching(told, (attempt) => attempt > 1 ? Effect.sleep("1 minute") : undefined)
      const seen = yield* inTime(
        Effect.map(Effect.exit(run(Effect.fail(new Transient()), policy)), () => [...told]).pipe(
          Effect.provideService(Gate, gate),
          paidBy(ledger(told))
        )
      )
      assert.deepStrictEqual(seen, Exit.succeed(["Failure", "taken", "back", "canceled"]))
    }))

  for (const name of ["alone", "with a gate", "with an observer of sends"] as const) {
    it.effect(`a retry whose backoff lasts past the deadline is not sent, and keeps nothing: ${name}`, () =>
      Effect.gen(function*() {
        const told: Array<string> = []
        const reasons: Array<string> = []
        const clock = yield* Clock.Clock
        const slow: Clock.Clock = { ...clock, sleep: () => clock.sleep(Duration.seconds(1)) }
        const call = scripted([new Transient()])
        const timed = run(call.effect, gated.pipe(RetryPolicy.deadline("1 second")))
        const exit = yield* inTime(
          (name === "with a gate" ? Effect.provideService(timed, Gate, watching([])) : timed).pipe(
            paidBy(ledger(told)),
            Effect.provideService(Clock.Clock, slow),
            observedBy({
              onStop: ({ reason }) => void reasons.push(reason),
              onSend: name === "with an observer of sends" ? () => {} : undefined
            })
          )
        )
        assert.isTrue(Exit.isFailure(exit))
        assert.deepStrictEqual([call.sends, told, reasons], [1, ["taken", "back"], ["deadline"]])
      }))
  }

  it.effect("a first send waits for its gate past the deadline", () =>
    Effect.gen(function*() {
      const gate = watching([], () => Effect.sleep("1 minute"))
      const call = scripted([])
      const exit = yield* inTime(
        Effect.provideService(run(call.effect, fixed.pipe(RetryPolicy.deadline("1 second"))), Gate, gate)
      )
      assert.deepStrictEqual([exit, call.sends], [Exit.succeed("ok"), 1])
    }))

  const broken: ReadonlyArray<readonly [string, () => Effect.Effect<void>]> = [
    ["throws", () => {
      throw boom
    }],
    ["dies while a send waits", () => Effect.die(boom)]
  ]
  for (const [name, wait] of broken) {
    it.effect(`what a retry holds goes back before its fiber goes on if a gate ${name}`, () =>
      Effect.gen(function*() {
        const told: Array<string> = []
        const gate = watching(told, (attempt) => attempt > 1 ? wait() : undefined)
        const call = Effect.exit(run(Effect.fail(new Transient()), gated))
        const seen = yield* inTime(
          Effect.map(call, (exit) => [Exit.isFailure(exit) && Cause.squash(exit.cause), ...told]).pipe(
            Effect.provideService(Gate, gate),
            paidBy(ledger(told))
          )
        )
        assert.deepStrictEqual(seen, Exit.succeed([boom, "Failure", "taken", "back", "canceled"]))
      }))
  }

  it.effect("has the tokens back of a retry that a schedule decided on and never makes", () =>
    Effect.gen(function*() {
      const failed = Effect.exit(Effect.retry(Effect.fail(new Transient()), { schedule: gated, times: 0 }))
      const { effect } = scripted([new Transient()])
      const quota = yield* RetryQuota.make({ capacity: 5 })
      const exit = yield* inTime(Effect.andThen(failed, Effect.exit(run(effect, gated)))).pipe(
        Effect.provideService(RetryQuota.RetryQuota, quota)
      )
      assert.deepStrictEqual(exit, Exit.succeed(Exit.succeed("ok")))
    }))

  it.effect("ends when its observer has done with the success", () =>
    Effect.gen(function*() {
      let isDone = false
      const onAttempt = () => Effect.delay(Effect.sync(() => void (isDone = true)), 10)
      const seen = yield* inTime(Effect.map(observedBy({ onAttempt })(run(Effect.void, fixed)), () => isDone))
      assert.deepStrictEqual(seen, Exit.succeed(true))
    }))

  it.effect("tells each send the times of its schedule", () =>
    Effect.gen(function*() {
      yield* TestClock.adjust("1 hour")
      const seen: Array<unknown> = []
      const send = Effect.gen(function*() {
        const { attempt, duration, elapsed, elapsedSincePrevious, now, start } = yield* Schedule.CurrentMetadata
        seen.push([attempt, Duration.toMillis(duration), start, now, elapsed, elapsedSincePrevious])
        yield* Effect.sleep(10)
        return yield* Effect.fail(new Transient())
      })
      yield* inTime(run(send, fixed.pipe(RetryPolicy.maxAttempts(3))))
      const at = 3_600_010
      assert.deepStrictEqual(seen.slice(1), [[1, 100, at, at, 0, 0], [2, 100, at, at + 110, 110, 110]])
    }))

  it.effect("sleeps before each retry, and not before it ends", () =>
    Effect.gen(function*() {
      const counted = yield* countedClock
      yield* inTime(counted.provide(run(Effect.fail(new Transient()), fixed.pipe(RetryPolicy.maxAttempts(3)))))
      assert.strictEqual(counted.sleeps, 2)
    }))

  it.effect("needs no quota where its policy has none", () =>
    Effect.gen(function*() {
      const exit = yield* inTime(run(Effect.succeed(1), fixed))
      assert.deepStrictEqual(exit, Exit.succeed(1))
      const failing = scripted([new Transient()])
      assert.deepStrictEqual(yield* inTime(run(failing.effect, fixed)), Exit.succeed("ok"))
    }))

  for (const form of ["throws", "dies"] as const) {
    it.effect(`ends with what an observer ${form}, also without a quota`, () =>
      Effect.gen(function*() {
        const onRetry = () => {
          if (form === "throws") throw boom
          return Effect.die(boom)
        }
        const exit = yield* inTime(observedBy({ onRetry })(run(Effect.fail(new Transient()), fixed)))
        assert.deepStrictEqual(exit, Exit.die(boom))
      }))
  }

  it.effect("notifies the observer of each send, with and without a quota, with and without a gate", () =>
    Effect.gen(function*() {
      for (const policy of [fixed, gated]) {
        for (const hasGate of [false, true]) {
          let sends = 0
          const observed = observedBy({ onSend: () => void sends++ })(
            run(scripted([new Transient(), new Transient()]).effect, policy)
          )
          yield* inTime(hasGate ? Effect.provideService(observed, Gate, watching([])) : observed)
          assert.strictEqual(sends, 3)
        }
      }
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("an observer that makes calls of its own leaves the retry that it is notified of alone", () =>
    Effect.gen(function*() {
      let isInside = false
      const onRetry = () => {
        if (isInside) return
        isInside = true
        return Effect.ignore(run(scripted([new Transient()]).effect, gated) as Effect.Effect<unknown, unknown>)
      }
      const policy = gated.pipe(RetryPolicy.maxAttempts(2))
      yield* inTime(observedBy({ onRetry })(run(Effect.fail(new Transient()), policy)))
      assert.strictEqual(yield* RetryQuota.balance, 495)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("asks no store for more than its capacity", () =>
    Effect.gen(function*() {
      const told: Array<string> = []
      const store: RetryQuotaStore.RetryQuotaStore = { ...ledger(told), reserve: () => () => Effect.never }
      const reasons: Array<string> = []
      const fiber = yield* Effect.forkChild(
        Effect.exit(run(Effect.fail(new Transient()), fixed.pipe(RetryPolicy.quotaGated({ cost: 11 })))).pipe(
          paidBy(store),
          observedBy({ onStop: ({ reason }) => void reasons.push(reason) })
        )
      )
      yield* TestClock.adjust(0)
      assert.isDefined(fiber.pollUnsafe())
      assert.deepStrictEqual(reasons, ["quota-exhausted"])
    }))

  for (const onExceeded of ["stop", "wait"] as const) {
    for (const limit of [undefined, "1 minute"] as const) {
      it.effect(`tokens that come after their call has ended go back: ${onExceeded}, deadline ${limit}`, () =>
        Effect.gen(function*() {
          const told: Array<string> = []
          let late = () => {}
          let patience = Number.NaN
          yield* TestClock.adjust("1 hour")
          const store: RetryQuotaStore.RetryQuotaStore = {
            ...ledger(told),
            onExceeded,
            reserve: () => (given, hold) => {
              patience = Duration.toMillis(given)
              late = () => hold({ cost: 5, giveBack: () => told.push("back") > 0, spend: () => told.push("spent") > 0 })
              return limit === undefined ? Effect.void : Effect.never
            }
          }
          const policy = limit === undefined ? gated : gated.pipe(RetryPolicy.deadline(limit))
          const waits: Array<string | undefined> = []
          const call = Effect.exit(run(Effect.fail(new Transient()), policy)).pipe(
            paidBy(store),
            observedBy({ onWait: (self, gate) => (waits.push(gate), self) })
          )
          const fiber = yield* Effect.forkChild(
            Effect.andThen(call, Effect.sync(() => late())).pipe(Effect.andThen(Effect.never))
          )
          yield* TestClock.adjust("2 minutes")
          assert.deepStrictEqual(told, ["back"])
          assert.deepStrictEqual(waits, ["RetryQuota"])
          assert.strictEqual(patience, limit === undefined ? Infinity : onExceeded === "wait" ? 59_900 : 60_000)
          yield* Fiber.interrupt(fiber)
        }))
    }
  }

  it.effect("holds a long poll back for its delay where the quota refuses the retry", () =>
    Effect.gen(function*() {
      const stops: Array<unknown> = []
      const policy = fixed.pipe(RetryPolicy.quotaGated({ cost: 5, longPolling: true }))
      const fiber = yield* Effect.forkChild(
        observedBy({ onStop: ({ delayMillis, reason }) => void stops.push([reason, delayMillis]) })(
          Effect.exit(run(Effect.fail(new Transient()), policy))
        )
      )
      yield* TestClock.adjust(99)
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.isDefined(fiber.pollUnsafe())
      assert.deepStrictEqual(stops, [["quota-exhausted", 100]])
    }).pipe(Effect.provide(RetryQuota.layer({ initial: 0 }))))

  for (const [name, changes] of [["is full", { isFull: true }], ["earns nothing", { successIncrement: 0 }]] as const) {
    it.effect(`deposits nothing in a quota that ${name}`, () =>
      Effect.gen(function*() {
        const deposits: Array<number> = []
        const store = {
          ...ledger([]),
          successIncrement: 1,
          deposit: (tokens: number) => void deposits.push(tokens),
          ...changes
        }
        yield* paidBy(store)(run(Effect.void, gated))
        assert.deepStrictEqual(deposits, [])
      }))
  }

  it.effect("heeds the hint of no error that the classifier does not know, and one that delays a retry of 0 ms", () =>
    Effect.gen(function*() {
      const policy = RetryPolicy.fromDelay(() => 0).pipe(RetryPolicy.honorRetryAfter({ atMost: "1 minute" }))
      const delays: Array<number> = []
      const errors = ["unknown", new Throttled({ retryAfter: 40 })]
      yield* inTime(
        observedBy({ onRetry: ({ delay }) => void delays.push(Duration.toMillis(delay)) })(
          run(scripted<unknown>(errors).effect, policy)
        )
      )
      assert.deepStrictEqual(delays, [0, 40])
    }))

  it.effect("tells the cost of a retry that had to wait for its tokens", () =>
    Effect.gen(function*() {
      const costs: Array<number> = []
      yield* inTime(
        observedBy({ onRetry: ({ cost }) => void costs.push(cost) })(run(scripted([new Transient()]).effect, gated))
      )
      assert.deepStrictEqual(costs, [5])
    }).pipe(
      Effect.provide(RetryQuota.layer({ capacity: 5, initial: 0, refillPerSecond: 1, onExceeded: "wait" }))
    ))

  it.effect("sends nothing whose fee a remote quota refuses", () =>
    Effect.gen(function*() {
      const store = { ...ledger([]), firstAttemptCost: 1, reserve: () => () => Effect.void }
      const call = scripted([])
      const exit = yield* inTime(paidBy(store)(run(call.effect, fixed)))
      const error = Exit.isFailure(exit) ? Option.getOrUndefined(Exit.findErrorOption(exit)) : exit
      assert.instanceOf(error, RetryQuota.QuotaExhausted)
      assert.strictEqual(call.sends, 0)
    }))

  it.effect("a retry pays no fee of a first send", () =>
    Effect.gen(function*() {
      const call = run(Effect.fail(new Transient()), fixed.pipe(RetryPolicy.maxAttempts(2)))
      yield* inTime(Effect.provideService(call, Gate, watching([])))
      assert.strictEqual(yield* RetryQuota.balance, 9)
    }).pipe(Effect.provide(RetryQuota.layer({ capacity: 10, firstAttemptCost: 1, successIncrement: 0 }))))

  it.effect("asks the gates of its store once for each send, next to those of the context", () =>
    Effect.gen(function*() {
      const entered: Array<string> = []
      const gates: ReadonlyArray<SendGate.SendGate> = [{ order: 2, enter: () => void entered.push("store") }]
      const context: SendGate.SendGate = { order: 1, enter: () => void entered.push("context") }
      const call = Effect.suspend(() => run(Effect.void, fixed)).pipe(
        Effect.provideService(Gate, context),
        paidBy({ ...ledger([]), gates })
      )
      yield* inTime(call)
      yield* inTime(call)
      assert.deepStrictEqual(entered, ["context", "store", "context", "store"])
      assert.strictEqual(gates.length, 1)
    }))

  it.effect("a success says nothing of an error, whatever the classifier knows", () =>
    Effect.gen(function*() {
      const infos: Array<unknown> = []
      const gate: SendGate.SendGate = {
        order: 1,
        enter: (send) => send.hold({ settle: ({ info }) => void infos.push(info?.throttling), cancel: () => {} })
      }
      const all = () => Option.some(RetryInfo.make({ throttling: true }))
      yield* inTime(
        run(scripted(["any"]).effect, fixed).pipe(
          Effect.provideService(Gate, gate),
          Effect.provideService(RetryClassifier.CurrentClassifier, all)
        )
      )
      assert.deepStrictEqual(infos, [true, undefined])
    }))
})

describe("a clock that throws once the tokens of a retry are taken", () => {
  for (const method of ["currentTimeMillisUnsafe", "sleep"] as const) {
    for (const failures of [1, 2]) {
      it.effect(`gives them back before its fiber goes on: ${method}, after failure ${failures}`, () =>
        Effect.gen(function*() {
          const boom = new Error("boom")
          const told: Array<string> = []
          let sends = 0
          const clock = yield* Clock.Clock
          const broken: Clock.Clock = {
            ...clock,
            sleep: () => Effect.void,
            [method]: () => {
              if (sends === failures) throw boom
              return method === "sleep" ? Effect.void : clock[method]()
            }
          }
          const call: Call = withRetry(Effect.suspend(() => (sends++, Effect.fail(new Transient()))), gated)
          const exit = yield* Effect.exit(call as Effect.Effect<unknown, unknown>).pipe(
            Effect.provideService(Clock.Clock, broken),
            paidBy(ledger(told))
          )
          assert.deepStrictEqual(exit, Exit.die(boom))
          assert.deepStrictEqual(told, [...(failures === 1 ? [] : ["taken", "spent"]), "taken", "back"])
        }))
    }
  }
})

describe("attempts inside a retried effect, which is one send", () => {
  /** The first try fails; in the second, all attempts run at the same time, and their failures are ignored. */
  const together = (attempts: ReadonlyArray<Call>) => {
    let tries = 0
    return Effect.suspend(() =>
      tries++ === 0 ?
        attempt(Effect.fail(new Transient())) :
        Effect.all(attempts.map((one) => Effect.ignore(one)), { concurrency: "unbounded" })
    )
  }
  const failing = Effect.fail(new Transient())
  const cases: ReadonlyArray<readonly [string, ReadonlyArray<Call>]> = [
    ["all fail", [attempt(failing), attempt(Effect.delay(failing, 10))]],
    ["all succeed", [attempt(Effect.sleep(10)), attempt(Effect.sleep(20))]],
    ["one lasts too long", [Effect.timeout(attempt(Effect.never), "10 seconds")]]
  ]
  for (const [name, attempts] of cases) {
    it.effect(`have its retry give the tokens back once if it succeeds: ${name}`, () =>
      Effect.gen(function*() {
        const told: Array<string> = []
        const call = Effect.map(Effect.retry(together(attempts), gated as any), () => [...told])
        assert.deepStrictEqual(yield* inTime(paidBy(ledger(told))(call)), Exit.succeed(["taken", "back"]))
      }))
  }

  it.effect("earn nothing by their successes, also if it waits for a gate", () =>
    Effect.gen(function*() {
      const waiting = (attempt: number) => attempt > 1 ? Effect.sleep(10) : undefined
      const call = Effect.retry(together([attempt(Effect.void), attempt(Effect.void)]), gated as any)
      yield* inTime(Effect.provideService(call, Gate, watching([], waiting)))
      assert.strictEqual(yield* RetryQuota.balance, 100)
    }).pipe(Effect.provide(RetryQuota.layer({ initial: 100 }))))

  it.effect("are no sends that an observer sees", () =>
    Effect.gen(function*() {
      let sends = 0
      const call = Effect.retry(together([attempt(failing), attempt(Effect.void)]), gated as any)
      yield* inTime(observedBy({ onSend: () => void sends++ })(paidBy(ledger([]))(call)))
      assert.strictEqual(sends, 2)
    }))
})

it.effect("a first send pays its fee under Effect.retry, whether an observer sees it or not", () =>
  Effect.gen(function*() {
    for (const observer of [{}, { onAttempt: () => {} }]) {
      const balance = yield* Effect.fail(new Terminal()).pipe(
        Effect.retry(RetryPolicy.whileRetryable(gated)),
        Effect.ignore,
        Effect.andThen(RetryQuota.balance),
        observedBy(observer),
        Effect.provide(RetryQuota.layer({ capacity: 10, firstAttemptCost: 2 }))
      )
      assert.strictEqual(balance, 8)
    }
  }))

describe("what is provided inside a retried effect is not seen", () => {
  it.effect("an observer is notified of nothing", () =>
    Effect.gen(function*() {
      const told: Array<boolean> = []
      const inner = observedBy({ onAttempt: (succeeded) => void told.push(succeeded) })(
        attempt(scripted([new Transient()]).effect)
      )
      yield* inTime(Effect.retry(inner, gated))
      assert.deepStrictEqual(told, [])
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("a gate is not asked", () =>
    Effect.gen(function*() {
      const told: Array<string> = []
      const inner = Effect.provideService(attempt(scripted([new Transient()]).effect), Gate, watching(told))
      yield* inTime(Effect.retry(inner, gated))
      assert.deepStrictEqual(told, [])
    }).pipe(Effect.provide(RetryQuota.layer())))
})

describe("an attempt under a schedule of another kind", () => {
  it.effect("fails as it does", () =>
    Effect.gen(function*() {
      const call = scripted([new Transient(), new Terminal(), new Terminal()])
      const exit = yield* inTime(Effect.retry(attempt(call.effect), Schedule.recurs(1)))
      assert.deepStrictEqual([call.sends, exit], [2, Exit.fail(new Terminal())])
    }))

  it.effect("changes nothing inside a call that retries", () =>
    Effect.gen(function*() {
      const attempts: Array<boolean> = []
      const inner = Effect.retry(attempt(scripted([new Transient(), new Transient()]).effect), Schedule.recurs(2))
      const exit = yield* inTime(
        observedBy({ onAttempt: (succeeded) => void attempts.push(succeeded) })(withRetry(inner, fixed))
      )
      assert.deepStrictEqual([exit, attempts], [Exit.succeed("ok"), [true]])
    }))

  it.effect("is that of the call which retries inside it", () =>
    Effect.gen(function*() {
      let tries = 0
      const inner = Effect.suspend(() =>
        tries++ === 0 ? Effect.fail(new Transient()) : withRetry(attempt(Effect.void), fixed)
      )
      yield* inTime(Effect.retry(inner, Schedule.recurs(1)))
      assert.strictEqual(yield* RetryQuota.balance, 101)
    }).pipe(Effect.provide(RetryQuota.layer({ initial: 100 }))))
})

describe("an attempt inside a send of withRetry", () => {
  it.effect("passes the gate of both once for each send", () =>
    Effect.gen(function*() {
      const told: Array<string> = []
      const { effect } = scripted([new Transient()])
      yield* inTime(Effect.provideService(withRetry(attempt(effect), fixed), Gate, watching(told)))
      assert.deepStrictEqual(told, ["Failure", "Success"])
    }))

  it.effect("pays from no quota of its own", () =>
    Effect.gen(function*() {
      const own = yield* RetryQuota.make({ initial: 100 })
      yield* withRetry(Effect.provideService(attempt(Effect.void), RetryQuota.RetryQuota, own), fixed)
      assert.deepStrictEqual([yield* own.balance, yield* RetryQuota.balance], [100, 201])
    }).pipe(Effect.provide(RetryQuota.layer({ initial: 200 }))))

  it.effect("asks no gate of its own", () =>
    Effect.gen(function*() {
      const told: Array<string> = []
      yield* withRetry(Effect.provideService(attempt(Effect.void), Gate, watching(told)), fixed)
      assert.deepStrictEqual(told, [])
    }))
})

it.effect("a failure that is final immediately is handed to the fallback, with the reason", () =>
  Effect.gen(function*() {
    const policy = fixed.pipe(RetryPolicy.whileRetryable)
    const ended = yield* withRetryOrElse(Effect.fail(new Terminal()), policy, (_, { reason }) => Effect.succeed(reason))
    assert.strictEqual(ended, "final")
  }))

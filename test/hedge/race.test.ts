/** What one hedged call does at each of its turns: only mutation testing showed that no test held it to this. */
import { assert, describe, it } from "@effect/vitest"
import {
  attempt,
  Backoff,
  Hedge,
  RetryObserver,
  RetryPolicy,
  RetryQuota,
  type RetryQuotaStore,
  SendGate,
  withRetry
} from "effect-retry"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { Latencies } from "../../src/hedge/internal/latencyWindow.ts"
import { type HedgeOptions, hedging, type Home } from "../../src/hedge/internal/race.ts"
import { countedClock } from "../reliability/utils/clocks.ts"
import { Terminal, Transient } from "../utils/call.ts"
import { inTime } from "../utils/inTime.ts"

const unlimited: RetryQuotaStore.RetryQuotaStore = {
  capacity: Infinity,
  successIncrement: 0,
  firstAttemptCost: 0,
  onExceeded: "stop",
  reserve: (cost) => ({ cost, giveBack: () => true, spend: () => true }),
  deposit: () => {},
  balance: () => Infinity
}
const paid = Hedge.layer({ budget: unlimited })

class Gate extends SendGate.Service<Gate, unknown>()("test/engine/hedge/Gate") {}

type Turn = readonly [millis: number, end?: Effect.Effect<unknown, unknown>]

/** A call whose sends follow the turns in order; the last turn repeats. */
const serving = (turns: ReadonlyArray<Turn>) => {
  const at: Array<number> = []
  const send = Effect.gen(function*() {
    const [millis, end = Effect.void] = turns[Math.min(at.length, turns.length - 1)]!
    at.push(yield* Clock.currentTimeMillis)
    yield* Effect.sleep(millis)
    return yield* end
  })
  return { at, send }
}

const isInterruption = (exit: Exit.Exit<unknown, unknown> | undefined): boolean =>
  exit !== undefined && Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)

const failing = Effect.fail(new Transient())
const boom = new Error("boom")

/** What observers and a gate see of a hedged call, and how it ends. */
const told = (
  turns: ReadonlyArray<Turn>,
  options: Hedge.CallOptions = {},
  around: (self: Effect.Effect<unknown, unknown, any>) => Effect.Effect<unknown, unknown, any> = (self) => self,
  wait: (attempt: number) => Effect.Effect<void, unknown> | void = () => {}
) =>
  Effect.gen(function*() {
    const seen = { attempts: [] as Array<boolean>, hedges: [] as Array<string>, sends: 0, gate: [] as Array<number> }
    const gate: SendGate.SendGate<unknown> = {
      order: 1,
      enter: (send) => {
        seen.gate.push(send.attempt)
        return wait(send.attempt)
      }
    }
    const { at, send } = serving(turns)
    const call = around(send.pipe(Hedge.hedged({ after: 20, ...options }))).pipe(
      Effect.provideService(Gate, gate),
      Effect.provideService(RetryObserver.CurrentObserver, {
        onAttempt: (succeeded) => void seen.attempts.push(succeeded),
        onHedge: ({ event, hedge, reason }) =>
          void seen.hedges.push(`${hedge} ${event}${reason === undefined ? "" : ` ${reason}`}`),
        onSend: () => void seen.sends++
      })
    )
    const exit = yield* inTime(call as Effect.Effect<unknown, unknown>, "10 seconds")
    return { ...seen, at, exit }
  }).pipe(Effect.provide(paid))

const fixed = Backoff.fixed(100).pipe(RetryPolicy.whileRetryable)
const within = (millis: number) => fixed.pipe(RetryPolicy.maxAttempts(1), RetryPolicy.deadline(millis))

describe("what is reported of a hedged call", () => {
  it.effect("alone: each outcome that is known, once", () =>
    Effect.gen(function*() {
      const outcomes = (turns: ReadonlyArray<Turn>) => Effect.map(told(turns), ({ attempts }) => attempts)
      assert.deepStrictEqual(yield* outcomes([[10]]), [true])
      assert.deepStrictEqual(yield* outcomes([[100], [10, failing]]), [false, true])
      assert.deepStrictEqual(yield* outcomes([[50, failing], [10, failing]]), [false, false])
      assert.deepStrictEqual(yield* outcomes([[50, failing], [100, failing]]), [false, false])
      assert.deepStrictEqual(yield* outcomes([[10, Effect.die(boom)]]), [])
    }))

  const drivers: Readonly<
    Record<string, (self: Effect.Effect<unknown, unknown, any>) => Effect.Effect<any, any, any>>
  > = {
    "alone": (self) => self,
    "withRetry": (self) => withRetry(self, fixed),
    "Effect.retry": (self) => Effect.retry(self, fixed)
  }
  for (const [name, driver] of Object.entries(drivers)) {
    it.effect(`${name}: each send once, which says which attempt it is`, () =>
      Effect.gen(function*() {
        const { gate, sends } = yield* told([[100], [10]], {}, driver)
        assert.deepStrictEqual([sends, gate], [2, [1, 2]])
      }))
  }

  it.effect("a hedge that fails for good has not won", () =>
    Effect.gen(function*() {
      const { hedges } = yield* told([[100], [10, Effect.fail(new Terminal())]])
      assert.deepStrictEqual(hedges, ["1 sent", "1 lost"])
    }))

  it.effect("a gate that refuses the first send ends the call with its refusal", () =>
    Effect.gen(function*() {
      const { at, exit } = yield* told([[10]], {}, undefined, () => Effect.fail(boom))
      assert.deepStrictEqual([at, exit], [[], Exit.fail(boom)])
    }))

  const late = fixed.pipe(RetryPolicy.maxAttempts(2), RetryPolicy.deadline(150))
  const retrying: Readonly<Record<string, (self: Effect.Effect<any, any, any>) => Effect.Effect<any, any, any>>> = {
    "withRetry": (self) => withRetry(self, late),
    "Effect.retry": (self) => Effect.retry(self, late)
  }
  for (const [name, driver] of Object.entries(retrying)) {
    it.effect(`${name}: a hedge of a retry that is due after the deadline is refused for it`, () =>
      Effect.gen(function*() {
        let tries = 0
        const { at, hedges } = yield* told(
          [[100], [10]],
          { after: 60 },
          (self) => driver(Effect.suspend(() => tries++ === 0 ? failing : self))
        )
        assert.deepStrictEqual([at, hedges], [[100], ["1 refused deadline"]])
      }))
  }

  it.effect("a call whose hedge is refused by its gate after the first send has failed fails as that did", () =>
    Effect.gen(function*() {
      const wait = (attempt: number) => attempt > 1 ? Effect.andThen(Effect.sleep(60), Effect.fail(boom)) : undefined
      const { at, exit, hedges } = yield* told([[40, failing]], {}, undefined, wait)
      assert.deepStrictEqual([at, exit, hedges], [[0], yield* Effect.exit(failing), ["1 refused gate"]])
    }))

  it.effect("a hedge that waits for its gate until the deadline is refused for it", () =>
    Effect.gen(function*() {
      const wait = (attempt: number) => attempt > 1 ? Effect.sleep(60) : undefined
      const { at, hedges } = yield* told([[200], [10]], {}, (self) => withRetry(self, within(50)), wait)
      assert.deepStrictEqual([at, hedges], [[0], ["1 refused deadline"]])
    }))

  it.effect("the first send waits for a gate of its own past the deadline", () =>
    Effect.gen(function*() {
      const { at, send } = serving([[10]])
      const inner = send.pipe(
        Hedge.hedged({ after: 1000 }),
        Effect.provideService(Gate, { order: 1, enter: () => Effect.sleep(60) })
      )
      const exit = yield* inTime(withRetry(inner, within(50)))
      assert.deepStrictEqual([at, exit], [[60], Exit.void])
    }).pipe(Effect.provide(paid)))
})

describe("an attempt inside a hedged call", () => {
  it.effect("alone passes each gate once", () =>
    Effect.gen(function*() {
      let entered = 0
      const call = Hedge.hedged(attempt(Effect.void), { after: 20 })
      yield* Effect.provideService(call, Gate, { order: 1, enter: () => void entered++ })
      assert.strictEqual(entered, 1)
    }).pipe(Effect.provide(paid)))

  it.effect("that is retried earns one success", () =>
    Effect.gen(function*() {
      yield* withRetry(Hedge.hedged(attempt(Effect.void), { after: 20 }), fixed)
      assert.strictEqual(yield* RetryQuota.balance, 101)
    }).pipe(Effect.provide([paid, RetryQuota.layer({ initial: 100 })])))
})

describe("a hedged call inside RetryStrategy.run", () => {
  const run = (strategy: Effect.Effect<RetryStrategy.Service>) =>
    Effect.gen(function*() {
      const ended: Array<string> = []
      const gate: SendGate.SendGate = {
        order: 1,
        enter: (send) =>
          send.hold({
            settle: ({ _tag }) => void ended.push(`${send.attempt} ${_tag}`),
            cancel: () => void ended.push(`${send.attempt} canceled`)
          })
      }
      const { at, send } = serving([[100], [10]])
      const call = RetryStrategy.run(Hedge.hedged(send, { after: 20 })).pipe(
        Effect.provideServiceEffect(RetryStrategy.RetryStrategy, strategy),
        Effect.provideService(Gate, gate)
      )
      yield* inTime(call)
      return { at, ended }
    }).pipe(Effect.provide(paid))

  it.effect("is hedged if the first send gets no token, and each of its sends passes the gates", () =>
    Effect.gen(function*() {
      const { at, ended } = yield* run(Effect.succeed({
        acquireInitialToken: () => Effect.fail(new RetryQuota.QuotaExhausted({ cost: 1, balance: 0 })),
        refreshRetryToken: () => Effect.die(boom),
        recordSuccess: () => Effect.die(boom)
      }))
      assert.deepStrictEqual([at, ended], [[0, 20], ["2 Success", "1 Unknown"]])
    }))

  it.effect("settles no pass again that went back when the token of its send was abandoned", () =>
    Effect.gen(function*() {
      const abandoning = Effect.map(RetryStrategy.make(fixed), (strategy): RetryStrategy.Service => ({
        ...strategy,
        acquireInitialToken: (operation) =>
          Effect.tap(strategy.acquireInitialToken(operation), ({ abandon }) => abandon)
      }))
      const { at, ended } = yield* run(abandoning)
      assert.deepStrictEqual([at, ended], [[0, 20], ["1 canceled", "2 Success"]])
    }))
})

describe("timers", () => {
  const sleeps = (after: Duration.Input) =>
    Effect.gen(function*() {
      const counted = yield* countedClock
      const call = Hedge.hedged(Effect.never, { after, atMost: 2 })
      const fiber = yield* Effect.forkChild(counted.provide(call))
      yield* TestClock.adjust("1 hour")
      yield* Fiber.interrupt(fiber)
      return [counted.sleeps, counted.asleep]
    }).pipe(Effect.provide(paid))

  it.effect("none for hedges that are made immediately, or never", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* sleeps(0), [0, 0])
      assert.deepStrictEqual(yield* sleeps(Duration.infinity), [0, 0])
      assert.deepStrictEqual(yield* sleeps(20), [2, 0])
    }))

  it.effect("a clock that fails ends the hedges, not the call", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const error = new Transient()
      let sends = 0
      const call = Hedge.hedged(
        Effect.suspend(() => {
          sends++
          return Effect.andThen(Effect.provideService(Effect.sleep(100), Clock.Clock, clock), Effect.fail(error))
        }),
        { after: 20 }
      )
      const dying: Clock.Clock = { ...clock, sleep: () => Effect.die(boom) }
      const exit = yield* inTime(Effect.provideService(call, Clock.Clock, dying))
      assert.deepStrictEqual([exit, sends], [Exit.fail(error), 1])
    }).pipe(Effect.provide(paid)))

  it.effect("an interrupted call sends no more, and ends with the interruption alone", () =>
    Effect.gen(function*() {
      const { at, send } = serving([[1000]])
      const fiber = yield* Effect.forkChild(Hedge.hedged(send, { after: 20 }))
      yield* TestClock.adjust(10)
      yield* Fiber.interrupt(fiber)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(at, [0])
      assert.isTrue(isInterruption(fiber.pollUnsafe()))
    }).pipe(Effect.provide(paid)))
})

it.effect("a hedge is interrupted too if its own observer interrupts the call", () =>
  Effect.gen(function*() {
    let caller: Fiber.Fiber<unknown, unknown> | undefined = undefined
    let [begun, interrupted] = [0, 0]
    const send = Effect.suspend(() => {
      begun++
      return Effect.onInterrupt(Effect.never, () => Effect.sync(() => void interrupted++))
    })
    const observer: RetryObserver.RetryObserver = {
      onHedge: ({ event }) => event === "sent" ? caller!.interruptUnsafe() : undefined
    }
    caller = yield* Effect.forkChild(
      Effect.provideService(Hedge.hedged(send, { after: 20 }), RetryObserver.CurrentObserver, observer)
    )
    yield* TestClock.adjust("1 second")
    assert.isTrue(isInterruption(yield* Fiber.await(caller)))
    assert.deepStrictEqual([begun, interrupted], [2, 2])
  }).pipe(Effect.provide(paid)))

it.effect("a hedge that lets the first send succeed in its first step is interrupted", () =>
  Effect.gen(function*() {
    const answered = yield* Deferred.make<string>()
    let [begun, interrupted] = [0, 0]
    const send = Effect.suspend(() => {
      if (begun++ === 0) return Deferred.await(answered)
      return Effect.andThen(
        Deferred.succeed(answered, "first"),
        Effect.onInterrupt(Effect.never, () => Effect.sync(() => void interrupted++))
      )
    })
    assert.deepStrictEqual(yield* inTime(Hedge.hedged(send, { after: 20 })), Exit.succeed("first"))
    assert.deepStrictEqual([begun, interrupted], [2, 1])
  }).pipe(Effect.provide(paid)))

describe("a budget that has to be asked", () => {
  for (const onExceeded of ["stop", "wait"] as const) {
    for (const [answer, grants] of [["pays", true], ["does not pay", false]] as const) {
      it.effect(`and ${answer}, for one whose callers ${onExceeded}`, () =>
        Effect.gen(function*() {
          const spent: Array<number> = []
          let patience = Number.NaN
          const budget: RetryQuotaStore.RetryQuotaStore = {
            ...unlimited,
            onExceeded,
            reserve: (cost) => (given, hold) => {
              patience = Duration.toMillis(given)
              if (grants) hold({ cost, giveBack: () => true, spend: () => spent.push(cost) > 0 })
              return Effect.void
            }
          }
          const hedges: Array<string> = []
          const { at, send } = serving([[100], [10]])
          yield* inTime(
            send.pipe(
              Hedge.hedged({ after: 20 }),
              Effect.provide(Hedge.layer({ budget })),
              Effect.provideService(RetryObserver.CurrentObserver, {
                onHedge: ({ event, reason }) => void hedges.push(reason ?? event)
              })
            )
          )
          assert.deepStrictEqual(hedges, grants ? ["sent", "won"] : ["budget"])
          assert.deepStrictEqual([at, spent], grants ? [[0, 20], [1]] : [[0], []])
          assert.strictEqual(patience, onExceeded === "wait" ? 0 : Infinity)
        }))
    }
  }
})

it.effect("each send asks the gates of the budget among those around the call, in their order, and each once", () =>
  Effect.gen(function*() {
    const asked: Array<string> = []
    const gateOf = (name: string, order: number): SendGate.SendGate => ({
      order,
      enter: () => {
        asked.push(name)
      }
    })
    const both = gateOf("both", 3)
    const budget = { ...unlimited, gates: [gateOf("last", 4), both, gateOf("first", 1)] }
    const quota = { ...unlimited, gates: [both] }
    const { send } = serving([[100]])
    yield* inTime(
      send.pipe(
        Hedge.hedged({ after: 10 }),
        Effect.provide(Hedge.layer({ budget })),
        Effect.provideService(Gate, gateOf("around", 2)),
        Effect.provideService(RetryQuota.RetryQuota, RetryQuota.fromStore(quota))
      ),
      "5 minutes"
    )
    assert.deepStrictEqual(asked, ["first", "around", "both", "last", "first", "around", "both", "last"])
  }))

it.effect("a hedge whose budget answers after the deadline is not sent, and what it was granted goes back", () =>
  Effect.gen(function*() {
    const ended: Array<string> = []
    const hedges: Array<string> = []
    const reservation = (cost: number): RetryQuotaStore.Reservation => ({
      cost,
      giveBack: () => ended.push("back") > 0,
      spend: () => ended.push("spent") > 0
    })
    const budget: RetryQuotaStore.RetryQuotaStore = {
      ...unlimited,
      reserve: (cost) => (_, hold) => Effect.delay(Effect.sync(() => hold(reservation(cost))), 60)
    }
    const { at, send } = serving([[200], [10]])
    yield* inTime(
      withRetry(Hedge.hedged(send, { after: 20 }), within(50)).pipe(
        Effect.provide(Hedge.layer({ budget })),
        Effect.provideService(RetryObserver.CurrentObserver, {
          onHedge: ({ event, reason }) => void hedges.push(reason ?? event)
        })
      )
    )
    assert.deepStrictEqual([at, hedges, ended], [[0], ["deadline"], ["back"]])
  }))

/** Latencies that are kept as they come. */
class Kept extends Latencies {
  readonly recorded: Array<number> = []
  constructor() {
    super(30_000)
  }
  override record(millis: number, nowMillis: number): void {
    this.recorded.push(millis)
    super.record(millis, nowMillis)
  }
}

const options: HedgeOptions = {
  after: 20,
  atMost: 1,
  cost: 1,
  react: () => "next",
  spacingMillis: 0,
  waitsOut: false,
  release: undefined
}

const home = Effect.gen(function*() {
  const latencies = new Kept()
  const scope = yield* Scope.make()
  return { budget: unlimited, latencies, quantile: 0.9, scope } satisfies Home
})

describe("the latencies", () => {
  it.effect("count a send that is given up exactly at the delay as one that took at least as long", () =>
    Effect.gen(function*() {
      const { latencies, ...others } = yield* home
      const { send } = serving([[100], [0]])
      yield* inTime(hedging(send, options, { latencies, ...others }))
      assert.deepStrictEqual(latencies.recorded, [0, 20])
    }))

  for (const [quantile, least] of [[0.5, 2], [0.9, 10], [0.95, 20], [0.99, 100]] as const) {
    it.effect(`are enough for the quantile ${quantile} from ${least} on`, () =>
      Effect.gen(function*() {
        const own = yield* home
        const sends = Effect.gen(function*() {
          const { at, send } = serving([[1000]])
          const after = { quantile, warmUp: undefined, atLeastMillis: 50, firstMillis: 20 }
          const start = yield* Clock.currentTimeMillis
          const fiber = yield* Effect.forkChild(hedging(send, { ...options, after }, own))
          yield* TestClock.adjust(60)
          yield* Fiber.interrupt(fiber)
          return at[1]! - start
        })
        for (let n = 1; n < least; n++) own.latencies.record(1, 0)
        assert.strictEqual(yield* sends, 20)
        const enough = yield* home
        for (let n = 1; n <= least; n++) enough.latencies.record(1, 60)
        Object.assign(own, enough)
        assert.strictEqual(yield* sends, 50)
      }))
  }
})

describe("sends that must leave some time apart", () => {
  it.effect("do, after a failure too, and while one waits for a gate", () =>
    Effect.gen(function*() {
      const { at, send } = serving([[500, failing]])
      const gate: SendGate.SendGate = {
        order: 1,
        enter: (send) => {
          const pass = Effect.sync(() => send.hold({ settle: () => undefined, cancel: () => undefined }))
          return send.attempt === 2 ? Effect.delay(pass, 1000) : pass
        }
      }
      const hedged = hedging(send, { ...options, after: 0, atMost: 3, spacingMillis: 100 }, yield* home)
      yield* inTime(Effect.provideService(hedged, Gate, gate))
      assert.deepStrictEqual(at, [0, 1100, 1200, 1300])
    }))
})

describe("a server that asks for time", () => {
  const asked: HedgeOptions = { ...options, react: () => 50 }

  for (const waitsOut of [true, false]) {
    it.effect(`${waitsOut ? "gets it" : "ends a call that does not wait it out"}, with nothing in flight`, () =>
      Effect.gen(function*() {
        const { at, send } = serving([[10, failing], [10]])
        const exit = yield* inTime(hedging(send, { ...asked, after: Infinity, waitsOut }, yield* home))
        assert.deepStrictEqual([at, Exit.isSuccess(exit)], waitsOut ? [[0, 60], true] : [[0], false])
      }))
  }

  for (const around of ["alone", "withRetry"] as const) {
    it.effect(`and whose call is interrupted meanwhile: its failure is reported, ${around}`, () =>
      Effect.gen(function*() {
        const attempts: Array<boolean> = []
        const { send } = serving([[10, failing]])
        const hedged = hedging(send, { ...asked, after: Infinity, waitsOut: true }, yield* home)
        const fiber = yield* Effect.forkChild(
          Effect.provideService(
            around === "alone" ? hedged : withRetry(hedged, fixed),
            RetryObserver.CurrentObserver,
            { onAttempt: (succeeded) => void attempts.push(succeeded) }
          )
        )
        yield* TestClock.adjust(30)
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(attempts, [false])
      }))
  }
})

describe("what no caller sees is released, once", () => {
  const released = (turns: ReadonlyArray<Turn>, interruptedAt?: number) =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const release = (exit: Exit.Exit<unknown, unknown>) =>
        Effect.sync(() => {
          if (exit === undefined) return void seen.push("nothing")
          const interrupted = Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
          const error = Exit.findErrorOption(exit)
          seen.push(interrupted ? "interrupted" : Option.isSome(error) ? "failure" : "success")
        })
      const { send } = serving(turns)
      const fiber = yield* Effect.forkChild(hedging(send, { ...options, release }, yield* home))
      if (interruptedAt !== undefined) {
        yield* TestClock.adjust(interruptedAt)
        yield* Fiber.interrupt(fiber)
      }
      yield* TestClock.adjust("1 second")
      return seen
    })

  it.effect("nothing of a call that is sent once", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* released([[10]]), [])
      assert.deepStrictEqual(yield* released([[10, Effect.die(boom)]]), [])
    }))

  it.effect("the failure of the first send, if a hedge succeeds", () =>
    Effect.map(released([[30, failing], [30]]), (seen) => assert.deepStrictEqual(seen, ["failure"])))

  it.effect("the send that loses", () =>
    Effect.map(released([[100], [30]]), (seen) => assert.deepStrictEqual(seen, ["interrupted"])))

  it.effect("all that has failed, and all in flight, of a call that is interrupted", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* released([[10]], 5), ["interrupted"])
      assert.deepStrictEqual(yield* released([[30, failing], [100]], 40), ["failure", "interrupted"])
    }))

  it.effect("no later than when the resource closes", () =>
    Effect.gen(function*() {
      const own = yield* home
      let isInterrupted = false
      const release = () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => void (isInterrupted = true)))
      const { send } = serving([[30, failing], [10]])
      yield* inTime(hedging(send, { ...options, release }, own))
      assert.isFalse(isInterrupted)
      yield* Scope.close(own.scope, Exit.void)
      assert.isTrue(isInterrupted)
    }))
})

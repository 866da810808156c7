import { assert, describe, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  awsAdaptive,
  AwsModes,
  awsStandard,
  awsStandard2026,
  RetryQuota,
  type RetryQuotaStore,
  type SendGate,
  withRetry
} from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Scheduler from "effect/Scheduler"
import * as TestClock from "effect/testing/TestClock"
import { Stride } from "../../src/testing/internal/sweep.ts"
import { thinned } from "../utils/sweep.ts"

const failureOf = <R>(swept: Effect.Effect<number, never, R>) =>
  Effect.map(Effect.exit(swept), (exit) => {
    const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
    assert.instanceOf(defect, Kit.SweepFailure)
    return defect as Kit.SweepFailure
  })

const reserved = Effect.map(Effect.orDie(RetryQuota.reserve(5)), Option.getOrThrow)

describe("sweep", () => {
  it.effect("runs undisturbed, then interrupts at every step, and reports how many steps there were", () =>
    Effect.gen(function*() {
      const ends: Array<string> = []
      const program = Effect.onExit(
        Effect.andThen(Effect.sleep("1 minute"), Effect.sleep("1 minute")),
        (exit) => Effect.sync(() => ends.push(exit._tag))
      )
      const checked: Array<number> = []
      const steps = yield* Kit.sweep(program, (step) => Effect.sync(() => checked.push(step)))
      assert.isAbove(steps, 5)
      assert.deepStrictEqual(checked, Array.from({ length: steps + 1 }, (_, n) => n))
      assert.strictEqual(ends[0], "Success")
      assert.isAbove(ends.filter((end) => end === "Failure").length, 3)
    }))

  it.effect("interrupts at each moment of waiting too, and reports when that was", () =>
    Effect.gen(function*() {
      const ends: Array<string> = []
      const program = Effect.onExit(
        Effect.andThen(Effect.sleep("1 minute"), Effect.sleep("1 hour")),
        (exit) => Effect.map(Clock.currentTimeMillis, (now) => ends.push(`${exit._tag} at ${now - start}`))
      )
      let start = 0
      const waits: Array<readonly [number, string]> = []
      const swept = Effect.andThen(Effect.map(Clock.currentTimeMillis, (now) => start = now), program)
      const interruptions = yield* Kit.sweep(swept, (step, _, waited) =>
        Effect.sync(() => {
          if (waited !== undefined) waits.push([step, `${Duration.format(waited)}: ${ends.at(-1)}`])
        }))
      assert.deepStrictEqual(waits, [
        [interruptions - 1, "0: Failure at 0"],
        [interruptions, "1m: Failure at 60000"]
      ])
    }))

  /** An exchange with a fiber elsewhere, which loses count of callers that leave in the middle of it. */
  const exchange = (elsewhere: Context.Context<never>, lost: Array<number>) =>
    Effect.gen(function*() {
      const answer = yield* Deferred.make<void>()
      const answering = Effect.andThen(Effect.sleep(30), Deferred.succeed(answer, undefined))
      Effect.runForkWith(elsewhere)(answering)
      yield* Effect.onInterrupt(Deferred.await(answer), () =>
        Effect.map(Clock.currentTimeMillis, (now) => lost.push(now)))
    })

  it.effect("meets an exchange elsewhere halfway, and with a step also while the effect itself sleeps", () =>
    Effect.gen(function*() {
      const elsewhere = yield* Effect.context<never>()
      const lost: Array<number> = []
      /** How long the exchange had gone on when it was interrupted as the effect waited. */
      const halfway = (program: Effect.Effect<unknown, unknown>, options?: Kit.TimeOptions) =>
        Effect.gen(function*() {
          const seen = new Set<number>()
          let start = 0
          const timed = Effect.andThen(Effect.map(Clock.currentTimeMillis, (now) => start = now), program)
          yield* Kit.sweep(timed, (_, __, waited) =>
            Effect.andThen(
              Effect.sync(() => {
                for (const now of lost.splice(0)) if (waited !== undefined) seen.add(now - start)
              }),
              TestClock.adjust(100)
            ), options)
          return [...seen].sort((a, b) => a - b)
        })
      const alone = exchange(elsewhere, lost)
      assert.deepStrictEqual(yield* halfway(alone), [0])
      assert.deepStrictEqual(yield* halfway(alone, { step: 10 }), [0, 10, 20])
      const twice = Effect.timeout(Effect.andThen(alone, alone), "1 second")
      assert.deepStrictEqual(yield* halfway(twice), [0])
      assert.deepStrictEqual(yield* halfway(twice, { step: 10 }), [0, 10, 20, 30, 40, 50])
    }))

  it.effect("interrupts at 100 of many moments of waiting, evenly spread", () =>
    Effect.gen(function*() {
      const waits: Array<number> = []
      yield* Kit.sweep(Effect.sleep(250), (_, __, waited) =>
        Effect.sync(() => {
          if (waited !== undefined) waits.push(Duration.toMillis(waited))
        }), { step: 1 })
      assert.strictEqual(waits.length, 100)
      assert.deepStrictEqual([...waits.slice(0, 4), ...waits.slice(-2)], [2, 4, 7, 9, 247, 249])
    }))

  it.effect("interrupts only at each third step and moment of waiting with a stride of three", () =>
    Effect.gen(function*() {
      const tried = (stride: number) =>
        Effect.gen(function*() {
          const places: Array<number> = []
          const moments: Array<number> = []
          const interruptions = yield* Kit.sweep(Effect.sleep(10), (place, _, waited) =>
            Effect.sync(() => {
              places.push(place)
              if (waited !== undefined) moments.push(Duration.toMillis(waited))
            }), { step: 1 }).pipe(Effect.provideService(Stride, stride))
          return { interruptions, places, moments, steps: interruptions - 10 }
        })
      const [all, some] = [yield* tried(1), yield* tried(3)]
      assert.strictEqual(some.interruptions, all.interruptions)
      assert.deepStrictEqual(all.places, Array.from({ length: all.interruptions + 1 }, (_, n) => n))
      assert.deepStrictEqual(some.moments, [0, 3, 6, 9])
      const { places, steps } = some
      assert.deepStrictEqual(places.slice(0, -4), all.places.slice(0, steps + 1).filter((n) => n % 3 === 0))
      assert.deepStrictEqual(places.slice(-4), [1, 4, 7, 10].map((moment) => steps + moment))
    }))

  it.effect("fails as its check does", () =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(
        Kit.sweep(Effect.sleep(5), (step) => step === 2 ? Effect.die("found") : Effect.void)
      )
      assert.deepStrictEqual(exit, Exit.die("found"))
    }))

  for (
    const [name, endless, reason] of [
      ["waits", Effect.never, "stuck"],
      ["sleeps again and again", Effect.forever(Effect.sleep("1 second")), "too-long"],
      ["cannot be interrupted", Effect.uninterruptible(Effect.never), "stuck"],
      ["yields again and again", Effect.forever(Effect.yieldNow), "stuck"]
    ] as const
  ) {
    it.effect(`dies of an effect that forever ${name}`, () =>
      Effect.gen(function*() {
        const exit = yield* Effect.exit(Kit.sweep(endless, () => Effect.void, { atMost: "20 minutes" }))
        const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
        assert.instanceOf(defect, Kit.NotEnded)
        assert.strictEqual((defect as Kit.NotEnded).reason, reason)
      }))
  }

  it.effect("comes to an end for an effect with one step more in each run", () =>
    Effect.gen(function*() {
      let runs = 0
      const growing = Effect.suspend(() => Effect.repeat(Effect.yieldNow, { times: runs++ }))
      assert.isAbove(yield* Kit.sweep(growing, () => Effect.void), 0)
    }))

  it.effect("reports to its check how many sleeps are still running", () =>
    Effect.gen(function*() {
      const left: Array<number> = []
      const forgetful = Effect.andThen(Effect.forkDetach(Effect.sleep("1 hour")), Effect.sleep(5))
      yield* Kit.sweep(forgetful, (_, sleeping) => Effect.sync(() => left.push(sleeping)))
      assert.strictEqual(left[0], 1)
      const tidy = Effect.scoped(Effect.andThen(Effect.forkScoped(Effect.sleep("1 hour")), Effect.sleep(5)))
      yield* Kit.sweep(tidy, (_, sleeping) => Effect.sync(() => assert.strictEqual(sleeping, 0)))
    }))
})

describe("sweepQuota", () => {
  type Send = Kit.Scripted<void, Kit.Transient | Kit.Throttled>["send"]

  /** A call of two failures and a success, from its beginning in each run. */
  const scripted = <A, E, R>(call: (send: Send) => Effect.Effect<A, E, R>) =>
    Effect.suspend(() => call(Kit.outcomes([Kit.transient, Kit.throttled, Kit.ok()], { latency: 10 }).send))
  const standard = scripted(withRetry(awsStandard))

  for (
    const [name, program] of [
      ["withRetry", standard],
      ["Effect.retry", scripted((send) => Effect.retry(send, awsStandard))],
      ["retry behavior 2.1", scripted(withRetry(awsStandard2026))],
      ["a call that fails", scripted(withRetry(AwsModes.standard({ maxAttempts: 2 })))],
      ["a timeout around", Effect.timeout(standard, "700 millis")],
      ["two calls at the same time", Effect.all([standard, standard], { concurrency: 2 })],
      ["two calls that race", Effect.raceFirst(standard, standard)],
      [
        "a call that is forked in a scope",
        Effect.scoped(Effect.andThen(Effect.forkScoped(standard), Effect.sleep(700)))
      ]
    ] as ReadonlyArray<readonly [string, Effect.Effect<unknown, unknown, RetryQuota.RetryQuota>]>
  ) {
    it.effect(`finds no token lost: ${name}`, () =>
      Effect.gen(function*() {
        assert.isAbove(yield* Kit.sweepQuota(program), 20)
      }).pipe(thinned(5), Effect.provide(Kit.fixedRandom(0.5))))
  }

  for (
    const [name, quota] of [
      ["waits", { capacity: 10, initial: 0, refillPerSecond: 1, onExceeded: "wait" }],
      ["is paid for first attempts", { capacity: 100, firstAttemptCost: 3 }],
      ["has a first attempt wait", {
        capacity: 9,
        initial: 2,
        firstAttemptCost: 3,
        refillPerSecond: 1,
        onExceeded: "wait"
      }],
      ["runs dry", { capacity: 500, initial: 6 }],
      ["gains by successes", { capacity: 500, initial: 100, successIncrement: 1 }]
    ] as const
  ) {
    it.effect(`finds no token lost of a quota that ${name}`, () =>
      Effect.gen(function*() {
        assert.isAbove(yield* Kit.sweepQuota(standard, { quota }), 20)
      }).pipe(thinned(5), Effect.provide(Kit.fixedRandom(0.5))))
  }

  it.effect("begins each run with a new quota", () =>
    Effect.gen(function*() {
      const seen: Array<number> = []
      const spending = Effect.andThen(
        Effect.tap(RetryQuota.balance, (balance) => Effect.sync(() => seen.push(balance))),
        Effect.flatMap(reserved, ({ spend }) => spend).pipe(Effect.uninterruptible)
      )
      yield* Kit.sweepQuota(spending)
      assert.isAbove(seen.length, 3)
      assert.deepStrictEqual(new Set(seen), new Set([500]))
    }))

  it.effect("finds no waiter left at a limiter around", () =>
    Effect.gen(function*() {
      assert.isAbove(yield* Kit.sweepQuota(scripted(withRetry(awsAdaptive))), 20)
      assert.strictEqual((yield* Kit.TestLimiter.state).waiting, 0)
    }).pipe(Effect.provide([Kit.TestLimiter.layer({ fillRate: 2 }), Kit.fixedRandom(0.5)])))

  it.effect("accounts for every send token of a limiter that it makes", () =>
    Effect.gen(function*() {
      for (const limiter of [{}, { fillRate: 1e-6, tokens: 10 }, { fillRate: 3, tokens: 0.5 }]) {
        assert.isAbove(yield* Kit.sweepQuota(scripted(withRetry(awsAdaptive)), { limiter }), 40)
        const all = Effect.replicateEffect(AdaptiveRateLimiter.acquire, 3, { concurrency: "unbounded" })
        assert.isAbove(yield* Kit.sweepQuota(all, { limiter }), 15)
      }
    }).pipe(thinned(5), Effect.provide(Kit.fixedRandom(0.5))))

  it.live("brings the test clock that it needs, also for the limiter that it makes", () =>
    Effect.gen(function*() {
      const limiter = { fillRate: 2 }
      const steps = yield* Kit.sweepQuota(scripted(withRetry(awsAdaptive)), { limiter })
      const onOne = Kit.sweepQuota(scripted(withRetry(awsAdaptive)), { limiter })
      assert.strictEqual(steps, yield* Effect.provide(onOne, TestClock.layer()))
    }).pipe(thinned(10), Effect.provide(Kit.fixedRandom(0.5))))

  const entering = (hold: (pass: SendGate.Pass) => void) =>
    Effect.gen(function*() {
      const { gate } = yield* AdaptiveRateLimiter.AdaptiveRateLimiter
      const context = yield* Effect.context<never>()
      gate!.enter({ attempt: 1, context, nowMillis: 0, hold })
    })
  const limiter = { fillRate: 1e-6, tokens: 2 }

  for (
    const [name, hold, unsettled] of [
      ["neither settled nor canceled", () => {}, 1],
      ["settled twice", (pass: SendGate.Pass) => {
        pass.cancel()
        pass.cancel()
      }, -1]
    ] as const
  ) {
    it.effect(`finds a pass that is ${name}`, () =>
      Effect.gen(function*() {
        const { actual, expected, message, what } = yield* failureOf(Kit.sweepQuota(entering(hold), { limiter }))
        assert.deepStrictEqual([what, actual, expected], ["passes", unsettled, 0])
        assert.strictEqual(message, `undisturbed, the effect leaves passes: ${unsettled}, expected 0`)
      }))
  }

  it.effect("finds a send token that comes back though its pass was not canceled", () =>
    Effect.gen(function*() {
      const generous = Effect.gen(function*() {
        const { gate } = yield* AdaptiveRateLimiter.AdaptiveRateLimiter
        yield* AdaptiveRateLimiter.acquire
        Reflect.get(Reflect.get(gate!, "gate"), "paid").cancel()
      })
      const { actual, expected, message, what } = yield* failureOf(Kit.sweepQuota(generous, { limiter }))
      assert.strictEqual(what, "send tokens")
      assert.closeTo(actual, 2, 1e-6)
      assert.closeTo(expected, 1, 1e-6)
      assert.match(message, /^undisturbed, the effect leaves send tokens: 2/)
    }))

  /** The effect, with a quota over a store that gives out different reservations than it should. */
  const over = <A, E>(
    self: Effect.Effect<A, E, RetryQuota.RetryQuota>,
    changed: (held: RetryQuotaStore.Reservation) => Partial<RetryQuotaStore.Reservation>
  ) =>
    Effect.flatMap(RetryQuota.RetryQuota, ({ store }) => {
      const reserve: typeof store.reserve = (cost, clock) => {
        const answer = store.reserve(cost, clock)
        return typeof answer === "object" ? { ...answer, ...changed(answer) } : answer
      }
      const own: typeof store = Object.assign(Object.create(store), { reserve })
      return Effect.provideService(self, RetryQuota.RetryQuota, RetryQuota.fromStore(own))
    })

  it.effect("finds a retry that succeeds and keeps its tokens", () =>
    Effect.gen(function*() {
      const keeping = over(standard, () => ({ giveBack: () => false }))
      for (const program of [keeping, Effect.timeout(keeping, "1 minute")]) {
        const { actual, expected, step, what } = yield* failureOf(Kit.sweepQuota(program))
        assert.deepStrictEqual([step, what, actual, expected], [0, "held", 5, 0])
      }
    }).pipe(Effect.provide(Kit.fixedRandom(0.5))))

  it.effect("says when an effect lost a token as it waited", () =>
    Effect.gen(function*() {
      /** Safe at each of its steps, but not between them. */
      const parked = Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(reserved, ({ giveBack }) => Effect.andThen(restore(Effect.sleep("2 seconds")), giveBack))
      )
      const quiet = Effect.andThen(Effect.sleep("1 second"), parked)
      const { message, waited } = yield* failureOf(
        Kit.sweepQuota(Effect.provideService(quiet, Scheduler.Scheduler, new Scheduler.MixedScheduler()))
      )
      assert.deepStrictEqual(waited, Duration.seconds(1))
      assert.strictEqual(
        message,
        "interrupted in its wait after 1s, the effect leaves held: 5, expected 0"
      )
    }))

  it.effect("finds a reservation that an interruption leaves open", () =>
    Effect.gen(function*() {
      const leaking = Effect.flatMap(reserved, ({ giveBack }) => Effect.andThen(Effect.sleep(10), giveBack))
      const { actual, expected, message, what } = yield* failureOf(Kit.sweepQuota(leaking))
      assert.deepStrictEqual([what, actual, expected], ["held", 5, 0])
      assert.match(message, /^interrupted at step \d+, the effect leaves held: 5, expected 0$/)
    }))

  it.effect("finds a leak of a single step, and nothing if the reservation is bracketed", () =>
    Effect.gen(function*() {
      const leaking = Effect.flatMap(reserved, ({ giveBack }) => giveBack)
      assert.strictEqual((yield* failureOf(Kit.sweepQuota(leaking))).what, "held")
      const safe = Effect.acquireUseRelease(reserved, () => Effect.sleep(10), ({ giveBack }) => giveBack)
      assert.isAbove(yield* Kit.sweepQuota(safe), 5)
    }))

  it.effect("finds a retry whose tokens never come back though it succeeds", () =>
    Effect.gen(function*() {
      // What goes back to this store is lost.
      const lossy = Effect.map(RetryQuota.make({ initial: 100 }), ({ store }): RetryQuotaStore.RetryQuotaStore => ({
        capacity: store.capacity,
        successIncrement: 0,
        firstAttemptCost: 0,
        onExceeded: "stop",
        deposit: (tokens, clock) => store.deposit(tokens, clock),
        balance: (clock) => store.balance(clock),
        reserve: (cost: number, clock: Clock.Clock) => {
          const held = store.reserve(cost, clock)
          return typeof held === "object"
            ? {
              cost,
              giveBack: () => held.spend(),
              spend: () => held.spend()
            }
            : held
        }
      }))
      const { actual, expected, what } = yield* failureOf(Kit.sweepQuota(standard, { store: lossy }))
      assert.deepStrictEqual([what, actual, expected], ["balance", 90, 95])
    }).pipe(Effect.provide(Kit.fixedRandom(0.5))))

  it.effect("finds a balance that is more than there should be", () =>
    Effect.gen(function*() {
      const generous = Effect.orDie(RetryQuota.deposit(1))
      const quota = { capacity: 500, initial: 400 }
      const { actual, expected, what } = yield* failureOf(Kit.sweepQuota(generous, { quota }))
      assert.deepStrictEqual([what, actual, expected], ["balance", 401, 400])
    }))

  it.effect("finds a retry whose tokens are spent though it was never sent", () =>
    Effect.gen(function*() {
      // Whatever should go back is spent instead, as in an interrupted backoff.
      const wasteful = over(standard, ({ spend }) => ({ giveBack: spend }))
      const { actual, expected, what } = yield* failureOf(Kit.sweepQuota(wasteful))
      assert.deepStrictEqual([what, actual, expected], ["balance", 495, 500])
    }).pipe(Effect.provide(Kit.fixedRandom(0.5))))

  it.effect("finds a timer that is forgotten", () =>
    Effect.gen(function*() {
      const forgetful = Effect.andThen(standard, Effect.forkDetach(Effect.sleep("1 hour")))
      const { message, step, what } = yield* failureOf(Kit.sweepQuota(forgetful))
      assert.deepStrictEqual([what, step], ["sleeping", 0])
      assert.strictEqual(message, "undisturbed, the effect leaves sleeping: 1, expected 0")
    }))

  it.effect("finds a fiber that is left waiting for tokens", () =>
    Effect.gen(function*() {
      const quota = { capacity: 10, initial: 0, refillPerSecond: 0.001, onExceeded: "wait" } as const
      const leaving = Effect.andThen(Effect.forkDetach(Effect.orDie(RetryQuota.reserve(5))), Effect.yieldNow)
      assert.strictEqual((yield* failureOf(Kit.sweepQuota(leaving, { quota }))).what, "waiting")
    }))
})

import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Scheduler from "effect/Scheduler"
import type { TestClock } from "effect/testing/TestClock"
import * as AdaptiveRateLimiter from "../../gates/AdaptiveRateLimiter.ts"
import * as RetryQuota from "../../RetryQuota.ts"
import type { RetryQuotaStore } from "../../RetryQuotaStore.ts"
import { Ledger, makeLedger } from "./ledger.ts"
import { makeSteady, type SteadyLimiter, type SteadyLimiterOptions } from "./steadyLimiter.ts"
import { type Pace, runOn, sweepPaceOf, type TimeOptions, withTestClock } from "./virtualTime.ts"

/**
 * Where an effect was interrupted.
 *
 * @category models
 * @since 0.1.0
 */
export interface Interruption {
  /** The step, 1 for the first; 0 for the undisturbed run. Moments of waiting are counted on after the last step. */
  readonly step: number
  /** If it was interrupted in a wait: how long the effect had run, in virtual time. */
  readonly waited: Duration.Duration | undefined
}

/**
 * What an interruption left behind.
 *
 * @category errors
 * @since 0.1.0
 */
export class SweepFailure extends Data.TaggedError("SweepFailure")<
  Interruption & {
    /** What is wrong, such as `"balance"`. */
    readonly what: "balance" | "held" | "send tokens" | "passes" | "waiting" | "sleeping"
    readonly actual: number
    readonly expected: number
  }
> {
  override get message(): string {
    const { actual, expected, step, waited, what } = this
    const when = step === 0
      ? "undisturbed"
      : waited === undefined
      ? `interrupted at step ${step}`
      : `interrupted in its wait after ${Duration.format(waited)}`
    return `${when}, the effect leaves ${what}: ${actual}, expected ${expected}`
  }
}

/** The most moments of waiting at which an effect is interrupted. */
const mostWaits = 100

/** Evenly spaced numbers up to `count`: all, if not too many. */
const spread = (count: number): ReadonlyArray<number> => {
  const many = Math.min(count, mostWaits)
  return Array.from({ length: many }, (_, n) => Math.ceil((n + 1) * count / many))
}

/**
 * How far apart the interruptions of a sweep are, in steps and in moments of waiting.
 *
 * @internal
 */
export const Stride = Context.Reference<number>("effect-retry/testing/Stride", { defaultValue: () => 1 })

/** Where one run of a sweep is interrupted: in a step, or in a moment of waiting. Of the undisturbed run, nowhere. */
interface Place {
  readonly step?: number
  readonly wait?: number
}

/** Runs an effect, interrupts it there, and counts its steps and moments of waiting. */
const runTo = <A, E, R>(clock: TestClock, self: Effect.Effect<A, E, R>, pace: Pace, { step, wait }: Place) =>
  Effect.gen(function*() {
    const base = yield* Scheduler.Scheduler
    let [steps, waits] = [0, 0]
    let waited: Duration.Duration | undefined
    const scheduler: Scheduler.Scheduler = {
      executionMode: base.executionMode,
      makeDispatcher: () => base.makeDispatcher(),
      shouldYield: (fiber) => {
        if (++steps === step) fiber.interruptUnsafe()
        return base.shouldYield(fiber)
      }
    }
    const interrupts = (movedMillis: number): boolean => {
      if (++waits !== wait) return false
      waited = Duration.millis(movedMillis)
      return true
    }
    const { sleeping } = yield* runOn(
      clock,
      Effect.provideService(self, Scheduler.Scheduler, scheduler),
      pace,
      interrupts
    )
    return { steps, waits, waited, sleeping }
  })

/**
 * Runs an effect once undisturbed under `TestClock`, then again and again: interrupted at its first step of the
 * scheduler, at its second, and so on to its last; then at each moment at which it waits, between one move of the clock
 * and the next. Runs `check` after each run, with the number of the interruption (0 for the first run), the number of
 * the effect's sleeps still running, and for an interruption in a wait, when that was. Returns the number of
 * interruptions.
 *
 * **Details**
 *
 * Fibers that the effect forks are interrupted in their steps too. Time moves to where the effect's next sleep ends.
 * What it waits for may sleep in fibers forked elsewhere: while nothing sleeps in the effect itself, time moves in
 * steps of 100 milliseconds. If you give a `step`, no move is longer, so that what runs elsewhere is also interrupted
 * halfway. Of more than 100 moments of waiting, 100 are tried, evenly spaced. An effect that never ends dies with
 * `NotEnded`. Without a `TestClock`, as outside `it.effect`, it provides one.
 *
 * **Gotchas**
 *
 * State that outlives a run is seen by the next: reset it in `check`, or create it inside the effect. Only an effect
 * that does the same on every run is interrupted everywhere.
 *
 * **Example** (A lock that is always released)
 *
 * ```ts
 * const interruptions = yield* sweep(withLock(call), () => Effect.sync(() => assert.isFalse(isLocked())))
 * ```
 *
 * @see {@link sweepQuota} for the tokens of a quota
 * @category running
 * @since 0.1.0
 */
export const sweep = <A, E, R, R2>(
  self: Effect.Effect<A, E, R>,
  check: (step: number, sleeping: number, waited: Duration.Duration | undefined) => Effect.Effect<void, never, R2>,
  options: TimeOptions = {}
): Effect.Effect<number, never, R | R2> =>
  sweepEach(Effect.void, () => self, (_, { step, waited }, sleeping) => check(step, sleeping, waited), options)

/**
 * A sweep whose runs have a setup each, which is made on the clock of the sweep, and checked.
 *
 * @internal
 */
export const sweepEach = <S, A, E, R, E2, R2, E3, R3>(
  make: Effect.Effect<S, E, R>,
  program: (setup: S) => Effect.Effect<A, E2, R2>,
  check: (setup: S, at: Interruption, sleeping: number) => Effect.Effect<void, E3, R3>,
  options: TimeOptions = {}
): Effect.Effect<number, never, R | R2 | R3> => {
  const pace = sweepPaceOf(options)
  return withTestClock((clock) =>
    Effect.gen(function*() {
      const stride = yield* Stride
      const run = (step: number, place: Place) =>
        Effect.gen(function*() {
          const setup = yield* Effect.orDie(make)
          const done = yield* runTo(clock, program(setup), pace, place)
          yield* Effect.orDie(check(setup, { step, waited: done.waited }, done.sleeping))
          return done
        })
      const { steps, waits } = yield* run(0, {})
      const moments = spread(waits)
      for (let step = stride; step <= steps; step += stride) yield* run(step, { step })
      for (let index = 0; index < moments.length; index += stride) {
        yield* run(steps + index + 1, { wait: moments[index]! })
      }
      return steps + moments.length
    })
  )
}

/** A shortfall below this many tokens is a rounding error. */
const epsilon = 1e-6

/** What each run of an effect gets. */
interface Setup {
  readonly ledger: Ledger
  readonly quota: RetryQuota.Service
  /** The balance at first. */
  readonly initial: number
  readonly steady: SteadyLimiter | undefined
}

type Finding = readonly [what: SweepFailure["what"], actual: number, expected: number]

/** What a run has left behind, and what it should have. */
const findings = ({ initial, ledger, quota, steady }: Setup, sleeping: number) =>
  Effect.gen(function*() {
    const balance = yield* quota.balance
    const right = initial - ledger.spent
    const around = yield* Effect.serviceOption(AdaptiveRateLimiter.AdaptiveRateLimiter)
    const limiter = steady?.limiter ?? Option.getOrUndefined(around)
    const limited = yield* limiter?.state ?? Effect.succeed({ waiting: 0, capacity: 0 })
    const found: Array<Finding> = [
      ["held", ledger.held, 0],
      ["balance", balance, ledger.gains ? Math.max(balance, right) : right],
      ["waiting", ledger.waiting + limited.waiting, 0],
      ["sleeping", sleeping, 0]
    ]
    if (steady !== undefined) {
      found.push(["passes", steady.open, 0], ["send tokens", limited.capacity, yield* steady.expected])
    }
    return found
  })

const checked = (setup: Setup, { step, waited }: Interruption, sleeping: number) =>
  Effect.flatMap(findings(setup, sleeping), (found) => {
    const wrong = found.find(([, actual, expected]) => Math.abs(actual - expected) > epsilon)
    if (wrong === undefined) return Effect.void
    const [what, actual, expected] = wrong
    return Effect.die(new SweepFailure({ step, waited, what, actual, expected }))
  })

/**
 * Options of a sweep.
 *
 * @category models
 * @since 0.1.0
 */
export interface SweepOptions extends TimeOptions {
  /** Options of the quota. Default: those of `RetryQuota.layer()`, except that a success adds nothing. */
  readonly quota?: RetryQuota.Options | undefined
  /** Makes the store of the quota, in place of a bucket in memory with these options. It may refill. */
  readonly store?: Effect.Effect<RetryQuotaStore> | undefined
}

/**
 * Interrupts an effect like {@link sweep}, each time with a new `RetryQuota`, and checks that no token is lost: only
 * retries that were sent and did not succeed, and reservations that were spent, may cost any; nothing is held, no
 * caller waits for the quota or for an `AdaptiveRateLimiter` around it, and no fiber of the effect still sleeps. With a
 * `limiter`, each run also gets a new limiter: each of its passes is settled or canceled once, and its send tokens are
 * there unless they were used. Otherwise it dies with {@link SweepFailure}. Returns the number of interruptions.
 *
 * **Gotchas**
 *
 * A refill can hide a loss: sweep without one, and start with a full quota or less, so that successes do not fill the
 * gap. A quota or a limiter that the effect itself provides is not checked: sweep without it. Each run needs a script
 * from its beginning: suspend the whole call, not the send, which is suspended at each attempt.
 *
 * **Example** (No interruption loses a token)
 *
 * ```ts
 * yield* sweepQuota(Effect.suspend(() => outcomes([transient, throttled, ok()]).send.pipe(withRetry(awsStandard))))
 * ```
 *
 * @see {@link sweep} for checks of your own
 * @category running
 * @since 0.1.0
 */
export const sweepQuota: {
  <A, E, R>(
    self: Effect.Effect<A, E, R>,
    options: SweepOptions & {
      /** Options of the limiter. Default: none; the effect may have one around it. */
      readonly limiter: SteadyLimiterOptions
    }
  ): Effect.Effect<number, never, Exclude<R, RetryQuota.RetryQuota | AdaptiveRateLimiter.AdaptiveRateLimiter>>
  <A, E, R>(
    self: Effect.Effect<A, E, R>,
    options?: SweepOptions
  ): Effect.Effect<number, never, Exclude<R, RetryQuota.RetryQuota>>
} = <A, E, R>(
  self: Effect.Effect<A, E, R>,
  options: SweepOptions & { readonly limiter?: SteadyLimiterOptions } = {}
): Effect.Effect<number, never, Exclude<R, RetryQuota.RetryQuota>> =>
  Effect.suspend(() => {
    const { limiter, quota: bucket, store, ...time } = options
    const account = store === undefined
      ? makeLedger({ successIncrement: 0, ...bucket }, "sweepQuota")
      : Effect.map(store, (own) => new Ledger(own))
    const make: Effect.Effect<Setup> = Effect.gen(function*() {
      const ledger = yield* account
      const quota = RetryQuota.fromStore(ledger)
      const initial = yield* quota.balance
      return { ledger, quota, initial, steady: limiter && (yield* makeSteady(limiter)) }
    })
    const program = ({ quota, steady }: Setup) => {
      const limited = steady === undefined
        ? self
        : Effect.provideService(self, AdaptiveRateLimiter.AdaptiveRateLimiter, steady.limiter)
      return Effect.provideService(limited, RetryQuota.RetryQuota, quota)
    }
    return sweepEach(make, program, checked, time)
  })

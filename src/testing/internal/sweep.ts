import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Scheduler from "effect/Scheduler"
import * as AdaptiveRateLimiter from "../../gates/AdaptiveRateLimiter.ts"
import * as RetryQuota from "../../RetryQuota.ts"
import type { RetryQuotaStore } from "../../RetryQuotaStore.ts"
import { type Accounted, makeQuota, quotaOver } from "./ledger.ts"
import { makeSteady, type SteadyLimiter, type SteadyLimiterOptions } from "./steadyLimiter.ts"
import { runOn, sweepPaceOf, type TimeOptions, withTestClock } from "./virtualTime.ts"

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

/** Interrupts the fiber that makes step `at.step`, or the effect in its wait `at.wait`, and counts both. */
class Interrupting implements Scheduler.Scheduler {
  steps = 0
  waits = 0
  waited: Duration.Duration | undefined = undefined
  readonly executionMode: Scheduler.Scheduler["executionMode"]

  constructor(
    private readonly base: Scheduler.Scheduler,
    private readonly at: { readonly step: number; readonly wait: number }
  ) {
    this.executionMode = base.executionMode
  }

  makeDispatcher(): Scheduler.SchedulerDispatcher {
    return this.base.makeDispatcher()
  }

  shouldYield(fiber: Parameters<Scheduler.Scheduler["shouldYield"]>[0]): boolean {
    if (++this.steps === this.at.step) fiber.interruptUnsafe()
    return this.base.shouldYield(fiber)
  }

  readonly interrupts = (movedMillis: number): boolean => {
    if (++this.waits !== this.at.wait) return false
    this.waited = Duration.millis(movedMillis)
    return true
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
): Effect.Effect<number, never, R | R2> => {
  const pace = sweepPaceOf(options)
  return withTestClock((clock) =>
    Effect.gen(function*() {
      const base = yield* Scheduler.Scheduler
      const stride = yield* Stride
      const run = (place: number, step: number, wait: number) =>
        Effect.gen(function*() {
          const scheduler = new Interrupting(base, { step, wait })
          const swept = Effect.provideService(self, Scheduler.Scheduler, scheduler)
          const { sleeping } = yield* runOn(clock, swept, pace, scheduler.interrupts)
          yield* check(place, sleeping, scheduler.waited)
          return scheduler
        })
      const { steps, waits } = yield* run(0, 0, 0)
      const moments = spread(waits)
      for (let step = stride; step <= steps; step += stride) yield* run(step, step, 0)
      for (let index = 0; index < moments.length; index += stride) yield* run(steps + index + 1, 0, moments[index]!)
      return steps + moments.length
    })
  )
}

/**
 * A sweep whose runs have a setup each, which is checked, then made again, after every run.
 *
 * @internal
 */
export const sweepEach = <S, A, E, R, E2, R2, E3, R3>(
  make: Effect.Effect<S, E, R>,
  program: (setup: S) => Effect.Effect<A, E2, R2>,
  check: (setup: S, at: Interruption, sleeping: number) => Effect.Effect<void, E3, R3>,
  options: TimeOptions = {}
): Effect.Effect<number, E, R | R2 | R3> =>
  Effect.gen(function*() {
    let setup = yield* make
    return yield* sweep(Effect.suspend(() => program(setup)), (step, sleeping, waited) =>
      Effect.gen(function*() {
        yield* Effect.orDie(check(setup, { step, waited }, sleeping))
        setup = yield* Effect.orDie(make)
      }), options)
  })

/** A shortfall below this many tokens is a rounding error. */
const epsilon = 1e-6

/** What each run of an effect gets. */
interface Setup extends Accounted {
  readonly initial: number
  readonly steady: SteadyLimiter | undefined
}

type Fail = (what: SweepFailure["what"], actual: number, expected: number) => Effect.Effect<void>

const checkedQuota = ({ initial, ledger, quota }: Setup, fail: Fail) =>
  Effect.gen(function*() {
    const { held } = ledger
    if (held > epsilon) return yield* fail("held", held, 0)
    const balance = yield* quota.balance
    const expected = initial - ledger.spent
    const off = ledger.gains ? expected - balance : Math.abs(expected - balance)
    if (off > epsilon) yield* fail("balance", balance, expected)
  })

const checkedTokens = ({ expected, limiter, open }: SteadyLimiter, fail: Fail) =>
  Effect.gen(function*() {
    if (open() !== 0) yield* fail("passes", open(), 0)
    const { capacity } = yield* limiter.state
    const right = yield* expected
    if (Math.abs(capacity - right) > epsilon) yield* fail("send tokens", capacity, right)
  })

const checked = (setup: Setup, { step, waited }: Interruption, sleeping: number) =>
  Effect.gen(function*() {
    const fail: Fail = (what, actual, expected) =>
      Effect.die(new SweepFailure({ step, waited, what, actual, expected }))
    yield* checkedQuota(setup, fail)
    const { ledger, steady } = setup
    const around = yield* Effect.serviceOption(AdaptiveRateLimiter.AdaptiveRateLimiter)
    const limiter = steady?.limiter ?? Option.getOrUndefined(around)
    const limited = limiter === undefined ? 0 : (yield* limiter.state).waiting
    const waiting = ledger.waiting + limited
    if (waiting > 0) yield* fail("waiting", waiting, 0)
    if (sleeping > 0) yield* fail("sleeping", sleeping, 0)
    if (steady !== undefined) yield* checkedTokens(steady, fail)
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
  // Quota and limiter are made on the clock of the sweep.
  withTestClock(() =>
    Effect.gen(function*() {
      const { limiter, quota: bucket, store, ...time } = options
      const quota = store === undefined
        ? makeQuota({ successIncrement: 0, ...bucket }, "sweepQuota")
        : Effect.map(store, quotaOver)
      const make: Effect.Effect<Setup> = Effect.gen(function*() {
        const made = yield* quota
        const initial = yield* made.quota.balance
        return { ...made, initial, steady: limiter === undefined ? undefined : yield* makeSteady(limiter) }
      })
      const program = ({ quota, steady }: Setup) => {
        const limited = steady === undefined
          ? self
          : Effect.provideService(self, AdaptiveRateLimiter.AdaptiveRateLimiter, steady.limiter)
        return Effect.provideService(limited, RetryQuota.RetryQuota, quota)
      }
      return yield* sweepEach(make, program, checked, time)
    })
  )

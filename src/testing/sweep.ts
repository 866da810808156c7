import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Scheduler from "effect/Scheduler"
import * as AdaptiveRateLimiter from "../AdaptiveRateLimiter.ts"
import * as RetryQuota from "../RetryQuota.ts"
import { type Ledger, makeQuota } from "./quota.ts"
import { paceOf, runOn, type TimeOptions, withTestClock } from "./time.ts"

/**
 * What an interruption has left behind.
 *
 * @category errors
 * @since 0.1.0
 */
export class SweepFailure extends Data.TaggedError("SweepFailure")<{
  /** The step at which the effect was interrupted: 1 for its first, 0 when it ran undisturbed. */
  readonly step: number
  /** What is not as it should be, such as `"balance"`. */
  readonly what: "balance" | "held" | "waiting" | "sleeping"
  readonly actual: number
  readonly expected: number
}> {
  override get message(): string {
    const { actual, expected, step, what } = this
    const when = step === 0 ? "undisturbed" : `interrupted at step ${step}`
    return `${when}, the effect leaves ${what}: ${actual} where ${expected} is right`
  }
}

/** A scheduler that interrupts the fiber which makes step `at`, and counts the steps. */
class Interrupting implements Scheduler.Scheduler {
  steps = 0
  readonly executionMode: Scheduler.Scheduler["executionMode"]
  private readonly base: Scheduler.Scheduler
  private readonly at: number

  constructor(base: Scheduler.Scheduler, at: number) {
    this.base = base
    this.at = at
    this.executionMode = base.executionMode
  }

  makeDispatcher(): Scheduler.SchedulerDispatcher {
    return this.base.makeDispatcher()
  }

  shouldYield(fiber: Parameters<Scheduler.Scheduler["shouldYield"]>[0]): boolean {
    if (++this.steps === this.at) fiber.interruptUnsafe()
    return this.base.shouldYield(fiber)
  }
}

/**
 * Runs an effect once undisturbed under `TestClock`, then again and again, interrupting it at its first step of the
 * scheduler, at its second, and so on to its last. Runs `check` after each run, with the number of the step (0 for the
 * first run) and how many sleeps of the effect go on. Answers how many steps there were.
 *
 * **Details**
 *
 * Fibers that the effect forks are interrupted in their steps too. What an effect waits for may sleep in fibers forked
 * elsewhere: time is moved in steps of 100 milliseconds, or `step`, while nothing sleeps in the effect itself. An effect
 * that never ends dies with `NotEnded`.
 *
 * **Gotchas**
 *
 * State that outlives a run is seen by the next: put it back in `check`, or make it inside the effect. An effect that does
 * the same whenever it runs is interrupted everywhere; one that does not, somewhere.
 *
 * **Example** (A lock that is always released)
 *
 * ```ts
 * const steps = yield* sweep(withLock(send), () => Effect.sync(() => assert.isFalse(isLocked())))
 * ```
 *
 * @see {@link sweepQuota} for the tokens of a quota
 * @category running
 * @since 0.1.0
 */
export const sweep = <A, E, R, R2>(
  self: Effect.Effect<A, E, R>,
  check: (step: number, sleeping: number) => Effect.Effect<void, never, R2>,
  options?: TimeOptions
): Effect.Effect<number, never, R | R2> => {
  const pace = paceOf("sweep", { step: "100 millis", ...options })
  return withTestClock((clock) =>
    Effect.gen(function*() {
      const base = yield* Scheduler.Scheduler
      const run = (at: number) =>
        Effect.gen(function*() {
          const scheduler = new Interrupting(base, at)
          const { sleeping } = yield* runOn(clock, Effect.provideService(self, Scheduler.Scheduler, scheduler), pace)
          yield* check(at, sleeping)
          return scheduler.steps
        })
      const steps = yield* run(0)
      for (let at = 1; at <= steps; at++) yield* run(at)
      return steps
    })
  )
}

/** A shortfall below this many tokens is a rounding error. */
const epsilon = 1e-6

const checked = (run: { readonly step: number; readonly sleeping: number }, ledger: Ledger, initial: number) =>
  Effect.gen(function*() {
    const { sleeping, step } = run
    const fail = (what: SweepFailure["what"], actual: number, expected: number) =>
      Effect.die(new SweepFailure({ step, what, actual, expected }))
    const { held } = ledger
    if (held > epsilon) return yield* fail("held", held, 0)
    const balance = yield* ledger.look
    const expected = initial - ledger.spent
    const off = ledger.gains ? expected - balance : Math.abs(expected - balance)
    if (off > epsilon) return yield* fail("balance", balance, expected)
    const limiter = yield* Effect.serviceOption(AdaptiveRateLimiter.AdaptiveRateLimiter)
    const limited = Option.isNone(limiter) ? 0 : (yield* limiter.value.snapshot).waiting
    const waiting = ledger.waiters.size + limited
    if (waiting > 0) return yield* fail("waiting", waiting, 0)
    if (sleeping > 0) return yield* fail("sleeping", sleeping, 0)
  })

/**
 * Interrupts an effect at every step of the scheduler, each time with a new `RetryQuota`, and checks that no token is lost:
 * only retries that were sent and did not succeed, and reservations that were spent, may cost any; nothing is held,
 * nobody waits, neither for the quota nor for an `AdaptiveRateLimiter` around, and no fiber of the effect still sleeps.
 * Otherwise it dies with {@link SweepFailure}. Answers how many steps there were.
 *
 * **Gotchas**
 *
 * Tokens of a quota that flow in over time can hide a loss: sweep without a refill, and begin with a full quota or less
 * so that successes do not fill the gap. An effect that brings a quota of its own is not seen through: leave it out.
 * Each run needs a script from its beginning: suspend the whole call, not the send, which is suspended at each attempt.
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
export const sweepQuota = <A, E, R>(
  self: Effect.Effect<A, E, R>,
  options?: TimeOptions & {
    /** How the quota is made. Default: that of `RetryQuota.layer()`, but a success puts nothing in. */
    readonly quota?: RetryQuota.Options | undefined
  }
): Effect.Effect<number, never, Exclude<R, RetryQuota.RetryQuota>> =>
  Effect.gen(function*() {
    const make = makeQuota({ successIncrement: 0, ...options?.quota })
    let made = yield* make
    const initial = yield* made.quota.balance
    return yield* sweep(
      Effect.suspend(() => Effect.provideService(self, RetryQuota.RetryQuota, made.quota)),
      (step, sleeping) =>
        Effect.gen(function*() {
          yield* checked({ step, sleeping }, made.ledger, initial)
          made = yield* make
        }),
      options
    )
  })

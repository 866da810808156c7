import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { constFalse } from "effect/Function"
import * as TestClock from "effect/testing/TestClock"
import { checksOf } from "../../internal/checks.ts"
import * as Options from "../../internal/options.ts"

/**
 * An effect that would never have ended under `TestClock`: a defect, since it is a mistake in the test.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotEnded extends Data.TaggedError("NotEnded")<{
  /**
   * `"too-long"` if it sleeps beyond `atMost` or more than 100,000 times; `"stuck"` if it waits for something that
   * moving time does not trigger.
   */
  readonly reason: "too-long" | "stuck"
  /** How far time was moved. */
  readonly after: Duration.Duration
  /** How often time was moved. */
  readonly moves: number
}> {
  override get message(): string {
    const moved = Duration.format(this.after)
    return this.reason === "too-long"
      ? `the effect runs longer than it may: time has been moved by ${moved}, in ${this.moves} steps`
      : `after ${moved} the effect waits for something that moving time does not trigger: nothing in it sleeps`
  }
}

/**
 * Options for moving time.
 *
 * @category models
 * @since 0.1.0
 */
export interface TimeOptions {
  /**
   * How long the effect may take, in virtual time: a finite duration above 0. Default one day. Time is moved at most
   * 100,000 times in any case.
   */
  readonly atMost?: Duration.Input | undefined
  /**
   * For an effect that waits for a fiber sleeping elsewhere: the steps in which time moves while nothing in the effect
   * itself sleeps, at most 10,000 in a row. If given, a sweep never moves time further than that. Default: none, and
   * the effect gets a second of real time to continue; for a sweep 100 milliseconds.
   */
  readonly step?: Duration.Input | undefined
}

/** How long an effect may wait in real time, in polls of one millisecond. */
const patience = 1000

/** How long an effect may wait for fibers elsewhere, in steps. */
const idleSteps = 10_000

/** How often time may be moved for one effect: some seconds of real time. */
const mostMoves = 100_000

const timeOptions = { atMost: Options.positiveDuration(86_400_000), step: Options.optional(Options.positiveDuration()) }

/**
 * How far time moves, and when it ends.
 *
 * @internal
 */
export interface Pace extends Options.Valid<typeof timeOptions> {
  /** The longest single move of time. */
  readonly mostMillis: number
  readonly mostMoves: number
}

/**
 * Called at each moment at which the effect waits, before time moves, with the time moved so far: whether to end here.
 */
type Interrupts = (movedMillis: number) => boolean

/** Rejects invalid options. */
const paceOf = (constructorName: string, options: TimeOptions): Pace => ({
  ...Options.validOptions(checksOf(constructorName, options), timeOptions, options),
  mostMillis: Infinity,
  mostMoves
})

/**
 * The pace of a sweep: a given step bounds each move.
 *
 * @internal
 */
export const sweepPaceOf = (options: TimeOptions): Pace => {
  const pace = paceOf("sweep", options)
  return { ...pace, stepMillis: pace.stepMillis ?? 100, mostMillis: pace.stepMillis ?? Infinity }
}

const isTestClock = (clock: Clock.Clock): clock is TestClock.TestClock => "adjust" in clock && "withLive" in clock

/** The clock, with the ends of its sleepers: `TestClock` does not reveal when its next sleeper wakes. */
const watched = (clock: TestClock.TestClock) => {
  const ends = new Set<{ readonly atMillis: number }>()
  // In one step with the release: an interruption between them would leave a sleeper that never wakes.
  const sleep = (duration: Duration.Duration) =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        const end = { atMillis: clock.currentTimeMillisUnsafe() + Duration.toMillis(duration) }
        ends.add(end)
        return end
      }),
      () => clock.sleep(duration),
      (end) => Effect.sync(() => ends.delete(end))
    )
  return { clock: { ...clock, sleep }, ends }
}

type Watched = ReturnType<typeof watched>

/** Milliseconds until the next sleeper wakes; `Infinity` if there is none. */
const untilNext = ({ clock, ends }: Watched): number => {
  let next = Infinity
  for (const { atMillis } of ends) next = Math.min(next, atMillis)
  return Math.max(0, next - clock.currentTimeMillisUnsafe())
}

/** How far to move time if the next sleeper wakes in `asleep` milliseconds. */
const moveOf = (asleep: number, { mostMillis, stepMillis }: Pace): number | undefined =>
  asleep === Infinity ? stepMillis : Math.min(asleep, mostMillis)

/** Moves time until the fiber has ended. */
const drive = (
  fiber: Fiber.Fiber<unknown, unknown>,
  watched: Watched,
  pace: Pace,
  interrupts: Interrupts = constFalse
): Effect.Effect<void> =>
  Effect.gen(function*() {
    const { clock } = watched
    const startMillis = clock.currentTimeMillisUnsafe()
    const patient = pace.stepMillis === undefined ? patience : idleSteps
    let idle = 0
    let moves = 0
    for (;;) {
      yield* clock.adjust(0)
      if (fiber.pollUnsafe() !== undefined) return
      const moved = clock.currentTimeMillisUnsafe() - startMillis
      if (interrupts(moved)) {
        fiber.interruptUnsafe()
        continue
      }
      const asleep = untilNext(watched)
      const notEnded = (reason: NotEnded["reason"]) =>
        Effect.die(new NotEnded({ reason, after: Duration.millis(moved), moves }))
      idle = asleep === Infinity ? idle + 1 : 0
      if (idle > patient) return yield* notEnded("stuck")
      const wait = moveOf(asleep, pace)
      if (wait === undefined) {
        yield* clock.withLive(Effect.sleep(1))
      } else {
        if (moved + wait > pace.atMostMillis || moves === pace.mostMoves) return yield* notEnded("too-long")
        moves++
        yield* clock.adjust(wait)
      }
    }
  })

/** Interrupts the fiber and moves time until its finalizers are done; a fiber that still runs then is left alone. */
const stop = (fiber: Fiber.Fiber<unknown, unknown>, watched: Watched, pace: Pace): Effect.Effect<unknown> =>
  Effect.suspend(() => {
    if (fiber.pollUnsafe() !== undefined) return Effect.void
    fiber.interruptUnsafe()
    return Effect.exit(drive(fiber, watched, pace))
  })

/**
 * Runs the effect to its end on a clock that moves as far as it needs. Returns its fiber, and how many of its sleeps
 * still run.
 *
 * @internal
 */
export const runOn = <A, E, R>(
  clock: TestClock.TestClock,
  self: Effect.Effect<A, E, R>,
  pace: Pace,
  interrupts?: Interrupts
): Effect.Effect<{ readonly fiber: Fiber.Fiber<A, E>; readonly sleeping: number }, never, R> =>
  Effect.suspend(() => {
    const own = watched(clock)
    return Effect.acquireUseRelease(
      // Detached: a parent waits for its children, and this fiber may refuse to end.
      Effect.forkDetach(Effect.interruptible(Effect.provideService(self, Clock.Clock, own.clock))),
      (fiber) =>
        Effect.gen(function*() {
          yield* drive(fiber, own, pace, interrupts)
          // Lets newly forked fibers fall asleep, and newly interrupted ones end.
          for (let turn = 0; turn < 3; turn++) yield* Effect.yieldNow
          return { fiber, sleeping: own.ends.size }
        }),
      (fiber) => stop(fiber, own, pace)
    )
  })

/**
 * Runs an effect with the current test clock, or with its own.
 *
 * @internal
 */
export const withTestClock = <A, E, R>(
  use: (clock: TestClock.TestClock) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.clockWith((clock) =>
    isTestClock(clock) ? use(clock) : Effect.provide(TestClock.testClockWith(use), TestClock.layer())
  )

/**
 * Runs an effect to its end under `TestClock`, moving time exactly as far as it sleeps, and ends as the effect does.
 *
 * **Details**
 *
 * It combines the fork, the clock adjustments and the join of a test. Time stays where the effect ended. Without a
 * `TestClock`, as outside `it.effect`, it provides one.
 *
 * **Gotchas**
 *
 * What an effect waits for must sleep inside it. For fibers forked elsewhere, give a `step`. An effect that never ends
 * dies with {@link NotEnded}.
 *
 * **Example** (A call with its retries)
 *
 * ```ts
 * it.effect("retries", () =>
 *   Effect.gen(function*() {
 *     const call = outcomes([transient, ok("x")])
 *     assert.strictEqual(yield* call.send.pipe(withRetry(awsStandard), runToEnd), "x")
 *   }).pipe(Effect.provide(TestQuota.layer())))
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const runToEnd = <A, E, R>(self: Effect.Effect<A, E, R>, options: TimeOptions = {}): Effect.Effect<A, E, R> => {
  const pace = paceOf("runToEnd", options)
  return withTestClock((clock) => Effect.flatMap(runOn(clock, self, pace), ({ fiber }) => Fiber.join(fiber)))
}

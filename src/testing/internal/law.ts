import * as Cause from "effect/Cause"
import type * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { withTestClock } from "./virtualTime.ts"

/**
 * The same clock, showing an earlier time.
 *
 * @internal
 */
export const earlier = (clock: Clock.Clock, millis: number): Clock.Clock => ({
  ...clock,
  sleep: (duration) => clock.sleep(duration),
  currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() - millis,
  currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe() - BigInt(millis) * 1_000_000n,
  monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe() - BigInt(millis) * 1_000_000n
})

/**
 * A contract's law that does not hold.
 *
 * @category errors
 * @since 0.1.0
 */
export class ContractBroken extends Data.TaggedError("ContractBroken")<{
  /** The name of the law. */
  readonly law: string
  /** What is wrong. */
  readonly what: string
  readonly actual: unknown
  readonly expected: unknown
}> {
  override get message(): string {
    const { actual, expected, law, what } = this
    return `${law}: ${what}: ${String(actual)}, expected ${String(expected)}`
  }
}

/**
 * A law of a contract. `run` succeeds if it holds: run it as a test with this name.
 *
 * @category models
 * @since 0.1.0
 */
export interface Law<out R = never> {
  readonly name: string
  readonly run: Effect.Effect<void, ContractBroken, R>
}

/** What was found where a law does not hold. */
class Deviation {
  constructor(readonly what: string, readonly actual: unknown, readonly expected: unknown) {}
}

/** A shortfall below this many tokens is a rounding error. */
const epsilon = 1e-6

/**
 * Rejects a value that is not the expected one.
 *
 * @internal
 */
export const same = (what: string, actual: unknown, expected: unknown): void => {
  if (!Object.is(actual, expected)) throw new Deviation(what, actual, expected)
}

/**
 * Whether a number is off by no more than a rounding error, or than the slack.
 *
 * @internal
 */
export const isClose = (actual: number, expected: number, slack: number): boolean =>
  Math.abs(actual - expected) <= slack + epsilon

/**
 * Rejects a number that is off by more than a rounding error, or than the slack.
 *
 * @internal
 */
export const close = (what: string, actual: number, expected: number, slack = 0): void => {
  if (!isClose(actual, expected, slack)) throw new Deviation(what, actual, expected)
}

/**
 * Rejects a number outside the bounds.
 *
 * @internal
 */
export const within = (what: string, actual: number, minimum: number, maximum: number): void => {
  const isIn = actual >= minimum - epsilon && actual <= maximum + epsilon
  if (!isIn) throw new Deviation(what, actual, `from ${minimum} to ${maximum}`)
}

/**
 * How time passes for the subject of a test.
 *
 * @internal
 */
export interface Time {
  readonly elapse: (millis: number) => Effect.Effect<void>
  /** Whether time is that of a `TestClock`. */
  readonly isVirtual: boolean
}

/**
 * Time moved by a `TestClock`.
 *
 * @internal
 */
export const virtual: Time = { elapse: (millis) => TestClock.adjust(millis), isVirtual: true }

const broken = (law: string, cause: Cause.Cause<unknown>): ContractBroken => {
  const defect = Cause.squash(cause)
  if (!(defect instanceof Deviation)) {
    return new ContractBroken({ law, what: "it ends with an error", actual: defect, expected: "none" })
  }
  const { actual, expected, what } = defect
  return new ContractBroken({ law, what, actual, expected })
}

/**
 * The body of a law.
 *
 * @internal
 */
export type Body<in S, out R = never> = (
  subject: S
) => Generator<Effect.Effect<any, unknown, R | Scope.Scope>, void, never>

/**
 * Laws by their names. The subject is made anew for each. An exception or defect breaks a law.
 *
 * @internal
 */
export const lawsOf = <S, R>(
  make: Effect.Effect<S, unknown, R | Scope.Scope>,
  bodies: Readonly<Record<string, Body<S, R>>>,
  time: Time = virtual
): ReadonlyArray<Law<Exclude<R, Scope.Scope>>> =>
  Object.entries(bodies).map(([name, body]) => {
    const scoped = Effect.scoped(Effect.flatMap(make, (subject) => Effect.gen(() => body(subject))))
    return {
      name,
      run: Effect.catchCause(
        time.isVirtual ? withTestClock(() => scoped) : scoped,
        (cause) => Cause.hasInterruptsOnly(cause) ? Effect.interrupt : Effect.fail(broken(name, cause))
      )
    }
  })

/**
 * Interrupts a fiber. A defect of it is not lost.
 *
 * @internal
 */
export const stopped = (fiber: Fiber.Fiber<unknown, unknown>): Effect.Effect<void> =>
  Effect.gen(function*() {
    yield* Fiber.interrupt(fiber)
    const exit = yield* Fiber.await(fiber)
    if (Exit.isFailure(exit) && Cause.hasDies(exit.cause)) return yield* Effect.die(Cause.squash(exit.cause))
  })

/**
 * Lets fibers run as far as they can without time passing.
 *
 * @internal
 */
export const turns: Effect.Effect<void> = Effect.gen(function*() {
  for (let turn = 0; turn < 20; turn++) yield* Effect.yieldNow
})

/**
 * Lets time pass until the condition holds, up to the maximum. Returns whether it does.
 *
 * @internal
 */
export const until = (time: Time, atMostMillis: number, condition: () => boolean): Effect.Effect<boolean> =>
  Effect.gen(function*() {
    for (let waited = 0;;) {
      yield* turns
      if (condition()) return true
      if (waited >= atMostMillis) return false
      const step = Math.max(1, Math.floor(waited / 10))
      yield* time.elapse(step)
      waited += step
    }
  })

/**
 * Runs an effect as far as it comes in this time, and returns how it ended, if it has. Else it is interrupted.
 *
 * @internal
 */
export const ran = <A, E>(
  self: Effect.Effect<A, E>,
  atMostMillis: number,
  time: Time = virtual
): Effect.Effect<Exit.Exit<A, E> | undefined> =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(self)
    yield* until(time, atMostMillis, () => fiber.pollUnsafe() !== undefined)
    const exit = fiber.pollUnsafe()
    yield* stopped(fiber)
    return exit
  })

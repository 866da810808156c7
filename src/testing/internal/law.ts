import * as Cause from "effect/Cause"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type Time, virtual } from "./time.ts"
import { withTestClock } from "./virtualTime.ts"

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

const broken = (law: string, cause: Cause.Cause<unknown>): ContractBroken => {
  const defect = Cause.squash(cause)
  const ended = { what: "it ends with an error", actual: defect, expected: "none" }
  return new ContractBroken({ law, ...(defect instanceof Deviation ? defect : ended) })
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
 * The body of a law that makes its own subjects.
 *
 * @internal
 */
export const alone = <E, R>(effect: Effect.Effect<unknown, E, R | Scope.Scope>): Body<unknown, R> =>
  function*() {
    yield* effect
  }

/**
 * Laws by their names. Each has its own subject, new. An exception or defect breaks a law.
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

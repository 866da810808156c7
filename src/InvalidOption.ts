/**
 * The error of every constructor that was given an impossible option.
 *
 * @since 0.1.0
 */

import * as Data from "effect/Data"
import * as Duration from "effect/Duration"

/**
 * An option that no policy, quota or limiter can work with: thrown by the constructor that received it, before
 * anything runs. Inside a program, `Effect.try` turns it into a typed failure.
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidOption extends Data.TaggedError("InvalidOption")<{
  /** The constructor, such as `"RetryQuota.make"`. */
  readonly constructorName: string
  /** The option, such as `"capacity"`. */
  readonly field: string
  /** The value as it was given. */
  readonly value: unknown
  /** What would have been right. */
  readonly expected: string
}> {
  override get message(): string {
    return `${this.constructorName}: ${this.field} must be ${this.expected}, got ${render(this.value)}`
  }
}

const render = (value: unknown): string => {
  if (typeof value === "string") return JSON.stringify(value)
  if (Duration.isDuration(value)) return Duration.format(value)
  try {
    return String(value)
  } catch {
    return typeof value
  }
}

const reject = (constructorName: string, field: string, value: unknown, expected: string): never => {
  throw new InvalidOption({ constructorName, field, value, expected })
}

/**
 * The checks of one constructor: each returns the value in the unit the library works in, or throws `InvalidOption`.
 *
 * @internal
 */
export const checks = (constructorName: string) => {
  const number = (field: string, value: number, expected: string, valid: (value: number) => boolean): number =>
    typeof value === "number" && valid(value) ? value : reject(constructorName, field, value, expected)
  return {
    /** A finite number of at least 0. */
    amount: (field: string, value: number): number =>
      number(field, value, "a finite number of at least 0", (n) => Number.isFinite(n) && n >= 0),
    /** A finite number above 0. */
    positive: (field: string, value: number): number =>
      number(field, value, "a finite number above 0", (n) => Number.isFinite(n) && n > 0),
    /** A number from `minimum` to `maximum`. */
    between: (field: string, value: number, minimum: number, maximum: number): number =>
      number(field, value, `a number from ${minimum} to ${maximum}`, (n) => n >= minimum && n <= maximum),
    /** A number above `minimum` and below `maximum`. */
    inside: (field: string, value: number, minimum: number, maximum: number): number =>
      number(field, value, `a number above ${minimum} and below ${maximum}`, (n) => n > minimum && n < maximum),
    /** A whole number of at least `minimum`, or `Infinity` for no limit. */
    count: (field: string, value: number, minimum: number): number =>
      number(
        field,
        value,
        `a whole number of at least ${minimum}, or Infinity`,
        (n) => (Number.isSafeInteger(n) || n === Infinity) && n >= minimum
      ),
    /** A finite duration of at least 0, in milliseconds. */
    duration: (field: string, value: Duration.Input): number => {
      const millis = toMillis(value)
      return millis !== undefined && Number.isFinite(millis) && millis >= 0
        ? millis
        : reject(constructorName, field, value, "a finite duration of at least 0")
    },
    /** A finite duration above 0, in milliseconds. */
    positiveDuration: (field: string, value: Duration.Input): number => {
      const millis = toMillis(value)
      return millis !== undefined && Number.isFinite(millis) && millis > 0
        ? millis
        : reject(constructorName, field, value, "a finite duration above 0")
    },
    /** One of the listed words. */
    oneOf: <const A extends string>(field: string, value: A, words: ReadonlyArray<A>): A =>
      words.includes(value)
        ? value
        : reject(constructorName, field, value, words.map((word) => `"${word}"`).join(" or ")),
    reject: (field: string, value: unknown, expected: string): never => reject(constructorName, field, value, expected)
  }
}

/** `Duration` reads NaN as zero, so numbers, alone or in an array or object, are looked at before. */
const toMillis = (input: Duration.Input): number | undefined => {
  if (typeof input === "number") return Number.isNaN(input) ? undefined : input
  if (typeof input === "object" && input !== null && Object.values(input).some((part) => Number.isNaN(part))) {
    return undefined
  }
  try {
    return Duration.toMillis(Duration.fromInputUnsafe(input))
  } catch {
    return undefined
  }
}

import * as Duration from "effect/Duration"
import { InvalidOption } from "../InvalidOption.ts"
import { counted, words } from "./format.ts"
import { isObject } from "./invalidField.ts"
import { look } from "./tryGet.ts"

type Reject = (field: string, value: unknown, expected: string, path?: string) => never

/** The options, as JSON. */
type Input = Record<string, unknown>

const isAmount = (n: number): boolean => n >= 0 && n < Infinity

const isPositive = (n: number): boolean => n > 0 && n < Infinity

/** Checks of numbers and, in milliseconds, of durations. */
const numbers =
  (input: Input, names: Set<string>, reject: Reject) =>
  <A extends Duration.Input>(expected: string, valid: (n: number) => boolean, isTime = false) =>
  (field: string, value: A | undefined, otherwise?: number): number => {
    names.add(field)
    if (value === undefined && otherwise !== undefined) return otherwise
    const number = isTime ? toMillis(value) : value
    if (typeof number !== "number" || !valid(number)) {
      const hint = isTime && typeof value !== "number" ? `, such as "100 millis" or "2 seconds"` : ""
      return reject(field, value, expected + hint)
    }
    input[field] = isTime ? words(number) : counted(number)
    return number
  }

/**
 * The checks of one constructor: each returns the value in the library's internal unit, or the default if it is
 * `undefined`, or throws `InvalidOption`. The values are kept. `rejectUnknown` comes last: it rejects options that were not checked.
 * Errors name an option of an object within the options by its path, such as `"fallback."`.
 */
export const checks = (constructorName: string, path = "") => {
  const input: Input = {}
  const reject: Reject = (field, value, expected, at = path) => {
    throw new InvalidOption({ constructorName, field: at + field, value, expected })
  }
  const names = new Set<string>()
  const check = numbers(input, names, reject)
  return {
    tag: constructorName,
    path,
    input,
    reject,
    /** The options that are known: those that were checked. */
    names,
    /** A number that is valid, or what else is expected. */
    number: check<number>,
    /** A finite number of at least 0. */
    amount: check<number>("a finite number of at least 0", isAmount),
    /** A finite number above 0. */
    positive: check<number>("a finite number above 0", isPositive),
    /** A number from `minimum` to `maximum`. */
    between: (field: string, value: number, minimum: number, maximum: number): number =>
      check<number>(
        maximum === Number.MAX_VALUE
          ? `a finite number of at least ${minimum}`
          : `a number from ${minimum} to ${maximum}`,
        (n) => n >= minimum && n <= maximum
      )(field, value),
    /** A whole number of at least `minimum`, or `Infinity` for no limit. */
    count: (field: string, value: number | undefined, minimum: number, otherwise?: number): number =>
      check<number>(
        `a whole number of at least ${minimum}, or Infinity`,
        (n) => (Number.isSafeInteger(n) || n === Infinity) && n >= minimum
      )(field, value, otherwise),
    /** A finite duration of at least 0, in milliseconds. */
    duration: check<Duration.Input>("a finite duration of at least 0", isAmount, true),
    /** A finite duration above 0, in milliseconds. */
    positiveDuration: check<Duration.Input>("a finite duration above 0", isPositive, true),
    /** One of the listed words. */
    oneOf: <const A extends string>(field: string, value: A | undefined, of: ReadonlyArray<A>, otherwise?: A): A => {
      names.add(field)
      if (value === undefined && otherwise !== undefined) return otherwise
      if (!of.includes(value!)) return reject(field, value, of.map((word) => `"${word}"`).join(" or "))
      input[field] = value
      return value!
    }
  }
}

export type Checks = ReturnType<typeof checks>

/** The checks of a constructor that reads its options from an object. Rejects what is not one before it is read. */
export const checksOf = (constructorName: string, options: object): Checks => {
  const check = checks(constructorName)
  if (!isObject(options)) check.reject("options", options, "an object")
  return check
}

/** Returns what was made of the options. Rejects those that were not checked. */
export const rejectUnknown = <A>({ names, path, reject }: Checks, options: object, made?: A): A => {
  for (const name of Object.keys(options)) {
    if (!names.has(name)) reject("option", path + name, `one of ${path}${[...names].join(`, ${path}`)}`, "")
  }
  return made!
}

/** Names options that are checked elsewhere. */
export const also = (check: Checks, ...names: ReadonlyArray<string>): void => {
  for (const name of names) check.names.add(name)
}

/** A number above 0 and below 1. */
export const inside = (check: Checks, field: string, value: number): number =>
  check.number("a number above 0 and below 1", (n) => n > 0 && n < 1)(field, value)

/** True or false, by default false. */
export const flag = (check: Checks, field: string, value: boolean = false): boolean => {
  check.names.add(field)
  if (typeof value !== "boolean") return check.reject(field, value, "true or false")
  if (value) check.input[field] = true
  return value
}

/** Rejects what is not the name of a resource. */
export const checkName = (constructorName: string, name: unknown): void => {
  if (typeof name !== "string" || name === "") checks(constructorName).reject("name", name, "the name of a resource")
}

/** A function. */
export const callable = <F>(check: Checks, field: string, value: F, expected = "a function"): F => {
  check.names.add(field)
  return typeof value === "function" ? value : check.reject(field, value, expected)
}

/** `Duration` reads NaN as zero, so numbers, alone or in an array or object, are checked first. */
const toMillis = (input: Duration.Input | undefined): number | undefined => {
  if (typeof input === "number") return input
  if (typeof input === "object" && input !== null && Object.values(input).some(Number.isNaN)) return undefined
  return look(() => Duration.toMillis(Duration.fromInputUnsafe(input!)))
}

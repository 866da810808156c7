import { InvalidOption } from "effect-retry/InvalidOption"
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"

/** Refuses an option. */
export const refuse = (field: string, value: unknown, expected: string): never => {
  throw new InvalidOption({ constructorName: "Explain.explain", field, value, expected })
}

/** A number from `minimum` to `maximum`. */
export const between = (field: string, value: number, minimum: number, maximum: number): number =>
  typeof value === "number" && value >= minimum && value <= maximum
    ? value
    : refuse(field, value, `a number from ${minimum} to ${maximum}`)

/** A whole number from 1 to `maximum`. */
export const whole = (field: string, value: number, maximum: number): number =>
  Number.isSafeInteger(value) && value >= 1 && value <= maximum
    ? value
    : refuse(field, value, `a whole number from 1 to ${maximum}`)

/** A finite duration of at least `minimumMillis`, in milliseconds; `Duration` reads `NaN` as 0. */
export const millis = (field: string, value: Duration.Input, minimumMillis: 0 | 1e-6): number => {
  const duration = Number.isNaN(value) ? Option.none() : Duration.fromInput(value)
  const found = Option.match(duration, { onNone: () => NaN, onSome: Duration.toMillis })
  return found >= minimumMillis && found < Infinity
    ? found
    : refuse(field, value, `a finite duration ${minimumMillis === 0 ? "of at least" : "above"} 0`)
}

import * as Effect from "effect/Effect"
import {
  errorOf,
  type Fields,
  isObject,
  type Path,
  Refusal,
  refuse,
  rejectUnknownKeys
} from "../../internal/invalidField.ts"
import { short } from "../../internal/tryGet.ts"
import type { InvalidOption } from "../../InvalidOption.ts"

/** Reads a document of another system, or fails with the path of the problem. */
export const importing = <A>(constructorName: string, read: () => A): Effect.Effect<A, InvalidOption> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(read())
    } catch (error) {
      return error instanceof Refusal ? Effect.fail(errorOf(error, constructorName)) : Effect.die(error)
    }
  })

export const fieldsOf = (value: unknown, path: Path): Fields =>
  isObject(value) ? value : refuse(path, value, "an object")

/** An object that may have only these keys. */
export const onlyOf = (value: unknown, path: Path, names: ReadonlyArray<string>): Fields => {
  const fields = fieldsOf(value, path)
  rejectUnknownKeys(fields, names, path)
  return fields
}

export const listOf = (value: unknown, path: Path): ReadonlyArray<unknown> =>
  Array.isArray(value) ? value : refuse(path, value, "an array")

export const textOf = (value: unknown, path: Path): string =>
  typeof value === "string" && value !== "" ? value : refuse(path, value, "a non-empty string")

/** A number from `least` up, or below `below`; `otherwise` if missing. */
export const numberOf = (value: unknown, path: Path, least: number, otherwise?: number): number => {
  if (value === undefined && otherwise !== undefined) return otherwise
  return typeof value === "number" && value >= least && value < Infinity
    ? value
    : refuse(path, value, `a number of at least ${least}`)
}

export const wholeOf = (value: unknown, path: Path, least: number, otherwise?: number): number => {
  const number = numberOf(value, path, least, otherwise)
  return Number.isSafeInteger(number) ? number : refuse(path, value, `a whole number of at least ${least}`)
}

const unitMillis = [1, 1000, 60_000, 3_600_000, 86_400_000]

/** A number, then the group of its unit. Source: protocol buffers' JSON; npm `ms`, which Temporal reads; Effect. */
const durationForm =
  /^(\d+(?:\.\d+)?|\.\d+) ?(?:(ms|msecs?|millis(?:econds?)?)|(s|secs?|seconds?)|(m|mins?|minutes?)|(h|hrs?|hours?)|(d|days?))$/i

/** A duration such as `"1.5s"`, `"100ms"` or `"2 minutes"`; or milliseconds. */
export const durationOf = (value: unknown, path: Path, otherwise?: number): number => {
  if (value === undefined && otherwise !== undefined) return otherwise
  const [, number, ...units] = durationForm.exec(short(value)) ?? []
  const millis = number === undefined ? value : Number(number) * unitMillis[units.findIndex(Boolean)]!
  return typeof millis === "number" && millis >= 0 && millis < Infinity
    ? millis
    : refuse(path, value, `a duration, such as "1.5s", "100ms" or "2 minutes", or milliseconds`)
}

export const positiveDurationOf = (value: unknown, path: Path, otherwise?: number): number => {
  const millis = durationOf(value, path, otherwise)
  return millis > 0 ? millis : refuse(path, value, "a duration above 0")
}

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Invalid from "../../internal/invalidField.ts"
import { get, short } from "../../internal/tryGet.ts"
import type { InvalidOption } from "../../InvalidOption.ts"
import * as RetryClassifier from "../../RetryClassifier.ts"
import * as RetryInfo from "../../RetryInfo.ts"

/** Reads a document of another system, or fails with the path of the problem. */
export const importing =
  <A>(constructorName: string, read: (document: Place) => A) => (json: unknown): Effect.Effect<A, InvalidOption> =>
    Effect.suspend(() => {
      try {
        return Effect.succeed(read(new Place(json)))
      } catch (error) {
        return error instanceof Invalid.Refusal
          ? Effect.fail(Invalid.errorOf(error, constructorName))
          : Effect.die(error)
      }
    })

const unitMillis = [1, 1000, 60_000, 3_600_000, 86_400_000]

/** A number, then the group of its unit. Source: protocol buffers' JSON; npm `ms`, which Temporal reads; Effect. */
const durationForm =
  /^(\d+(?:\.\d+)?|\.\d+) ?(?:(ms|msecs?|millis(?:econds?)?)|(s|secs?|seconds?)|(m|mins?|minutes?)|(h|hrs?|hours?)|(d|days?))$/i

/** Envoy's names use underscores; in JSON written by a program they are in camel case. */
const inCamel = (snake: string): string => snake.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())

/** A value of a document, and where it is. Each reader refuses what it does not expect; some have a default. */
export class Place {
  constructor(readonly value: unknown, readonly path: Invalid.Path = []) {}

  refuse(expected: string): never {
    return Invalid.refuse(this.path, this.value, expected)
  }

  /** What is at a key of the object, in either spelling. */
  at(name: string): Place {
    const { fields } = this
    const key = fields[name] === undefined && fields[inCamel(name)] !== undefined ? inCamel(name) : name
    return new Place(fields[key], [...this.path, key])
  }

  /** The object, which may have only these keys. */
  only(names: ReadonlyArray<string>): this {
    Invalid.rejectUnknownKeys(this.fields, [...names, ...names.map(inCamel)], this.path)
    return this
  }

  /** Refuses what the library cannot express: it must not be dropped silently. */
  leftOut(why: string): void {
    if (this.value !== undefined) this.refuse(`left out: ${why}`)
  }

  list<A>(read: (item: Place) => A, otherwise?: readonly []): ReadonlyArray<A> {
    const list = this.value ?? otherwise
    return Array.isArray(list)
      ? list.map((item, index) => read(new Place(item, [...this.path, index])))
      : this.refuse("an array")
  }

  text(): string {
    return typeof this.value === "string" && this.value !== "" ? this.value : this.refuse("a non-empty string")
  }

  number(least: number, otherwise?: number): number {
    const { value = otherwise } = this
    return typeof value === "number" && value >= least && value < Infinity
      ? value
      : this.refuse(`a number of at least ${least}`)
  }

  whole(least: number, otherwise?: number): number {
    const number = this.number(least, otherwise)
    return Number.isSafeInteger(number) ? number : this.refuse(`a whole number of at least ${least}`)
  }

  /** A duration such as `"1.5s"`, `"100ms"` or `"2 minutes"`; or milliseconds. */
  duration(otherwise?: number): number {
    const { value = otherwise } = this
    const [, number, ...units] = durationForm.exec(short(value)) ?? []
    const millis = number === undefined ? value : Number(number) * unitMillis[units.findIndex(Boolean)]!
    return typeof millis === "number" && millis >= 0 && millis < Infinity
      ? millis
      : this.refuse(`a duration, such as "1.5s", "100ms" or "2 minutes", or milliseconds`)
  }

  positiveDuration(otherwise?: number): number {
    const millis = this.duration(otherwise)
    return millis > 0 ? millis : this.refuse("a duration above 0")
  }

  private get fields(): Invalid.Fields {
    return Invalid.isObject(this.value) ? this.value : this.refuse("an object")
  }
}

/** The names of errors: their `_tag`, `name`, `type` or `code`. */
export const isCalled = (error: unknown, names: ReadonlySet<unknown>): boolean =>
  ["_tag", "name", "type", "code"].some((key) => names.has(get(error, key)))

/** Decides which errors are retried. A veto of the error itself holds. Other facts stay: throttles, timeouts, hints. */
export const retryingIf = (isRetried: (error: unknown) => boolean): RetryClassifier.RetryClassifier => (error) => {
  const classified = RetryClassifier.classify(RetryClassifier.defaultClassifier, error)
  const base = Option.getOrElse(classified, () => RetryInfo.transient)
  if (base.safety === "No") return classified
  return Option.some(RetryInfo.make({ ...base, safety: isRetried(error) ? "Yes" : "No" }))
}

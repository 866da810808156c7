import * as RetryPolicyJson from "effect-retry/RetryPolicyJson"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"

/** A key with a default. The written side carries its description and default into the JSON Schema. */
export const withDefault = <S extends Schema.Top>(schema: S, value: S["Type"], description: string) =>
  Schema.optionalKey(schema).annotateKey({
    description: `${description} Default ${JSON.stringify(value)}.`,
    default: value
  }).pipe(
    Schema.decodeTo(Schema.toType(schema), {
      decode: SchemaGetter.withDefault(Effect.succeed(value)),
      encode: SchemaGetter.passthrough()
    })
  )

/** A key of the library's documents: where it is left out, it has its default. */
export const filled = <S extends Schema.Top>(key: Schema.optionalKey<S>) =>
  key.pipe(
    Schema.decodeTo(Schema.toType(key.schema), {
      decode: SchemaGetter.withDefault(Effect.succeed(Schema.resolveAnnotationsKey(key)!.default as S["Type"])),
      encode: SchemaGetter.passthrough()
    })
  )

/** A key that may be left out. */
export const maybe = <S extends Schema.Constraint>(schema: S, description: string) =>
  Schema.optionalKey(schema).annotateKey({ description })

/** A key that must be there. */
export const required = <S extends Schema.Top>(schema: S, description: string) => schema.annotateKey({ description })

/** A list of limited length. */
export const upTo = (most: number) => Schema.isMaxLength(most, expecting(`a list of at most ${most}`))

/** The messages for refused values. */
export const expecting = (expected: string) => ({ expected })

const most = 1_000_000_000

export const Amount = Schema.Finite.check(
  Schema.isBetween({ minimum: 0, maximum: most }, expecting(`a number from 0 to ${most}`))
)
export const Positive = Schema.Finite.check(
  Schema.isBetween({ minimum: 0, maximum: most, exclusiveMinimum: true }, expecting(`a number above 0, up to ${most}`))
)
export const Share = Schema.Finite.check(
  Schema.isBetween({ minimum: 0, maximum: 1 }, expecting("a number from 0 to 1"))
)
export const Count = Schema.Finite.check(
  Schema.isInt(),
  Schema.isBetween({ minimum: 1, maximum: most }, expecting(`a whole number from 1 to ${most}`))
)
export const Whole = Schema.Finite.check(
  Schema.isInt(),
  Schema.isBetween({ minimum: 0, maximum: most }, expecting(`a whole number from 0 to ${most}`))
)
export const Name = Schema.String.check(
  Schema.isPattern(/^[^\s"\\][^"\\\n]{0,79}$/u, expecting("a name of 1 to 80 characters, without quotes"))
)

const longestMillis = 1e12
/** The message for a value that is not a duration. */
export const expectedDuration = `milliseconds, or a text such as "250ms", "20s", "2 minutes"`

const isNotTooLong = (text: string) =>
  Option.exists(RetryPolicyJson.duration(text), (duration) => Duration.toMillis(duration) <= longestMillis)

/** A duration: milliseconds, or a number and a unit, as words or in short. */
export const Time = Schema.Union([
  Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: longestMillis }, expecting(expectedDuration))),
  Schema.String.check(
    Schema.isPattern(
      /^\d{1,12}(\.\d{1,6})?( (millis?|seconds?|minutes?|hours?|days?)| ?(ms|s|m|min|h|d))$/u,
      expecting(expectedDuration)
    ),
    Schema.makeFilter(isNotTooLong, expecting(`at most ${longestMillis} milliseconds`))
  )
]).annotate({
  identifier: "Time",
  expected: expectedDuration,
  title: `A duration: ${expectedDuration}`
})

/** A duration of a scenario in milliseconds. */
export const millis = (time: Time): number => Duration.toMillis(Option.getOrThrow(RetryPolicyJson.duration(time)))

const oneDistribution = "one distribution, or p50 and p99"

/** The forms of a distribution: one of four, or two quantiles. */
const isOneDistribution = ({ p50, p99, ...others }: { readonly [key: string]: unknown }): boolean => {
  const count = Object.keys(others).length
  return p50 === undefined && p99 === undefined ? count === 1 : count === 0 && p50 !== undefined && p99 !== undefined
}

const isInOrder = ({ p50, p99 }: { readonly p50?: unknown; readonly p99?: unknown }): boolean =>
  p50 === undefined || Option.exists(
    Option.all([RetryPolicyJson.duration(p50), RetryPolicyJson.duration(p99)]),
    ([p50, p99]) => Duration.toMillis(p50) > 0 && Duration.toMillis(p99) >= Duration.toMillis(p50)
  )

const expectedQuantiles = "pairs of a share from 0 to 1 and a duration, both growing"

const grow = (pairs: ReadonlyArray<readonly [share: number, time: Time]>): boolean =>
  pairs.every(([share, time], index) => {
    const before = pairs[index - 1]
    return before === undefined || (before[0] < share && millis(before[1]) <= millis(time))
  })

/** A duration, random or constant. */
export const Distribution = Schema.Union([
  Time,
  Schema.Struct({
    exponential: maybe(Time, "The mean of an exponential distribution."),
    normal: maybe(
      Schema.Struct({ mean: Time, deviation: Time }),
      "Mean and standard deviation of a normal distribution; negative values are made positive."
    ),
    uniform: maybe(Schema.Struct({ from: Time, to: Time }), "The ends of a uniform distribution."),
    lognormal: maybe(
      Schema.Struct({ median: Time, sigma: Amount }),
      "The median of a lognormal distribution, and the standard deviation of its logarithm."
    ),
    quantiles: maybe(
      Schema.NonEmptyArray(Schema.Tuple([Share, Time])).check(
        upTo(1000),
        Schema.makeFilter(grow, expecting(expectedQuantiles))
      ),
      "Measured values: shares, and the duration that share stays below; linear in between, nothing beyond the first and the last."
    ),
    p50: maybe(Time, "With p99: the median of a lognormal distribution."),
    p99: maybe(Time, "The duration that 99 % stay below.")
  }).check(
    Schema.isMinProperties(1, expecting(oneDistribution)),
    Schema.isMaxProperties(2, expecting(oneDistribution)),
    Schema.makeFilter(isOneDistribution, expecting(oneDistribution)),
    Schema.makeFilter(isInOrder, expecting("p50 above 0 and p99 not below it"))
  )
]).annotate({
  identifier: "Distribution",
  title: "A duration, the same each time or drawn from a distribution"
})

export type Distribution = typeof Distribution.Type
export type Time = typeof Time.Type

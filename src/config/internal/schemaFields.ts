import * as Schema from "effect/Schema"

/** The expectation in the message for a rejected value. */
export const expecting = (expected: string) => ({ expected })

/** A required key. */
export const described = <S extends Schema.Top>(schema: S, description: string) => schema.annotateKey({ description })

/** An optional key. */
export const maybe = <S extends Schema.Constraint>(schema: S, description: string) =>
  Schema.optionalKey(schema).annotateKey({ description })

export const Amount = Schema.Finite.check(
  Schema.isGreaterThanOrEqualTo(0, expecting("a finite number of at least 0"))
)

export const Above = Schema.Finite.check(Schema.isGreaterThan(0, expecting("a finite number above 0")))

export const Factor = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(1, expecting("a number of at least 1")))

export const Share = Schema.Finite.check(
  Schema.isBetween({ minimum: 0, maximum: 1 }, expecting("a number from 0 to 1"))
)

/** A whole number, or no limit. */
export const count = (minimum: number) =>
  Schema.Union([
    Schema.Finite.check(
      Schema.isInt(),
      Schema.isGreaterThanOrEqualTo(minimum, expecting(`a whole number of at least ${minimum}`))
    ),
    Schema.Literal("Infinity")
  ])

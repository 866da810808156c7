import * as Schema from "effect/Schema"
import { Amount, expecting, maybe, millis, Time, upTo, Whole } from "./fields.ts"

const mostTimes = 1_000_000
const mostCounts = 100_000

const sumOf = (counts: ReadonlyArray<number>): number => counts.reduce((sum, count) => sum + count, 0)

const times = {
  at: maybe(
    Schema.Array(Amount).check(upTo(mostTimes)),
    "When each call begins, in milliseconds, in any order."
  ),
  calls: maybe(
    Schema.Array(Whole).check(
      upTo(mostCounts),
      Schema.makeFilter((counts) => sumOf(counts) <= mostTimes, expecting(`at most ${mostTimes} calls in all`))
    ),
    "How many calls begin in each bucket, one bucket after the other: exactly this many, at random times within it."
  ),
  bucket: maybe(
    Time.check(Schema.makeFilter((time) => millis(time) > 0, expecting("a duration above 0"))),
    "How long a bucket of calls is. Default 1 second."
  )
}

interface Written {
  readonly file?: string
  readonly at?: ReadonlyArray<number>
  readonly calls?: ReadonlyArray<number>
  readonly bucket?: Time
}

const hasOne = ({ at, calls, file }: Written): boolean =>
  [at, calls, file].filter((value) => value !== undefined).length === 1

const hasItsBucket = ({ bucket, calls, file }: Written): boolean =>
  bucket === undefined || calls !== undefined || file !== undefined

const bucketOfCalls = Schema.makeFilter(hasItsBucket, expecting("a bucket only together with calls"))

/** Calls that were recorded: one by one, or counted. */
export const Recorded = Schema.Struct(times).check(
  Schema.makeFilter(hasOne, expecting("either at or calls")),
  bucketOfCalls
)

/** The same, or the name of a file that contains them. */
export const RecordedOrFile = Schema.Struct({
  file: maybe(
    Schema.String.check(Schema.isPattern(/^[^\n]{1,1000}$/u, expecting("a path of 1 to 1000 characters"))),
    "A JSON or CSV file with at or calls, in the folder of the scenario or below. The command line reads it."
  ),
  ...times
}).check(
  Schema.makeFilter(hasOne, expecting("one of file, at and calls")),
  bucketOfCalls
).annotate({ identifier: "Arrivals", title: "Calls that were recorded" })

/** When the calls of an open loop begin. */
export const Arrivals = Schema.Union([Schema.Literal("poisson"), Schema.Literal("even"), RecordedOrFile])

export type Arrivals = typeof Arrivals.Type
export type RecordedOrFile = typeof RecordedOrFile.Type

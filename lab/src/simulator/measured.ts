import * as Schema from "effect/Schema"
import { Amount, expecting, maybe, required, Time, upTo, Whole, withDefault } from "./fields.ts"

const Bucket = Schema.Struct({
  calls: required(Whole, "Calls that began."),
  attempts: required(Whole, "Attempts that were sent, first ones and retries."),
  succeeded: required(Whole, "Calls that succeeded in it."),
  failed: required(Whole, "Calls that failed in it.")
}).annotate({ identifier: "MeasuredBucket", title: "What clients did in a period of time" })

const isCounted = (series: ReadonlyArray<typeof Bucket.Type>): boolean => series.some(({ calls }) => calls > 0)

/** What was measured, from time 0 of the scenario on. */
export const Measured = Schema.Struct({
  bucket: withDefault(Time, "1 second", "How long a bucket is."),
  series: required(
    Schema.NonEmptyArray(Bucket).check(
      upTo(10_000),
      Schema.makeFilter(isCounted, expecting("at least one call"))
    ),
    "The buckets, one after the other. What ends after the last of them counts in the last."
  ),
  arrivals: maybe(
    Schema.Array(Amount).check(upTo(1_000_000)),
    "When each call of the first fleet began, in milliseconds. Default: not measured; the calls of a bucket arrive at random times within it."
  ),
  p50: maybe(Time, "Median latency of successful calls, retries included. Default: not measured."),
  p99: maybe(Time, "Their 99th percentile latency. Default: not measured.")
}).annotate({ identifier: "Measured", title: "A measured series of effect-retry" })

export type Measured = typeof Measured.Type
export type MeasuredInput = typeof Measured.Encoded

import type { Fitted } from "./fitted.ts"

/** What a scenario takes from a log, and what it assumes. */
export interface Made {
  readonly timeout: string
  readonly capacity: number | undefined
  /** The capacity that was asked for in place of the found one. */
  readonly asked: number | undefined
  /** Of an instance. */
  readonly workers: number | undefined
}

/** Fewer than this change no figure. */
const few = 0.01

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`

const ofCapacity = (
  { capacity: found, endsBehind, latency }: Fitted,
  { asked, capacity, workers }: Made
): ReadonlyArray<string | false> => [
  capacity === undefined && found.kind !== "found" &&
  "without a capacity nothing overloads the service, and retries cost nothing: measure it and pass --capacity",
  endsBehind && "the log ends in an overload: one that goes on until it is over shows more",
  found.kind === "found" && found.abandoned > few &&
  `${percent(found.abandoned)} disconnected while all requests waited: the capacity is a lower bound`,
  workers === undefined
    ? latency !== undefined && capacity !== undefined &&
      "its latency is what requests took at low load, minus their turn and the wait for it"
    : asked !== undefined &&
      `workers of each instance: ${workers}, as many as the capacity asked for needs with the latency of the log`
]

/** Of a log's twentieths that have a hundred requests or more: the least and the largest share that failed. */
const failedOf = ({ series: { buckets } }: Fitted): readonly [least: number, most: number] => {
  const each = Math.ceil(buckets.length / 20)
  const shares = Array.from({ length: Math.ceil(buckets.length / each) }, (_, n) => {
    const part = buckets.slice(n * each, (n + 1) * each)
    const requests = part.reduce((sum, bucket) => sum + bucket.requests, 0)
    return requests < 100 ? [] : [part.reduce((sum, { failed }) => sum + failed, 0) / requests]
  }).flat()
  return [Math.min(...shares), Math.max(...shares)]
}

/** A scenario has one failure rate: it cannot show when an outage began. */
const ofFailures = (fitted: Fitted): ReadonlyArray<string | false> => {
  const { unexplained } = fitted
  const [least, most] = failedOf(fitted)
  return [
    unexplained > few &&
    `${
      percent(unexplained)
    } failed (429, 503, 504, disconnected) for a reason not in the log: its failure rate has them, at random`,
    unexplained > few && most - least > 0.2 &&
    `from ${percent(least)} to ${
        percent(most)
      } failed, by the time, and its failure rate is the mean: for the outage ` +
      "fit the lines of the outage alone"
  ]
}

/** What the figures of a fitted scenario rest on, and what they cannot show. */
export const notesOf = (fitted: Fitted, made: Made): ReadonlyArray<string> =>
  [
    `assumed, since no log records it: policy none, timeout ${made.timeout}, 4 processes`,
    ...ofCapacity(fitted, made),
    fitted.overlaps &&
    "its files overlap in time: capacity and latency are those of one alone: merge their lines by time",
    fitted.addresses > fitted.instances &&
    `instances: ${fitted.instances} at a time on average, of ${fitted.addresses} addresses`,
    ...ofFailures(fitted),
    fitted.latency === undefined && "without durations the scenario answers immediately: log $request_time",
    fitted.retried === undefined
      ? "if clients retry, its rate includes their retries"
      : fitted.retried.value > 0 && "retries are left out of its rate: its policy makes them"
  ].filter((note) => note !== false)

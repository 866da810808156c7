import type { Fitted } from "./fitted.ts"
import { isAbandoned, isRefusal } from "./meter.ts"

/** What a scenario takes from a log, and what it assumes. */
export interface Made {
  /** The stretch of the log that it replays. */
  readonly fromMillis: number
  readonly durationMillis: number
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

/** Outages in the stretch that is replayed which nothing in the scenario makes: only what fails at other times is its failure rate. */
const ofFailures = (
  { outages, unexplained }: Fitted,
  { durationMillis, fromMillis }: Made
): ReadonlyArray<string | false> => [
  unexplained > few &&
  `${
    percent(unexplained)
  } failed (429, 503, 504, disconnected) for a reason not in the log: its failure rate has them, at random`,
  ...outages.map((outage) => {
    const from = Math.max(0, outage.fromMillis - fromMillis)
    const to = Math.min(durationMillis, outage.toMillis - fromMillis)
    return !outage.isExplained && from < to &&
      `requests fail from ${from / 1000} s to ${to / 1000} s for a reason not in the scenario: add an outage`
  })
]

/** Why nothing is known of the time that requests take. */
export const untimed = ({ statuses }: Fitted): string =>
  statuses.every(({ status }) => isRefusal(status) || isAbandoned(status))
    ? "no successful answers in the log"
    : "no durations in the log"

/** What the figures of a fitted scenario rest on, and what they cannot show. */
export const notesOf = (fitted: Fitted, made: Made): ReadonlyArray<string> =>
  [
    `assumed, since no log records it: policy none, ${
      fitted.timeout === undefined ? `timeout ${made.timeout}, ` : ""
    }4 processes`,
    fitted.timeout !== undefined &&
    `timeout ${made.timeout}: ${fitted.timeout.requests} requests ended without an answer after it`,
    ...ofCapacity(fitted, made),
    fitted.overlaps &&
    "its files overlap in time: capacity and latency are those of one alone: merge their lines by time",
    fitted.addresses > fitted.instances &&
    `instances: ${fitted.instances} at a time on average, of ${fitted.addresses} addresses`,
    ...ofFailures(fitted, made),
    fitted.latency === undefined && `${untimed(fitted)}: the scenario answers immediately`,
    fitted.retried === undefined
      ? "if clients retry, its rate includes their retries"
      : fitted.retried.value > 0 && "retries are left out of its rate: its policy makes them"
  ].filter((note) => note !== false)

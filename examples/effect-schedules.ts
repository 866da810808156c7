/**
 * Mixing with Effect's own schedules: a policy is a schedule, and a
 * schedule can be lifted into a policy.
 *
 * Limits can be inside the policy or around it. One around it, such as
 * `Schedule.upTo`, costs no token either, but observers are notified of
 * a stop for the reason "schedule", whatever the limit.
 */
import { Duration, Effect, Schedule } from "effect"
import { awsStandard, RetryPolicy, withRetry } from "effect-retry"
import { down, main, show } from "./support/program.ts"

/**
 * Delays of any schedule, with limits and a quota of this library. When
 * the schedule ends, so does retrying.
 */
export const lifted = RetryPolicy.fromSchedule(
  Schedule.fibonacci("100 millis")
).pipe(
  RetryPolicy.capped("250 millis"),
  RetryPolicy.maxAttempts(5),
  RetryPolicy.whileRetryable,
  RetryPolicy.quotaGated({ cost: 5 })
)

export const poll = <E>(send: Effect.Effect<string, E>) =>
  send.pipe(withRetry(lifted))

/** Watching from outside is fine: the delays, logged. */
const watched = awsStandard.pipe(
  Schedule.tap(({ duration }) =>
    Effect.logInfo(`retry in ${Duration.format(duration)}`)
  )
)

export const watch = <E>(send: Effect.Effect<string, E>) =>
  Effect.retry(send, watched)

/**
 * Two attempts, as with `RetryPolicy.maxAttempts(2)`, whose reason
 * would be "max-attempts".
 */
const limitedOutside = awsStandard.pipe(Schedule.upTo({ times: 1 }))

export const limited = <E>(send: Effect.Effect<string, E>) =>
  Effect.retry(send, limitedOutside)

main(
  import.meta.url,
  show("lifted", down, poll),
  show("watched", [{ status: 503 }], watch),
  show("limited from outside", down, limited)
)

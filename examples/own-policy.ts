/**
 * Your own policy from parts: a backoff, changes to its delays, and
 * limits.
 *
 * Combinators that change the delay apply in order: a cap after the
 * jitter would make all delays at the cap equal. Limits can go
 * anywhere. However many combinators it has, a policy decides in one
 * step.
 */
import { Effect, Schedule } from "effect"
import {
  awsStandard,
  Backoff,
  RetryPolicy,
  withRetry
} from "effect-retry"
import { down, main, show } from "./support/program.ts"

export interface Busy {
  readonly busy: boolean
}

/**
 * From half to all of 100, 200, 400, 800, 1000, 1000, ... milliseconds,
 * until 3 seconds after the call began.
 */
export const patient = Backoff.exponential("100 millis").pipe(
  RetryPolicy.capped("1 second"),
  RetryPolicy.jittered("equal"),
  RetryPolicy.deadline("3 seconds"),
  RetryPolicy.whileRetryable
)

/** The same policy with one more limit: policies are values. */
export const brief = patient.pipe(RetryPolicy.maxAttempts(3))

/** Any schedule can take limits, jitter and a quota. */
export const own = Schedule.exponential("100 millis").pipe(
  RetryPolicy.jittered,
  RetryPolicy.capped("5 seconds"),
  RetryPolicy.quotaGated
)

/** Five attempts by the rules of AWS, then one a minute, if busy. */
export const stubborn = awsStandard.pipe(
  RetryPolicy.withMaxAttempts(5),
  RetryPolicy.concat(Schedule.spaced("1 minute")),
  RetryPolicy.while(({ error }: RetryPolicy.Failure<Busy>) =>
    error.busy
  )
)

/**
 * A deadline stops retrying early rather than sleep past it, but never
 * interrupts an attempt: use `Effect.timeout` for that, inside the
 * retry for one attempt. The default classifier knows its
 * `TimeoutError`.
 */
export const load = <E>(send: Effect.Effect<string, E>) =>
  send.pipe(
    Effect.timeout("500 millis"),
    withRetry(patient)
  )

main(
  import.meta.url,
  show("patient", down, load),
  show("brief", down, (send) => send.pipe(withRetry(brief)))
)

/**
 * An own policy from parts: a back-off, what is done to its delays, and what ends it.
 *
 * Combinators that change the delay apply in the order in which they stand: a cap after the jitter would make all delays
 * at the cap the same. Limits may stand anywhere. However many combinators it has, a policy decides in one step.
 */
import { Effect } from "effect"
import { Backoff, RetryPolicy, withRetry } from "effect-retry"

/** From half to all of 100, 200, 400, 800, 1000, 1000, ... milliseconds, until 3 seconds after the call began. */
export const patient = Backoff.exponential({ base: "100 millis", factor: 2 }).pipe(
  RetryPolicy.capped("1 second"),
  RetryPolicy.jittered("equal"),
  RetryPolicy.deadline("3 seconds"),
  RetryPolicy.whileRetryable
)

/** The same policy with one more limit: policies are values. */
export const brief = patient.pipe(RetryPolicy.maxAttempts(3))

/**
 * A deadline stops retrying early rather than sleep past it, but never interrupts an attempt: that is `Effect.timeout`,
 * inside the retry for one attempt. Its `TimeoutError` is known to the default classifier.
 */
export const load = <E>(send: Effect.Effect<string, E>) =>
  send.pipe(
    Effect.timeout("500 millis"),
    withRetry(patient)
  )

/**
 * Your own policy from parts: a backoff, changes to its delays, and limits.
 *
 * Combinators that change the delay apply in order: a cap after the jitter would make all delays at the cap equal.
 * Limits can go anywhere. However many combinators it has, a policy decides in one step.
 */
import { Effect } from "effect"
import { Backoff, RetryPolicy, withRetry } from "effect-retry"
import { down, main, show } from "./support/program.ts"

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
 * A deadline stops retrying early rather than sleep past it, but never interrupts an attempt: use `Effect.timeout` for
 * that, inside the retry for one attempt. The default classifier knows its `TimeoutError`.
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

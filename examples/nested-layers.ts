/**
 * Nested layers: two layers of three attempts are nine sends, unless the inner one leaves retrying to the outer.
 *
 * A library that retries cannot know whether its caller does. With `outermostOnly` it does not have to: called on its
 * own it retries, called inside someone's attempt it fails at once and lets them.
 */
import type { Effect } from "effect"
import { Backoff, RetryPolicy, withRetry } from "effect-retry"

const threeTimes = Backoff.fixed({ delay: "100 millis" }).pipe(
  RetryPolicy.maxAttempts(3),
  RetryPolicy.whileRetryable
)
const modestly = threeTimes.pipe(RetryPolicy.outermostOnly)

/** The store retries: three sends. */
export const store = <E>(send: Effect.Effect<string, E>) => send.pipe(withRetry(modestly))

/** The service on top of it retries too, and it is the one that does: still three sends. */
export const service = <E>(send: Effect.Effect<string, E>) => store(send).pipe(withRetry(threeTimes))

/** What happens otherwise: three times three. */
export const multiplied = <E>(send: Effect.Effect<string, E>) => send.pipe(withRetry(threeTimes), withRetry(threeTimes))

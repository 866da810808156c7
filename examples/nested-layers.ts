/**
 * Nested layers: two layers of three attempts make nine sends, unless
 * the inner one leaves retrying to the outer.
 *
 * A library that retries cannot know whether its caller does. With
 * `outermostOnly` it does not have to: called on its own it retries,
 * called inside another call's attempt it fails immediately and leaves
 * the retries to it.
 */
import type { Effect } from "effect"
import { Backoff, RetryPolicy, withRetry } from "effect-retry"
import { down, main, show } from "./support/program.ts"

const threeTimes = Backoff.fixed("100 millis").pipe(
  RetryPolicy.maxAttempts(3),
  RetryPolicy.whileRetryable
)
const modestly = threeTimes.pipe(RetryPolicy.outermostOnly)

/** The store retries: three sends. */
export const store = <E>(send: Effect.Effect<string, E>) =>
  send.pipe(withRetry(modestly))

/**
 * The service on top of it retries too, and its retries win: still
 * three sends.
 */
export const service = <E>(send: Effect.Effect<string, E>) =>
  store(send).pipe(withRetry(threeTimes))

/** Without it: three times three. */
export const multiplied = <E>(send: Effect.Effect<string, E>) =>
  send.pipe(withRetry(threeTimes), withRetry(threeTimes))

main(
  import.meta.url,
  show("the store alone", down, store),
  show("the service on top of it", down, service),
  show("both retrying", down, multiplied)
)

/**
 * The server's hint: waiting as long as the server asks, within bounds.
 *
 * A hint comes with the error: a `retryAfter` field as here, or the
 * `retry-after` and `x-amz-retry-after` headers of an HTTP or AWS
 * error. It can lengthen a delay; it never shortens one, never revives
 * a retry, never exceeds a deadline.
 */
import { Duration, type Effect } from "effect"
import {
  Backoff,
  RetryInfo,
  RetryPolicy,
  withRetry
} from "effect-retry"
import { main, show } from "./support/program.ts"

export class TooManyRequests
  extends RetryInfo.TaggedError("TooManyRequests", {
    throttling: true
  })<{
    readonly retryAfter: Duration.Duration
  }>
{}

const backoff = Backoff.fixed("1 second").pipe(
  RetryPolicy.maxAttempts(3),
  RetryPolicy.whileRetryable
)

/**
 * By default a hint adds at most 5 seconds to the delay, as in retry
 * behavior 2.1: a longer one is cut.
 */
export const following = backoff.pipe(RetryPolicy.honorRetryAfter())

/**
 * A longer hint can also end the call immediately: the caller finds out
 * now and not in an hour.
 */
export const givingUp = backoff.pipe(
  RetryPolicy.honorRetryAfter({ atMost: "1 minute", beyond: "stop" })
)

type Send = Effect.Effect<string, TooManyRequests>

export const search = (send: Send) => send.pipe(withRetry(following))
export const searchOrGiveUp = (send: Send) =>
  send.pipe(withRetry(givingUp))

const hint = (retryAfter: Duration.Input) =>
  new TooManyRequests({
    retryAfter: Duration.fromInputUnsafe(retryAfter)
  })

main(
  import.meta.url,
  show("a hint of 200 ms", [hint("200 millis")], search),
  show("a hint of 3 s", [hint("3 seconds")], search),
  show("a hint of 1 h, cut", [hint("1 hour")], search),
  show("a hint of 1 h, refused", [hint("1 hour")], searchOrGiveUp)
)

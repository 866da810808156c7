/**
 * Why it stopped: the caller gets its own error, unchanged; the reason is told beside it.
 *
 * Three ways to hear it: the last output of the schedule, an observer, metrics. Events on the current span, `retry` and
 * `retry.stopped`, come without being asked for.
 */
import { Effect, Layer } from "effect"
import { attempt, awsStandard, RetryDecision, RetryMetrics, RetryObserver } from "effect-retry"

/** The last output of the policy, with `Effect.retryOrElse`: for code that goes on differently. */
export const orCached = <E>(send: Effect.Effect<string, E>) =>
  Effect.retryOrElse(
    attempt(send),
    awsStandard,
    (error, decision) =>
      RetryDecision.isStop(decision) && decision.reason === "quota-exhausted"
        ? Effect.succeed("from the cache")
        : Effect.fail(error)
  )

/** An observer, for logs and the like. It is told synchronously, while the call runs, so it has to be quick. */
export const logging = (log: (line: string) => void): RetryObserver.RetryObserver => ({
  onRetry: (token) => log(`retry ${token.retry} in ${token.delayMillis} ms for ${token.cost} tokens`),
  onStop: (stopped) => log(`stopped after ${stopped.attempts}: ${stopped.reason}`)
})

/** Metrics (`retry_attempts`, `retry_stops` by reason, ...) beside the observer. */
export const observed = (log: (line: string) => void) =>
  RetryMetrics.layer.pipe(Layer.provide(RetryObserver.layer(logging(log))))

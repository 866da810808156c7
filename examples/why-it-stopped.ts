/**
 * Why it stopped: the caller gets its own error, unchanged; the reason
 * is reported separately.
 *
 * Ways to see it: an explanation beforehand, logs, a fallback, the last
 * output of the schedule, an observer, metrics. Events on the current
 * span, `retry` and `retry.stopped`, are added by default.
 */
import { Duration, Effect, Layer } from "effect"
import {
  awsStandard,
  RetryDecision,
  RetryMetrics,
  RetryObserver,
  RetryPolicy,
  RetryQuota,
  withRetryOrElse
} from "effect-retry"
import { down, main, print, show } from "./support/program.ts"

/**
 * What the policy would do about an error, without a call: in a test,
 * or in a console.
 */
export const explained = (error: unknown): string =>
  String(RetryPolicy.explain(awsStandard, error))

/**
 * Logs: each retry at Debug, and why a call is not retried at Warning,
 * once.
 */
export const logs = RetryObserver.layer(RetryObserver.logger)

/** A fallback that knows the last error and the reason. */
export const orCached = <E>(send: Effect.Effect<string, E>) =>
  send.pipe(
    withRetryOrElse(
      awsStandard,
      (error: E, { reason }) =>
        reason === "quota-exhausted"
          ? Effect.succeed("from the cache")
          : Effect.fail(error)
    )
  )

/**
 * The same from the last output of the policy, with
 * `Effect.retryOrElse`.
 */
export const orCachedBySchedule = <E>(send: Effect.Effect<string, E>) =>
  Effect.retryOrElse(
    send,
    awsStandard,
    (error, decision) =>
      RetryDecision.isStop(decision) &&
        decision.reason === "quota-exhausted"
        ? Effect.succeed("from the cache")
        : Effect.fail(error)
  )

/**
 * An observer, for logs and the like. The call continues when it
 * returns, so it must be quick.
 */
export const logging = (
  log: (line: string) => void
): RetryObserver.RetryObserver => ({
  onRetry: ({ cost, delay, retry }) =>
    log(
      `retry ${retry} in ${
        Duration.toMillis(delay)
      } ms for ${cost} tokens`
    ),
  onStop: ({ attempts, reason }) =>
    log(`stopped after ${attempts}: ${reason}`)
})

/**
 * An observer that returns an effect: the call waits for it. It gets
 * the error, and runs with the caller's services.
 */
export const warning: RetryObserver.RetryObserver = {
  onStop: ({ reason }, error) =>
    Effect.logWarning(`gave up: ${reason}`, error)
}

/**
 * Metrics (`retry_attempts_total`, `retry_stops_total` by reason, ...)
 * next to the observer.
 */
export const observed = (log: (line: string) => void) =>
  Layer.merge(RetryMetrics.layer(), RetryObserver.layer(logging(log)))

/**
 * Under `Effect.retry` the loop is Effect's: this notifies observers of
 * the call as a whole.
 */
export const observedCall = <A, E>(send: Effect.Effect<A, E>) =>
  Effect.retry(send, awsStandard).pipe(RetryObserver.call)

main(
  import.meta.url,
  print(explained(new TypeError("fetch failed"))),
  show(
    "three attempts",
    down,
    (send) => orCached(send).pipe(Effect.provide(observed(console.log)))
  ),
  show(
    "an empty quota",
    down,
    (send) =>
      orCached(send).pipe(
        Effect.provide(RetryQuota.layer({ capacity: 4 }))
      )
  ),
  show(
    "an error that is final",
    [{ status: 404 }],
    (send) => orCached(send).pipe(Effect.provide(logs))
  )
)

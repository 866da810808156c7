import * as RetryInfo from "effect-retry/RetryInfo"
import * as Duration from "effect/Duration"

/**
 * Why an attempt fails in the simulator.
 *
 * - `"timeout"`: no answer in time.
 * - `"unavailable"`: an outage.
 * - `"error"`: the service failed by its failure rate, or a service that it calls did.
 * - `"overloaded"`: the queue was full.
 * - `"throttled"`: beyond the limit of the service.
 * - `"dropped"`: the throttle of the client dropped it, and it was never sent.
 * - `"refused"`: another gate of the client refused it, and it was never sent.
 */
export type FailureKind = "timeout" | "unavailable" | "error" | "overloaded" | "throttled" | "dropped" | "refused"

/** A failed attempt, with its facts for the policy. Attempts that fail alike share one. */
export interface Failure {
  readonly kind: FailureKind
  readonly [RetryInfo.TypeId]: RetryInfo.RetryInfo
}

/** Whether an error is a failure of the simulator. */
export const isFailure = (error: unknown): error is Failure =>
  typeof error === "object" && error !== null && RetryInfo.TypeId in error && "kind" in error

const failure = (kind: FailureKind, info: RetryInfo.RetryInfo): Failure => ({ kind, [RetryInfo.TypeId]: info })

export const timedOut = failure("timeout", RetryInfo.timedOut)
export const unavailable = failure("unavailable", RetryInfo.transient)
export const failed = failure("error", RetryInfo.transient)
export const overloaded = failure("overloaded", RetryInfo.transient)
export const dropped = failure("dropped", RetryInfo.notRetryable)
export const refused = failure("refused", RetryInfo.notRetryable)

/** A throttle, with the hint of the service if it gives one. */
export const throttled = (retryAfterMillis: number | undefined): Failure =>
  failure(
    "throttled",
    RetryInfo.throttled(retryAfterMillis === undefined ? undefined : Duration.millis(retryAfterMillis))
  )

/**
 * What a policy decides about a failed attempt: retry, with a token, or stop, with a reason.
 *
 * Both are the output of a policy's schedule. A retried attempt finds its token in `Schedule.CurrentMetadata`; whoever
 * wants to know why retrying stopped reads the last output (`Effect.retryOrElse`), the span or the metrics. The error
 * that the caller sees is its own, unchanged.
 *
 * @since 0.1.0
 */

import * as Duration from "effect/Duration"
import type { Held } from "./internal/state/store.ts"
import type { RetryInfo } from "./RetryInfo.ts"

/**
 * Why a call is not retried.
 *
 * - `"not-retryable"`: the classifier does not know the error, forbids a retry, or holds it for `"Maybe"` safe.
 * - `"max-attempts"`: the policy's attempts are used up.
 * - `"quota-exhausted"`: the quota has too few tokens for the retry.
 * - `"deadline"`: the retry would begin at the deadline or after it.
 * - `"retry-after-too-long"`: the server asked for a longer wait than the policy allows.
 * - `"nested"`: an outer call retries already, and the policy leaves it to that one.
 * - `"schedule"`: the delays have ended: a lifted schedule, or a function that gave none.
 *
 * @category models
 * @since 0.1.0
 */
export type StopReason =
  | "not-retryable"
  | "max-attempts"
  | "quota-exhausted"
  | "deadline"
  | "retry-after-too-long"
  | "nested"
  | "schedule"

/**
 * Leave to retry: the attempt that failed, how long to wait, what the retry holds of the quota.
 *
 * @category models
 * @since 0.1.0
 */
export class RetryToken {
  readonly _tag = "RetryToken"
  /** The attempts made so far, which is also the number of this retry: 1 for the first. */
  readonly attempt: number
  /** How long to wait before the retry, in milliseconds. */
  readonly delayMillis: number
  /** The facts of the error; `undefined` when the classifier did not know it. */
  readonly info: RetryInfo | undefined
  /** @internal */
  readonly held: Held | undefined
  /**
   * The failure that is retried.
   *
   * @internal
   */
  readonly error: unknown
  /**
   * When the call ends, in milliseconds of the monotonic clock; `Infinity` without a deadline.
   *
   * @internal
   */
  readonly deadlineAtMillis: number
  /**
   * The deadline passed while the retry waited for a send token.
   *
   * @internal
   */
  expired = false
  /**
   * Where the fiber that holds the token keeps it until it leaves.
   *
   * @internal
   */
  pending: { token: RetryToken | undefined } | undefined = undefined
  private claimed = false

  /** @internal */
  get isUnclaimed(): boolean {
    return !this.claimed
  }

  /** @internal */
  constructor(
    failure: { readonly attempt: number; readonly error: unknown; readonly info: RetryInfo | undefined },
    delayMillis: number,
    held: Held | undefined,
    deadlineAtMillis: number
  ) {
    this.attempt = failure.attempt
    this.error = failure.error
    this.info = failure.info
    this.delayMillis = delayMillis
    this.held = held
    this.deadlineAtMillis = deadlineAtMillis
  }

  /**
   * The retry leaves: whatever it holds is spent unless it succeeds. Only the first to claim a token has it.
   *
   * @internal
   */
  claimUnsafe(): boolean {
    if (this.claimed) return false
    this.claimed = true
    if (this.pending?.token === this) this.pending.token = undefined
    this.held?.resumeUnsafe()
    return true
  }

  /**
   * The retry never leaves: what it holds goes back for good.
   *
   * @internal
   */
  cancelUnsafe(): void {
    if (this.claimUnsafe()) this.held?.cancelUnsafe()
  }

  /** How long to wait before the retry. */
  get delay(): Duration.Duration {
    return Duration.millis(this.delayMillis)
  }

  /** Tokens of the quota that the retry holds. */
  get cost(): number {
    return this.held === undefined ? 0 : this.held.cost
  }

  toJSON(): unknown {
    return { _tag: this._tag, attempt: this.attempt, delayMillis: this.delayMillis, cost: this.cost }
  }
}

/**
 * The end of retrying: why, and after how many attempts.
 *
 * @category models
 * @since 0.1.0
 */
export class RetryStopped {
  readonly _tag = "RetryStopped"
  /** Why the call is not retried. */
  readonly reason: StopReason
  /** The attempts made. */
  readonly attempts: number
  /** The facts of the last error; `undefined` when the classifier did not know it. */
  readonly info: RetryInfo | undefined
  /** How long the caller is still held back before it fails, in milliseconds: 0 but for long polling. */
  readonly delayMillis: number

  constructor(reason: StopReason, attempts: number, info: RetryInfo | undefined, delayMillis = 0) {
    this.reason = reason
    this.attempts = attempts
    this.info = info
    this.delayMillis = delayMillis
  }
}

/**
 * What a policy decides about a failed attempt.
 *
 * @category models
 * @since 0.1.0
 */
export type RetryDecision = RetryToken | RetryStopped

/**
 * Checks whether a value is a `RetryToken`.
 *
 * @category guards
 * @since 0.1.0
 */
export const isRetryToken = (u: unknown): u is RetryToken => u instanceof RetryToken

/**
 * Checks whether a value is a `RetryStopped`.
 *
 * @category guards
 * @since 0.1.0
 */
export const isRetryStopped = (u: unknown): u is RetryStopped => u instanceof RetryStopped

/**
 * What a policy decides about a failed attempt: retry, after a delay, or stop, for a reason.
 *
 * Both are the output of a policy's schedule. A retried attempt finds its {@link Retry} in `Schedule.CurrentMetadata`.
 * The reason retrying stopped is the last output (`Effect.retryOrElse`, `withRetryOrElse`), and is reported to
 * observers, spans and metrics. The caller sees its own error, unchanged.
 *
 * @since 0.1.0
 */

import * as Duration from "effect/Duration"
import { get } from "./internal/tryGet.ts"
import type { RetryInfo } from "./RetryInfo.ts"

const TypeId = "~effect-retry/RetryDecision"

/**
 * Why a call is not retried.
 *
 * - `"unknown-error"`: the classifier does not know the error, and it is not a server's response.
 * - `"not-safe"`: the call may have been processed, and repeating it could process it twice: it is only `"Maybe"` safe.
 * - `"final"`: the same call would fail again: the error says so, or it is a response (status 400 or above) that the
 *   classifier does not know.
 * - `"vetoed"`: a rule forbids it (`RetryClassifier.vetoing`), or a gate or the quota refused the send.
 * - `"condition"`: `RetryPolicy.while` does not hold for the failure.
 * - `"max-attempts"`: the policy's attempts are used up.
 * - `"quota-exhausted"`: the quota has too few tokens for the retry.
 * - `"deadline"`: the retry would begin at the deadline or after it.
 * - `"retry-after-too-long"`: the server asked for a longer wait than the policy allows.
 * - `"nested"`: an outer call already retries, and the policy leaves retrying to it.
 * - `"schedule"`: the delays ended: a lifted schedule is done, a function returned none, or a limit around the policy.
 *
 * @category models
 * @since 0.1.0
 */
export type StopReason = (typeof stopReasons)[number]

/**
 * Each `StopReason`, for a Schema, a metric or a chart that lists them all.
 *
 * @category models
 * @since 0.1.0
 */
export const stopReasons = [
  "unknown-error",
  "not-safe",
  "final",
  "vetoed",
  "condition",
  "max-attempts",
  "quota-exhausted",
  "deadline",
  "retry-after-too-long",
  "nested",
  "schedule"
] as const

/** A run whose send has failed. */
interface Failed {
  readonly attempt: number
  readonly info: RetryInfo | undefined
  readonly gate?: string | undefined
}

/** What both have. */
class Decided {
  /** @internal */
  constructor(
    /** The facts of the last error; `undefined` if the classifier did not know it. */
    readonly info: RetryInfo | undefined,
    /** @internal */
    readonly delayMillis: number
  ) {}

  /** How long to wait before the retry; how much longer to hold the caller before it fails, zero except for long polling. */
  get delay(): Duration.Duration {
    return Duration.millis(this.delayMillis)
  }

  /** @internal */
  get [TypeId](): typeof TypeId {
    return TypeId
  }
}

/**
 * Permission to retry: the number of the retry, how long to wait, and the quota tokens reserved for it. Immutable.
 *
 * @category models
 * @since 0.1.0
 */
export class Retry extends Decided {
  readonly _tag = "Retry"
  /** The number of the retry: 1 for the first. It equals the number of attempts made so far. */
  readonly retry: number
  /** The most attempts that the policy makes, the first included: a whole number, or `Infinity`. */
  // A field that begins as a number and may be Infinity is boxed in each retry.
  readonly maxAttempts: number = undefined as never

  /** @internal */
  constructor(
    failed: Failed,
    delayMillis: number,
    /** Quota tokens reserved for the retry. */
    readonly cost: number,
    maxAttempts: number
  ) {
    super(failed.info, delayMillis)
    this.retry = failed.attempt
    this.maxAttempts = maxAttempts
  }

  toJSON(): unknown {
    return { _tag: this._tag, retry: this.retry, delayMillis: this.delayMillis, cost: this.cost }
  }
}

/**
 * The end of retrying: why, and after how many attempts.
 *
 * @category models
 * @since 0.1.0
 */
export class Stop extends Decided {
  readonly _tag = "Stop"
  /** The attempts made. */
  readonly attempts: number
  /**
   * The gate that refused a retry, such as `"ConcurrencyLimiter"`, or `"gate"` if it has no name; otherwise `undefined`:
   * a first send that is refused fails with the error of the gate.
   */
  readonly gate: string | undefined

  /** @internal */
  constructor(
    failed: Failed,
    /** Why the call is not retried. */
    readonly reason: StopReason,
    delayMillis = 0
  ) {
    super(failed.info, delayMillis)
    this.attempts = failed.attempt
    this.gate = failed.gate
  }

  toJSON(): unknown {
    const { _tag, attempts, delayMillis, gate, reason } = this
    return { _tag, reason, ...gate && { gate }, attempts, delayMillis }
  }
}

/**
 * What a policy decides about a failed attempt.
 *
 * @category models
 * @since 0.1.0
 */
export type RetryDecision = Retry | Stop

/** By its mark, not its class: a program may load two copies of this package. */
const isDecision = (u: unknown, tag: RetryDecision["_tag"]): boolean =>
  get(u, TypeId) === TypeId && (u as RetryDecision)._tag === tag

/**
 * Checks whether a value is a {@link Retry}.
 *
 * @category guards
 * @since 0.1.0
 */
export const isRetry = (u: unknown): u is Retry => isDecision(u, "Retry")

/**
 * Checks whether a value is a {@link Stop}.
 *
 * @category guards
 * @since 0.1.0
 */
export const isStop = (u: unknown): u is Stop => isDecision(u, "Stop")

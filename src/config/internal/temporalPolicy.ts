import * as Backoff from "../../Backoff.ts"
import { get } from "../../internal/tryGet.ts"
import type { RetryClassifier } from "../../RetryClassifier.ts"
import * as RetryPolicy from "../../RetryPolicy.ts"
import { isCalled, type Place, retryingIf } from "./importedDocument.ts"

/**
 * A policy, and the classifier that says which errors it retries.
 *
 * @category models
 * @since 0.1.0
 */
export interface Imported {
  readonly policy: RetryPolicy.RetryPolicy
  readonly classifier: RetryClassifier
}

const keys = ["initialInterval", "backoffCoefficient", "maximumInterval", "maximumAttempts", "nonRetryableErrorTypes"]

/** Timeouts of all attempts together are in this form too. */
const triesAgain: ReadonlySet<unknown> = new Set([undefined, "START_TO_CLOSE", "HEARTBEAT"])

/** Whether a failure itself forbids the retry: see `isRetryable` of the service. */
const isFinal = (error: unknown): boolean =>
  get(error, "nonRetryable") === true || !triesAgain.has(get(error, "timeoutType"))

/** @see service/history/workflow/retry.go */
export const temporal = (document: Place): Imported => {
  document.only(keys)
  const initialMillis = document.at("initialInterval").positiveDuration(1000)
  const factor = document.at("backoffCoefficient").number(1, 2)
  const capMillis = document.at("maximumInterval").positiveDuration(100 * initialMillis)
  const attempts = document.at("maximumAttempts").whole(0, 0)
  const listed = document.at("nonRetryableErrorTypes").list((type) => type.text(), [])
  const never = new Set(["CancelledFailure", "TerminatedFailure", ...listed])
  const growing = Backoff.exponential(initialMillis, factor).pipe(RetryPolicy.capped(capMillis))
  const limited = attempts === 0 ? growing : growing.pipe(RetryPolicy.maxAttempts(attempts))
  return {
    policy: RetryPolicy.whileRetryable(limited),
    classifier: retryingIf((error) => !isFinal(error) && !isCalled(error, never))
  }
}

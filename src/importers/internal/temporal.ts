import * as Backoff from "../../Backoff.ts"
import type { RetryClassifier } from "../../RetryClassifier.ts"
import * as RetryPolicy from "../../RetryPolicy.ts"
import { listOf, numberOf, onlyOf, positiveDurationOf, textOf, wholeOf } from "./document.ts"
import { isCalled, retryingIf } from "./errors.ts"

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

/** @see service/history/workflow/retry.go */
export const temporal = (json: unknown): Imported => {
  const fields = onlyOf(json, [], keys)
  const initialMillis = positiveDurationOf(fields["initialInterval"], ["initialInterval"], 1000)
  const factor = numberOf(fields["backoffCoefficient"], ["backoffCoefficient"], 1, 2)
  const capMillis = positiveDurationOf(fields["maximumInterval"], ["maximumInterval"], 100 * initialMillis)
  const attempts = wholeOf(fields["maximumAttempts"], ["maximumAttempts"], 0, 0)
  const types = listOf(fields["nonRetryableErrorTypes"] ?? [], ["nonRetryableErrorTypes"])
  const never = new Set(types.map((type, index) => textOf(type, ["nonRetryableErrorTypes", index])))
  const growing = Backoff.exponential({ base: initialMillis, factor }).pipe(RetryPolicy.capped(capMillis))
  const limited = attempts === 0 ? growing : growing.pipe(RetryPolicy.maxAttempts(attempts))
  return { policy: RetryPolicy.whileRetryable(limited), classifier: retryingIf((error) => !isCalled(error, never)) }
}

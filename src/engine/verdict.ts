import { statusIn } from "../internal/classification/resource.ts"
import { isRefusal } from "../internal/refused.ts"
import type { StopReason } from "../RetryDecision.ts"
import type { RetryInfo } from "../RetryInfo.ts"
import type { Compiled, Cost } from "./compiled.ts"
import type { Failing } from "./delay.ts"

/** Whether a policy retries a failure, as far as its facts say. */
export const isRetryable = (whileRetryable: Compiled["whileRetryable"], failing: Failing): boolean =>
  typeof whileRetryable === "function" ? whileRetryable(failing) : !isFinal(whileRetryable, failing.info)

/** Whether a policy does not retry a failure with these facts, whatever else it asks. */
export const isFinal = (whileRetryable: Compiled["whileRetryable"], info: RetryInfo | undefined): boolean =>
  (whileRetryable === "yes" || whileRetryable === "maybe") && info?.safety !== "Yes" &&
  !(info?.safety === "Maybe" && whileRetryable === "maybe")

/** Why a failure is not retried that the policy does not consider retryable. */
const reasonOf = ({ error, info }: Failing): StopReason => {
  // An error unknown to the classifier, but with a server's response: the server would answer the same again.
  if (info === undefined) return statusIn(error)! >= 400 ? "final" : "unknown-error"
  if (info.safety === "Maybe") return "not-safe"
  return info.vetoed ? "vetoed" : "final"
}

/** What a retry takes from a quota after this failure. */
export const costOf = (quota: Cost | undefined, info: RetryInfo | undefined): number => {
  if (quota === undefined) return 0
  if (info?.throttling) return quota.throttlingCost
  return info?.timeout ? quota.timeoutCost : quota.cost
}

/** What the retry of a failure costs, or why it is not retried, as far as known before the quota is asked. */
export const verdictOf = (compiled: Compiled, failing: Failing, isNested: boolean): number | StopReason => {
  if (isNested) return "nested"
  if (compiled.attemptsFirst === true && failing.attempt >= compiled.maxAttempts) return "max-attempts"
  if (isRefusal(failing.error)) return "vetoed"
  if (!isRetryable(compiled.whileRetryable, failing)) return reasonOf(failing)
  if (compiled.conditions?.some((holds) => !holds(failing)) === true) return "condition"
  if (failing.attempt >= compiled.maxAttempts) return "max-attempts"
  return costOf(compiled.quota, failing.info)
}

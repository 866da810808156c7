import * as Option from "effect/Option"
import * as Backoff from "../../Backoff.ts"
import * as RetryClassifier from "../../RetryClassifier.ts"
import * as RetryPolicy from "../../RetryPolicy.ts"
import { isCalled, type Place, retryingIf } from "./importedDocument.ts"
import type { Imported } from "./temporalPolicy.ts"

/**
 * A retrier of Step Functions: a policy for the errors of these names.
 *
 * @category models
 * @since 0.1.0
 */
export interface Retrier extends Imported {
  readonly errorEquals: ReadonlyArray<string>
}

const all = "States.ALL"

/** Only `States.ALL` stands for errors with other names, except for these. */
const neverCaught = new Set<unknown>(["States.DataLimitExceeded", "States.Runtime"])

const isTimeout = (error: unknown): boolean =>
  Option.exists(RetryClassifier.classify(RetryClassifier.defaultClassifier, error), ({ timeout }) => timeout)

const matches = (names: ReadonlySet<string>) => (error: unknown): boolean => {
  if (isCalled(error, names)) return true
  const time = isTimeout(error)
  if (names.has("States.Timeout") && time) return true
  if (names.has("States.TaskFailed") && !time && !isCalled(error, neverCaught)) return true
  return names.has(all) && !isCalled(error, neverCaught)
}

/** The longest delay, in seconds. */
const mostSeconds = 31_622_400

const backOff = (retrier: Place): RetryPolicy.RetryPolicy => {
  const seconds = retrier.at("IntervalSeconds").whole(1, 1)
  const factor = retrier.at("BackoffRate").number(1, 2)
  const strategy = retrier.at("JitterStrategy")
  const jitter = strategy.value ?? "NONE"
  if (jitter !== "NONE" && jitter !== "FULL") strategy.refuse(`"FULL" or "NONE"`)
  const growing = Backoff.exponential(seconds * 1000, factor)
  const most = retrier.at("MaxDelaySeconds")
  const cap = most.value === undefined ? undefined : most.whole(1)
  if (cap !== undefined && cap >= mostSeconds) most.refuse(`a whole number of seconds below ${mostSeconds}`)
  const capped = cap === undefined ? growing : growing.pipe(RetryPolicy.capped(cap * 1000))
  return jitter === "FULL" ? capped.pipe(RetryPolicy.jittered("full")) : capped
}

const keys = [
  "ErrorEquals",
  "IntervalSeconds",
  "BackoffRate",
  "MaxAttempts",
  "MaxDelaySeconds",
  "JitterStrategy",
  "Comment"
]

const retrierOf = (retrier: Place, isLast: boolean) => {
  const errors = retrier.only(keys).at("ErrorEquals")
  const errorEquals = errors.list((name) => name.text())
  if (errorEquals.length === 0) errors.refuse("an array with at least one name")
  if (errorEquals.includes(all) && (errorEquals.length > 1 || !isLast)) {
    errors.refuse(`"${all}" alone, in the last retrier`)
  }
  const retries = retrier.at("MaxAttempts").whole(0, 3)
  return {
    errorEquals,
    matches: matches(new Set(errorEquals)),
    policy: backOff(retrier).pipe(RetryPolicy.maxAttempts(retries + 1), RetryPolicy.whileRetryable)
  }
}

/** The `Retry` field of a state, or a state that has one. */
export const stepFunctions = (document: Place): ReadonlyArray<Retrier> => {
  const retriers = (Array.isArray(document.value) ? document : document.at("Retry")).list((retrier) => retrier)
  const made = retriers.map((retrier, index) => retrierOf(retrier, index === retriers.length - 1))
  // They are scanned in order: a later one gets only what the earlier ones leave.
  const firstOf = (error: unknown) => made.find(({ matches }) => matches(error))
  return made.map((self) => {
    const { errorEquals, policy } = self
    return { errorEquals, policy, classifier: retryingIf((error) => firstOf(error) === self) }
  })
}

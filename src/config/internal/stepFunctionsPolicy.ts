import * as Option from "effect/Option"
import * as Backoff from "../../Backoff.ts"
import { type Fields, type Path, refuse } from "../../internal/invalidField.ts"
import * as RetryClassifier from "../../RetryClassifier.ts"
import * as RetryPolicy from "../../RetryPolicy.ts"
import { isCalled, retryingIf } from "./errorNames.ts"
import { fieldsOf, listOf, numberOf, onlyOf, textOf, wholeOf } from "./importedDocument.ts"
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

const secondsOf = (value: unknown, path: Path): number => {
  const seconds = wholeOf(value, path, 1)
  return seconds < 31_622_400 ? seconds : refuse(path, value, "a whole number of seconds below 31622400")
}

const backOff = (fields: Fields, path: Path): RetryPolicy.RetryPolicy => {
  const seconds = wholeOf(fields["IntervalSeconds"], [...path, "IntervalSeconds"], 1, 1)
  const factor = numberOf(fields["BackoffRate"], [...path, "BackoffRate"], 1, 2)
  const jitter = fields["JitterStrategy"] ?? "NONE"
  if (jitter !== "NONE" && jitter !== "FULL") refuse([...path, "JitterStrategy"], jitter, `"FULL" or "NONE"`)
  const growing = Backoff.exponential(seconds * 1000, factor)
  const most = fields["MaxDelaySeconds"]
  const capped = most === undefined
    ? growing
    : growing.pipe(RetryPolicy.capped(secondsOf(most, [...path, "MaxDelaySeconds"]) * 1000))
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

const retrier = (json: unknown, isLast: boolean, path: Path) => {
  const fields = onlyOf(json, path, keys)
  const errors = [...path, "ErrorEquals"]
  const errorEquals = listOf(fields["ErrorEquals"], errors).map((name, n) => textOf(name, [...errors, n]))
  if (errorEquals.length === 0) refuse(errors, errorEquals, "an array with at least one name")
  if (errorEquals.includes(all) && (errorEquals.length > 1 || !isLast)) {
    refuse(errors, errorEquals, `"${all}" alone, in the last retrier`)
  }
  const retries = wholeOf(fields["MaxAttempts"], [...path, "MaxAttempts"], 0, 3)
  return {
    errorEquals,
    matches: matches(new Set(errorEquals)),
    policy: backOff(fields, path).pipe(RetryPolicy.maxAttempts(retries + 1), RetryPolicy.whileRetryable)
  }
}

/** The `Retry` field of a state, or a state that has one. */
export const stepFunctions = (json: unknown): ReadonlyArray<Retrier> => {
  const path = Array.isArray(json) ? [] : ["Retry"]
  const list = listOf(Array.isArray(json) ? json : fieldsOf(json, [])["Retry"], path)
  const made = list.map((item, index) => retrier(item, index === list.length - 1, [...path, index]))
  // They are scanned in order: a later one gets only what the earlier ones leave.
  const firstOf = (error: unknown) => made.find(({ matches }) => matches(error))
  return made.map((self) => {
    const { errorEquals, policy } = self
    return { errorEquals, policy, classifier: retryingIf((error) => firstOf(error) === self) }
  })
}

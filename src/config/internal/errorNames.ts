import * as Option from "effect/Option"
import { get } from "../../internal/tryGet.ts"
import * as RetryClassifier from "../../RetryClassifier.ts"
import * as RetryInfo from "../../RetryInfo.ts"

/** The names of errors: their `_tag`, `name`, `type` or `code`. */
export const isCalled = (error: unknown, names: ReadonlySet<unknown>): boolean =>
  ["_tag", "name", "type", "code"].some((key) => names.has(get(error, key)))

/** Decides which errors are retried. A veto of the error itself holds. Other facts stay: throttles, timeouts, hints. */
export const retryingIf = (isRetried: (error: unknown) => boolean): RetryClassifier.RetryClassifier => (error) => {
  const classified = RetryClassifier.classify(RetryClassifier.defaultClassifier, error)
  const base = Option.getOrElse(classified, () => RetryInfo.transient)
  if (base.safety === "No") return classified
  return Option.some(RetryInfo.make({ ...base, safety: isRetried(error) ? "Yes" : "No" }))
}

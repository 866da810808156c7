/**
 * What the AWS SDKs and Tools Reference Guide retries.
 *
 * | | statuses | error codes |
 * | --- | --- | --- |
 * | transient | 400, 408, 500, 502, 503, 504 | `RequestTimeout`, `RequestTimeoutException` |
 * | throttling | 400, 403, 429, 502, 503, 509 | the 14 that the SDKs share, such as `Throttling` and `SlowDown` |
 *
 * Two statuses are in both lists, and 400 and 403 mostly mean that the request is wrong, so lists and codes apply
 * together: a code decides whatever the status, except that a 429 is throttling under any code, as in the SDKs; a 400
 * or 403 without a code is not retried; 429 and 509 are throttling; the rest is transient.
 *
 * @since 0.1.0
 */

import * as Option from "effect/Option"
import { statusOf } from "../internal/classification/wire.ts"
import { get } from "../internal/tryGet.ts"
import * as RetryClassifier from "../RetryClassifier.ts"
import * as RetryInfo from "../RetryInfo.ts"
import { withHint } from "./internal/classifiers.ts"

/** The statuses that decide without a code. */
const byStatus: ReadonlyMap<unknown, RetryInfo.RetryInfo> = new Map([
  ...[408, 500, 502, 503, 504].map((status) => [status, RetryInfo.transient] as const),
  ...[429, 509].map((status) => [status, RetryInfo.throttled()] as const)
])

/** The status of an error of an AWS SDK, of another HTTP client, or of Effect's. */
const statuses: RetryClassifier.RetryClassifier = (error) => withHint(byStatus.get(statusOf(error)), error)

/** A 429, whatever the code that comes with it and wherever the error has it. */
const tooMany: RetryClassifier.RetryClassifier = (error) => statusOf(error) === 429 ? statuses(error) : Option.none()

/** Effect's errors, except the statuses for which the reference differs from the default chain. */
const effectErrors: RetryClassifier.RetryClassifier = (error) => {
  const status = get(error, "_tag") === "HttpClientError" ? statusOf(error) : undefined
  return status === undefined || (byStatus.has(status) && status !== 509)
    ? RetryClassifier.effectErrors(error)
    : Option.none()
}

/**
 * The reference's classifier: the facts that the error itself carries, Effect's errors, AWS codes and the `$retryable`
 * trait, the statuses above, network and gRPC codes; then the same for its cause.
 *
 * **Details**
 *
 * For AWS errors it knows what `RetryClassifier.defaultClassifier` knows, and the statuses 408 and 509. A 425, which
 * the default chain retries, is in no list of the reference: it is never retried. `x-amz-retry-after` (milliseconds),
 * then `retry-after` (seconds), is the hint. Source: AWS SDKs and Tools Reference Guide, "Retry behavior".
 *
 * @category constructors
 * @since 0.1.0
 */
export const classifier: RetryClassifier.RetryClassifier = RetryClassifier.followingCause(
  RetryClassifier.chain([
    RetryClassifier.carried,
    effectErrors,
    tooMany,
    RetryClassifier.aws,
    statuses,
    RetryClassifier.network,
    RetryClassifier.grpc
  ])
)

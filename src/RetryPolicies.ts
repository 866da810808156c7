/**
 * Policies to use as they are. Those of the AWS SDKs are in `AwsModes`.
 *
 * @since 0.1.0
 */

import * as Backoff from "./Backoff.ts"
import * as RetryPolicy from "./RetryPolicy.ts"
import type { RetryQuota } from "./RetryQuota.ts"

const standard = (): RetryPolicy.RetryPolicy<unknown, never, RetryQuota> =>
  Backoff.exponential("100 millis", 2, { cap: "5 seconds", jitter: "full" }).pipe(
    RetryPolicy.honorRetryAfter({ atMost: "2 minutes", beyond: "stop" }),
    RetryPolicy.deadline("10 seconds"),
    RetryPolicy.whileRetryable,
    RetryPolicy.quotaGated({ cost: 5 })
  )

/**
 * For services outside AWS, over HTTP and otherwise: retries what is safe, in a call that takes about 10 seconds at most.
 *
 * **Details**
 *
 * | setting | value |
 * | --- | --- |
 * | delay before retry `n` | `b * min(100 ms * 2^(n - 1), 5 seconds)`, `b` uniform in `[0, 1)` |
 * | server's hint | a floor; after one above 2 minutes it stops |
 * | end | no retry begins 10 seconds after the call did, or later; attempts are not limited |
 * | quota | a retry takes 5; a success returns those of its retry, or adds 1: provide `RetryQuota.layer()` once |
 *
 * **Example** (More patience, and fewer attempts)
 *
 * ```ts
 * import { httpStandard } from "effect-retry/RetryPolicies"
 *
 * const policy = httpStandard.pipe(RetryPolicy.withDeadline("1 minute"), RetryPolicy.maxAttempts(4))
 * ```
 *
 * @category policies
 * @since 0.1.0
 */
export const httpStandard: RetryPolicy.RetryPolicy<unknown, never, RetryQuota> = /* @__PURE__ */ standard()

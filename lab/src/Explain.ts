/**
 * Shows what a policy will do, before it does it.
 *
 * Numbers in a configuration do not show how long a call can take, how often it sends, or what a quota still lets through
 * when half of the attempts fail. {@link explain} answers that for any policy and any schedule. It runs calls whose
 * attempts all fail through the library's own retry loop, on a clock of its own: nothing is modeled a second time,
 * nothing waits, and no layer is needed. {@link toTable} prints the answer. What a policy would do about one error is
 * `RetryPolicy.explain` of the library: a retry, after which delay, or the reason why not.
 *
 * @since 0.1.0
 */

import type { AdaptiveRateLimiter } from "effect-retry/AdaptiveRateLimiter"
import type * as RetryQuota from "effect-retry/RetryQuota"
import type * as Schedule from "effect/Schedule"
import { explained } from "./explain/explained.ts"
import type { Explanation } from "./explain/model.ts"
import type { Options } from "./explain/options.ts"
import { tableOf } from "./explain/table.ts"

export type { Costs, End, EndReason, Explanation, Load, Retry, Spread } from "./explain/model.ts"
export type { Options } from "./explain/options.ts"

/**
 * Shows what a policy, or any schedule, does with a call whose attempts all fail.
 *
 * **Details**
 *
 * - The least and the greatest delay are those at the extremes of the random draws; the percentiles are exact where a delay depends
 *  on one draw (`exact`), otherwise those of the samples. With a deadline, the delays are those of the retries that are made.
 * - `latestMillis` and `latency.maxMillis` are bounds where delays grow with the random draw, as in all policies here;
 *  otherwise, and for a schedule that stops by itself after a time, the greatest of all calls that were run. With a
 *  deadline, a retry may begin just before it, and the attempt is not interrupted.
 * - The load per failure rate is that of a client in the long run, attempts failing independently: `1 + f + f^2 + ...`
 *  as far as the policy goes, and with the quota at most `1 + successIncrement * (1 - f) / (cost * f)`. Below
 *  `quota.bitesAt` more comes into the quota than is spent, and only a small one is empty now and then.
 * - With `coolDown` sends wait as a `CoolDown` makes them wait after a hint; with `hedge` the load has up to as many hedges as
 *  their share allows. What other gates do depends on all calls of a client, not on one: `AdaptiveRateLimiter`,
 *  `ConcurrencyLimiter` and `ClientThrottle` are left out. `Simulator` runs them.
 *
 * Throws `InvalidOption` when an option is invalid, the policy is not a policy, or the schedule waits for anything but
 * time. It also throws whatever a function in the policy throws.
 *
 * **Example** (How long can a call take?)
 *
 * ```ts
 * const { latency, quota } = Explain.explain(awsStandard, { attempt: "2 seconds" })
 * latency.maxMillis // 9000
 * quota?.bitesAt // 0.3207
 * ```
 *
 * @see {@link toTable} for the same in a terminal
 * @category constructors
 * @since 0.1.0
 */
export const explain = (
  policy: Schedule.Schedule<unknown, any, unknown, RetryQuota.RetryQuota | AdaptiveRateLimiter>,
  options?: Options
): Explanation => explained(policy, options ?? {})

/**
 * Prints an explanation as plain text, aligned, every number with its unit, without a final newline.
 *
 * `columns` is how wide a line may be, from 40 on: tables leave out columns from the right, and say which. Default: as wide as
 * they are.
 *
 * **Example** (In a terminal)
 *
 * ```ts
 * console.log(Explain.toTable(Explain.explain(awsStandard, { name: "awsStandard" })))
 * ```
 *
 * @category formatting
 * @since 0.1.0
 */
export const toTable = (explanation: Explanation, options?: { readonly columns?: number | undefined }): string =>
  tableOf(explanation, options?.columns ?? Infinity)

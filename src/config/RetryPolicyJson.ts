/**
 * Policies from JSON: from a file, a setting, a database.
 *
 * The JSON form of a policy is the list of its steps, in the words of the API, as `JSON.stringify(policy)` returns it.
 * The scenarios of the simulator and the command line use it too.
 *
 * **Example** (A policy in a configuration file)
 *
 * ```json
 * {
 *   "steps": [
 *     { "exponential": { "base": "50 millis", "cap": "20 seconds", "jitter": "full" } },
 *     "honorRetryAfter",
 *     { "maxAttempts": 5 },
 *     "whileRetryable",
 *     { "quotaGated": { "cost": 5 } }
 *   ]
 * }
 * ```
 *
 * The package's index does not export this module: import `effect-retry/RetryPolicyJson`. So it is only in the bundle of
 * an app that uses it. `effect-retry/RetryPolicySchema` has the same as a Schema.
 *
 * @since 0.1.0
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { AdaptiveRateLimiter, RateLimitExceeded } from "../gates/AdaptiveRateLimiter.ts"
import { checksOf, rejectUnknown } from "../internal/checks.ts"
import { errorOf, Refusal } from "../internal/invalidField.ts"
import type { InvalidOption } from "../InvalidOption.ts"
import type { RetryPolicy } from "../RetryPolicy.ts"
import type { RetryQuota } from "../RetryQuota.ts"
import { read, spelledOut } from "./internal/policyReader.ts"

/**
 * A policy from JSON: it may need anything that a policy of the library may, since only its JSON says what it is.
 *
 * @category models
 * @since 0.1.0
 */
export type Policy = RetryPolicy<unknown, RateLimitExceeded, RetryQuota | AdaptiveRateLimiter>

/**
 * Options of {@link fromJson}.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /**
   * The functions named in the JSON, such as `patience` in `{ "fromDelay": "patience" }`: arguments of a policy that
   * are not data. Default: none, and JSON that names one is rejected.
   */
  readonly functions?: { readonly [name: string]: (...args: Array<any>) => unknown } | undefined
}

/**
 * Makes a policy from its JSON, whether from a file or from `JSON.stringify`.
 *
 * **Details**
 *
 * | step | argument |
 * | --- | --- |
 * | `exponential`, `linear`, `fibonacci`, `fixed`, `decorrelated` | `base` (of `fixed`, `delay`), `factor` and the options of `Backoff` |
 * | `JavaV1...`, `JavaScriptV2.backoff`, `Kotlin.exponentialBackoffWithJitter` | the options of these |
 * | `max`, `min` | an array of policies |
 * | `immediate`, `never` | nothing |
 * | `fromDelay`, `choose`, `mapDelay`, `while` | the name of one of the `functions` |
 * | `honorRetryAfter`, `quotaGated`, `withQuota`, `RetryGrpc.honorPushback` | their options |
 * | `capped`, `deadline`, `withDeadline`, `jittered`, `maxAttempts`, `withMaxAttempts` | their one option |
 * | `requires` | `"AdaptiveRateLimiter"`: other gates are left to code |
 * | `concat`, `whenThrottled` | another policy |
 * | `whileRetryable`, `whileMaybeRetryable`, `withMaybeRetryable`, `withoutDeadline`, `outermostOnly` | nothing |
 *
 * The first step is a source of delays, up to `choose`; the others are combinators, applied in order. A step without an argument is just its name. Durations are milliseconds, strings such as `"250ms"`
 * or `"20 seconds"`, or objects such as `{ "minutes": 2 }`; no limit is `"Infinity"`.
 *
 * Fails with `InvalidOption`, whose `field` is the path of the problem, such as `steps[2].capped`: for an unknown step
 * or key, a value that the constructor would reject, more than 1000 steps or 16 levels. Never throws.
 *
 * **Example** (A policy from a file)
 *
 * ```ts
 * const policy = RetryPolicyJson.fromJson({
 *   steps: [{ exponential: { base: "50 millis", cap: "20 seconds" } }, { maxAttempts: 5 }, "whileRetryable"]
 * })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromJson = (json: unknown, options: Options = {}): Effect.Effect<Policy, InvalidOption> =>
  Effect.try({
    try: () => {
      const check = checksOf("RetryPolicyJson.fromJson", options)
      check.names.add("functions")
      rejectUnknown(check, options)
      const policy = read(json, options.functions ?? {})
      if (policy instanceof Refusal) throw errorOf(policy, check.tag)
      return policy
    },
    catch: (error) => error as InvalidOption
  })

/**
 * Reads a duration as written in files: milliseconds, words such as `"20 seconds"`, or a short unit: `ns`, `us`, `ms`,
 * `s`, `m` or `min`, `h`, `d`, `w`. `None` for an invalid duration.
 *
 * **Example** (What people write)
 *
 * ```ts
 * RetryPolicyJson.duration("500ms") // Option.some(Duration.millis(500))
 * RetryPolicyJson.duration("soon") // Option.none()
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const duration = (json: unknown): Option.Option<Duration.Duration> =>
  Option.filter(
    Duration.fromInput(spelledOut(json) as Duration.Input),
    (duration) => !Number.isNaN(json) && !Duration.isNegative(duration)
  )

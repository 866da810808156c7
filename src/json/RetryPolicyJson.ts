/**
 * Policies of JSON: from a file, a setting, a database.
 *
 * The JSON form of a policy is the list of its steps, in the words of the API: what `JSON.stringify(policy)` gives. It is
 * the form of the simulator's scenarios and of the command line too.
 *
 * **Example** (A policy of a configuration file)
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
import type { AdaptiveRateLimiter, RateLimitExceeded } from "../AdaptiveRateLimiter.ts"
import type { InvalidOption } from "../InvalidOption.ts"
import type { Attempted, RetryPolicy } from "../RetryPolicy.ts"
import type { RetryQuota } from "../RetryQuota.ts"
import { spelledOut } from "./internal/durations.ts"
import { errorOf, read, Refusal } from "./internal/reading.ts"

/**
 * A policy of JSON: it may need what any policy of the library may, since only its JSON says what it is.
 *
 * @category models
 * @since 0.1.0
 */
export type Policy = RetryPolicy<Attempted, RetryQuota | AdaptiveRateLimiter, RateLimitExceeded>

/**
 * What can be set in {@link fromJson}.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /**
   * The functions that the JSON names, such as `patience` in `{ "fromDelay": "patience" }`: what a policy was given that
   * is no data. Default: none, and JSON that names one is refused.
   */
  readonly functions?: { readonly [name: string]: (...args: Array<any>) => unknown } | undefined
}

/**
 * Makes a policy of its JSON, that of a file as well as what `JSON.stringify` gave.
 *
 * **Details**
 *
 * | step | what it is given |
 * | --- | --- |
 * | `exponential`, `linear`, `fibonacci`, `fixed`, `decorrelated` | the options of `Backoff` |
 * | `JavaV1...`, `JavaScriptV2.backoff`, `Kotlin.exponentialBackoffWithJitter` | the options of these |
 * | `fromDelay`, `mapDelay` | the name of one of the `functions` |
 * | `honorRetryAfter`, `quotaGated`, `RetryGrpc.honorPushback` | their options |
 * | `capped`, `deadline`, `jittered`, `maxAttempts` | their one option |
 * | `whenThrottled` | another policy |
 * | `whileRetryable`, `whileMaybeRetryable`, `withoutDeadline`, `outermostOnly`, `requiresRateLimiter` | nothing |
 *
 * The first step is a source of delays, one of the first three rows, `mapDelay` apart; the others are combinators, applied in their order.
 * One that is given nothing is its name. Durations are milliseconds, a text such as `"250ms"` or
 * `"20 seconds"`, or objects such as `{ "minutes": 2 }`; no limit is `"Infinity"`.
 *
 * Fails with `InvalidOption`, whose `field` is the path of what is wrong, such as `steps[2].capped`: when there is an
 * unknown step or key, a value that the constructor would not take either, more than 1000 steps or 16 levels. Never throws.
 *
 * **Example** (A policy of a file)
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
  Effect.suspend(() => {
    const made = read(json, options.functions ?? {})
    return made instanceof Refusal ? Effect.fail(errorOf(made, "RetryPolicyJson.fromJson")) : Effect.succeed(made)
  })

/**
 * Reads a duration as files have it: milliseconds, words such as `"20 seconds"`, or a short unit: `ns`, `us`, `ms`, `s`,
 * `m` or `min`, `h`, `d`, `w`. `None` for what is no duration.
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

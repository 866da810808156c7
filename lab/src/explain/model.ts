import type { Safety } from "effect-retry/RetryInfo"
import type { EndReason } from "./trace.ts"

/**
 * Why a call ends: a `StopReason` of `RetryDecision`; `"policy-error"` when the schedule itself fails; `"not-followed"` when the
 * explanation looks no further.
 *
 * @category models
 * @since 0.1.0
 */
export type { EndReason } from "./trace.ts"

/**
 * Where a duration lies, in milliseconds.
 *
 * @category models
 * @since 0.1.0
 */
export interface Spread {
  readonly minMillis: number | null
  readonly p50Millis: number | null
  readonly p99Millis: number | null
  /** `null` for no bound, or for calls that were not followed to their end and have no deadline. */
  readonly maxMillis: number | null
}

/**
 * How a part of the calls ends.
 *
 * @category models
 * @since 0.1.0
 */
export interface End {
  readonly reason: EndReason
  /** The attempts made, the first included. */
  readonly attempts: number
  /** The share of the calls: from 0 to 1, 0 for less than one of the samples. */
  readonly share: number
}

/**
 * Tokens that one retry takes, by the class of the failure before it; `null` where such a failure is not retried.
 *
 * @category models
 * @since 0.1.0
 */
export interface Costs {
  readonly transient: number | null
  readonly timeout: number | null
  readonly throttling: number | null
}

/**
 * One retry of a call whose attempts all fail.
 *
 * @category models
 * @since 0.1.0
 */
export interface Retry {
  /** 1 for the first retry, which is the second attempt. */
  readonly retry: number
  /**
   * The delay before it, where it is made: with a deadline, the longest delays of the policy may not be. `exact` says that
   * the percentiles are not those of samples.
   */
  readonly delay: Spread & { readonly exact: boolean }
  /** Tokens that it takes from the quota, by the class of the failure before it. */
  readonly costs: Costs
  /** Tokens that it takes after the failure that is explained. */
  readonly cost: number
  /** The least that is left of the quota then; `null` without a quota. */
  readonly balance: number | null
  /** When it is sent at the latest, counted from the beginning of the call: the delays and attempts before it. */
  readonly latestMillis: number
  /** The share of the calls that make it: from 0 to 1, 0 for less than one of the samples. */
  readonly share: number
  /** How calls end when it fails too: empty when all go on. */
  readonly ends: ReadonlyArray<End>
}

/**
 * What reaches the service, per call, when attempts fail independently at a rate.
 *
 * @category models
 * @since 0.1.0
 */
export interface Load {
  /** The share of attempts that fail: from 0 to 1. */
  readonly failureRate: number
  /** Attempts per call, with the quota if the policy has one; `null` for no bound. */
  readonly attempts: number | null
  /** Attempts per call if there were no quota; `null` for no bound. */
  readonly attemptsWithoutQuota: number | null
  /** The share of the calls that succeed in the end. */
  readonly success: number
}

/**
 * What a policy will do: plain data that survives JSON. `null` stands for no number: there is none, or no bound.
 *
 * @category models
 * @since 0.1.0
 */
export interface Explanation {
  readonly name: string | null
  /** The failure that every attempt ends with. */
  readonly failure: {
    readonly class: "throttling" | "timeout" | "transient" | "unknown"
    readonly safety: Safety | null
    readonly retryAfterMillis: number | null
  }
  /** How long an attempt takes. */
  readonly attemptMillis: number
  /** The attempts that the policy allows; `null` when it sets no limit. */
  readonly maxAttempts: number | null
  /** Counted from the beginning of the call; `null` when there is none. */
  readonly deadlineMillis: number | null
  readonly retries: ReadonlyArray<Retry>
  /** How the calls end, and after how many attempts. */
  readonly ends: ReadonlyArray<End>
  /** The explanation shows all retries; otherwise there are more than it looked at. */
  readonly complete: boolean
  /** From the beginning of a call that fails in the end to its error. The percentiles are those of samples. */
  readonly latency: Spread
  /** `null` without a quota. */
  readonly quota: {
    readonly capacity: number
    readonly initial: number
    readonly costs: Costs
    /** Retries that the quota pays for while nothing succeeds; `null` for no bound. */
    readonly retriesInOutage: number | null
    /** The failure rate from which the quota drains; `null` when none does. */
    readonly bitesAt: number | null
  } | null
  readonly load: ReadonlyArray<Load>
  /** What the numbers leave out. */
  readonly notes: ReadonlyArray<string>
  /** How many calls were sampled. */
  readonly samples: number
  readonly seed: string | number
}

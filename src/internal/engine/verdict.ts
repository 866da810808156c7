import type * as Random from "effect/Random"
import type * as Schedule from "effect/Schedule"
import type { StopReason } from "../../RetryDecision.ts"
import type { RetryInfo } from "../../RetryInfo.ts"
import { maxDelayMillis, wholeMillis } from "../math/delay.ts"
import { Refused } from "../state/refused.ts"

/** A failed attempt, as the functions of the library's own combinators see it. It is read, never kept. */
export interface Failing {
  readonly error: unknown
  /** The facts of the error; `undefined` when the classifier does not know it. */
  readonly info: RetryInfo | undefined
  /** The attempts made so far, which is also the number of the retry to decide on. */
  readonly attempt: number
  /** The number of the retry since the back-off began: `attempt`, unless it has begun again. */
  readonly nth: number
  /** The back-off of the retry before this one, in milliseconds; 0 before the first. */
  previousMillis: number
  readonly random: Random.Random
  /** Has the back-off begin again with the next failure. */
  readonly restart: () => void
}

/** In place of a delay: the delays have ended. */
export const noDelay = -1

/** In place of a delay: the server asks for a longer one than the policy allows. */
export const hintTooLong = -2

/** The delay before the retry of a failure, in milliseconds, or one of the two above. */
export type Delay = (failing: Failing) => number

/** Changes a delay, or answers with one of the two above. */
export type Adjust = (delayMillis: number, failing: Failing) => number

/** What a retry takes of the quota, by the class of the failure. */
export interface Cost {
  readonly cost: number
  readonly timeoutCost: number
  readonly throttlingCost: number
  /** A refused retry is still held back for its delay. */
  readonly longPolling: boolean
}

/** A schedule that was lifted into a policy. */
export type Lifted = Schedule.Schedule<unknown, any, unknown, any>

/** A policy, compiled: the settings and functions that decide. */
export interface Parts {
  /** Where the delay comes from: a function, or a schedule that was lifted into the policy. */
  readonly source: Delay | Lifted
  /** What is done to the delay, in the order in which the combinators were applied. */
  readonly adjust: Adjust
  readonly maxAttempts: number
  readonly whileRetryable: "off" | "yes" | "maybe" | ((failing: Failing) => boolean)
  readonly deadlineMillis: number
  readonly outermostOnly: boolean
  readonly quota: Cost | undefined
  readonly adaptive: boolean
  /** The limit on attempts is checked before anything else, as in Smithy's guide. */
  readonly attemptsFirst?: boolean | undefined
  /** What any success puts into the quota, in place of what its retry took, as in Smithy's guide. */
  readonly refund?: number | undefined
}

/** Whether the error says that the library itself refused the send. */
const isRefused = (error: any): boolean => {
  try {
    return error?.[Refused] === true
  } catch {
    return false
  }
}

const isRetryable = (whileRetryable: Parts["whileRetryable"], failing: Failing): boolean => {
  if (typeof whileRetryable === "function") return whileRetryable(failing)
  const safety = failing.info?.safety
  return whileRetryable === "off" || safety === "Yes" || (safety === "Maybe" && whileRetryable === "maybe")
}

/** What the retry of a failure costs, or why it is not retried, as far as that is clear before the quota is asked. */
export const verdictOf = (parts: Parts, failing: Failing, isNested: boolean): number | StopReason => {
  if (isNested) return "nested"
  if (parts.attemptsFirst === true && failing.attempt >= parts.maxAttempts) return "max-attempts"
  if (isRefused(failing.error) || !isRetryable(parts.whileRetryable, failing)) return "not-retryable"
  if (failing.attempt >= parts.maxAttempts) return "max-attempts"
  const { quota } = parts
  if (quota === undefined) return 0
  if (failing.info?.throttling) return quota.throttlingCost
  return failing.info?.timeout ? quota.timeoutCost : quota.cost
}

/** The delay before the retry of a failure, in whole milliseconds, or why there is none. Takes note of the back-off. */
export const delayOf = (parts: Parts, source: Delay, failing: Failing): number | StopReason => {
  const backOff = Math.min(source(failing), maxDelayMillis)
  failing.previousMillis = Math.max(0, backOff)
  const adjusted = backOff < 0 ? backOff : parts.adjust(backOff, failing)
  if (adjusted < 0) return adjusted === hintTooLong ? "retry-after-too-long" : "schedule"
  return wholeMillis(adjusted)
}

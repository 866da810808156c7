import type * as Effect from "effect/Effect"
import type { AnyContext } from "../internal/shared.ts"
import type { StopReason } from "../RetryDecision.ts"
import type { Adjust, Delay, Failing } from "./delay.ts"
import type { Offer, Run } from "./run.ts"

/** What a retry takes from the quota, by the class of the failure. */
export interface Cost {
  readonly cost: number
  readonly timeoutCost: number
  readonly throttlingCost: number
  /** Whether a refused retry is still held back for its delay. */
  readonly longPolling: boolean
}

/** Whether to retry: immediately, or after stepping a schedule, asking, or waiting. */
export type Answer = boolean | Effect.Effect<boolean, unknown, unknown>

/** A policy in a run, as what decides inside it sees it. */
export interface Surrounding extends Failing {
  readonly run: Run
  /** When it began, in milliseconds of the monotonic clock. */
  readonly startMillis: number
  readonly accepts: (offer: Offer) => true
  readonly refuses: (reason: StopReason, holdMillis?: number) => false
}

/** What decides inside a policy: a schedule, or several policies. It has the policy accept or refuse. */
export interface Source {
  readonly begin: (around: Surrounding) => () => Answer
}

/**
 * One step of a policy: the constructor or combinator of the API, such as `"RetryPolicy.capped"`, and its argument as
 * JSON, if it has one. Policies stay as they are; functions and schedules are `Opaque`.
 */
export type Node = readonly [tag: string, given?: unknown]

/** A policy: its steps, and what they compile to. */
export interface Parts {
  /** A source first, then the combinators in the order in which they were applied. */
  readonly nodes: ReadonlyArray<Node>
  /** The source of the delay: a function, or a schedule or policies that decide inside. */
  readonly source: Delay | Source
  /** The changes to the delay, in the order in which the combinators were applied. */
  readonly adjusts: ReadonlyArray<Adjust>
  readonly maxAttempts: number
  /** Conditions of the user's on the failure, asked before the quota. */
  readonly conditions?: ReadonlyArray<(failing: Failing) => boolean> | undefined
  readonly whileRetryable: "off" | "yes" | "maybe" | ((failing: Failing) => boolean)
  readonly deadlineMillis: number
  readonly outermostOnly: boolean
  readonly quota: Cost | undefined
  readonly adaptive: boolean
  /** Checks the limit on attempts before anything else, as in Smithy's guide. */
  readonly attemptsFirst?: boolean | undefined
  /** What any success adds to the quota, in place of what its retry took, as in Smithy's guide. */
  readonly refund?: number | undefined
  /**
   * Looks up the policy when a call begins; the call keeps it. Everything else here is then that of a policy without
   * limits.
   */
  readonly live?: ((context: AnyContext) => Parts) | undefined
}

/** Parts with changes, even if they are looked up later. */
export const changed = (parts: Parts, change: (parts: Parts) => Partial<Parts>): Parts => {
  const { live } = parts
  const next = { ...parts, ...change(parts) }
  return live === undefined ? next : { ...next, live: (context) => changed(live(context), change) }
}

import type * as Schedule from "effect/Schedule"
import type { AnyContext } from "../internal/shared.ts"
import type { Adjust, Delay, Failing } from "./delay.ts"

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

/**
 * One step of a policy: the constructor or combinator of the API, such as `"RetryPolicy.capped"`, and what it was given
 * as JSON has it, unless it takes nothing. Policies are themselves, functions and schedules are `Opaque`.
 */
export type Node = readonly [tag: string, given?: unknown]

/** A policy: the steps that it is made of, and what they compile to. */
export interface Parts {
  /** A source first, then the combinators in the order in which they were applied. */
  readonly nodes: ReadonlyArray<Node>
  /** Where the delay comes from: a function, or a schedule that was lifted into the policy. */
  readonly source: Delay | Lifted
  /** What is done to the delay, in the order in which the combinators were applied. */
  readonly adjusts: ReadonlyArray<Adjust>
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
  /** Where the policy is looked up when a call begins, which keeps it. All else here is that of a policy with no limits. */
  readonly live?: ((context: AnyContext) => Parts) | undefined
}

/** What a call in this context goes by, from its beginning to its end. */
export const partsIn = (parts: Parts, context: AnyContext): Parts => parts.live?.(context) ?? parts

/** Parts with changes, also where they are looked up later. */
export const changed = (parts: Parts, change: (parts: Parts) => Partial<Parts>): Parts => {
  const { live } = parts
  const next = { ...parts, ...change(parts) }
  return live === undefined ? next : { ...next, live: (context) => changed(live(context), change) }
}

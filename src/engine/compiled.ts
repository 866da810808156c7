import type * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Schedule from "effect/Schedule"
import type { AnyContext } from "../internal/shared.ts"
import type { RetryDecision, Stop, StopReason } from "../RetryDecision.ts"
import type { Adjust, Delay, Failing } from "./delay.ts"
import type { Offer, Run } from "./run.ts"
import type { AnyEffect } from "./send.ts"

export type { RetryDecision }

/** What a retry takes from the quota, by the class of the failure. */
export interface Cost {
  readonly cost: number
  readonly timeoutCost: number
  readonly throttlingCost: number
  /** Whether a refused retry is still held back for its delay. */
  readonly longPolling: boolean
}

/** Whether to retry: immediately, or after stepping a schedule, asking, or waiting. */
export type Answer = Soon<boolean>

/** A value, or an effect that gives it. */
export type Soon<A> = A | Effect.Effect<A, unknown, unknown>

/** What holds for a policy as a whole, and can be lifted. */
export type Limit = keyof Limited | "whileRetryable"

/** What can be said about a policy without running it. */
export interface Limited {
  readonly maxAttempts: number
  readonly deadlineMillis: number
  readonly quota: Cost | undefined
}

/** What to do with a run that is not retried. Without it, the run fails as its last send did. */
export type OrElse = ((error: any, stop: Stop) => AnyEffect) | undefined

/** A policy as a schedule. */
export type DecidingSchedule = Schedule.Schedule<RetryDecision, unknown, unknown, unknown>

/** Services that a policy brings along: for its runs, not for what they retry. */
export interface Services {
  readonly build: Effect.Effect<AnyContext, unknown>
  /** A schedule whose policies find them. */
  readonly stepped: (schedule: DecidingSchedule) => DecidingSchedule
  /** A run that finds them. */
  readonly retried: (orElse: OrElse, retry: (orElse: OrElse) => AnyEffect) => AnyEffect
}

/** A policy in a run, as what decides inside it sees it. */
export interface Surrounding extends Failing {
  readonly run: Run
  /** When it began, and its deadline, in milliseconds of the monotonic clock. */
  readonly startMillis: number | undefined
  readonly deadlineAtMillis: number
  /** Whether what is around it is certain without its retry: then nothing inside waits for tokens. */
  readonly isIdle?: boolean | undefined
  readonly accepts: (offer: Offer) => true
  readonly refuses: (reason: StopReason, holdMillis?: number) => false
}

/** What decides inside a policy: a schedule, or several policies. It has the policy accept or refuse. */
export interface Source {
  readonly begin: (around: Surrounding) => () => Answer
  /** Whether it matters when it begins, since a policy inside may have a deadline. Default `true`. */
  readonly isTimed?: boolean
  /** The limits of several policies together. */
  readonly limited?: Limited | undefined
  /** The same without a limit of the policies, where it is a limit of the whole. */
  readonly lifted?: ((limit: Limit) => Source) | undefined
}

/**
 * One step of a policy: the constructor or combinator of the API, such as `"RetryPolicy.capped"`, and its argument as
 * JSON, if it has one. Policies stay as they are; functions and schedules are `Opaque`.
 */
export type Node = readonly [tag: string, options?: unknown]

/** A policy: its steps, and what they compile to. */
export interface Compiled extends Limited {
  /** A source first, then the combinators in the order in which they were applied. */
  readonly nodes: ReadonlyArray<Node>
  /** The source of the delay: a function, or a schedule or policies that decide inside. */
  readonly source: (Delay & { readonly limited?: undefined }) | Source
  /** The changes to the delay, in the order in which the combinators were applied. */
  readonly adjusts: ReadonlyArray<Adjust>
  /** Conditions of the user's on the failure, asked before the quota. */
  readonly conditions: ReadonlyArray<(failing: Failing) => boolean> | undefined
  readonly whileRetryable: "off" | "yes" | "maybe" | ((failing: Failing) => boolean)
  /** Whether a run around this context retries, if the policy leaves that to it. */
  readonly outermostOnly: false | ((context: AnyContext) => boolean)
  /** The services of the gates that it requires. */
  readonly gates: ReadonlyArray<Context.Key<any, any>>
  /** One of them is the `AdaptiveRateLimiter`. */
  readonly adaptive: boolean
  readonly services: Services | undefined
  /** Checks the limit on attempts before anything else, as in Smithy's guide. */
  readonly attemptsFirst: boolean | undefined
  /** What any success adds to the quota, in place of what its retry took, as in Smithy's guide. */
  readonly refund: number | undefined
  /**
   * Looks up the policy when a call begins; the call keeps it. Everything else here is then that of a policy without
   * limits.
   */
  readonly live: ((context: AnyContext) => Compiled) | undefined
}

/** A policy without limits, but for its source. */
export const free: Omit<Compiled, "nodes" | "source"> = {
  adjusts: [],
  maxAttempts: Infinity,
  conditions: undefined,
  whileRetryable: "off",
  deadlineMillis: Infinity,
  outermostOnly: false,
  quota: undefined,
  gates: [],
  adaptive: false,
  services: undefined,
  attemptsFirst: undefined,
  refund: undefined,
  live: undefined
}

/** Whether it matters when a policy begins: it, or what is inside, may have a deadline. */
export const isTimed = ({ deadlineMillis, live, source }: Compiled): boolean =>
  deadlineMillis !== Infinity || live !== undefined || (typeof source !== "function" && source.isTimed !== false)

/** Parts with changes, even if they are looked up later. */
export const changed = (compiled: Compiled, change: (compiled: Compiled) => Partial<Compiled>): Compiled => {
  const { live } = compiled
  const next = { ...compiled, ...change(compiled) }
  return live === undefined ? next : { ...next, live: (context) => changed(live(context), change) }
}

/** One of two costs, by class. */
const either = (pick: typeof Math.max, one: Cost, other: Cost): Cost => ({
  cost: pick(one.cost, other.cost),
  timeoutCost: pick(one.timeoutCost, other.timeoutCost),
  throttlingCost: pick(one.throttlingCost, other.throttlingCost),
  longPolling: pick(Number(one.longPolling), Number(other.longPolling)) > 0
})

/** The dearer of each. */
export const dearest = (one: Cost | undefined, other: Cost | undefined): Cost | undefined =>
  one && other ? either(Math.max, one, other) : one ?? other

const cheapest = (one: Cost | undefined, other: Cost | undefined): Cost | undefined =>
  one && other && either(Math.min, one, other)

const eachOf = (bound: typeof Math.min, cost: typeof dearest) => (one: Limited, other: Limited): Limited => ({
  maxAttempts: bound(one.maxAttempts, other.maxAttempts),
  deadlineMillis: bound(one.deadlineMillis, other.deadlineMillis),
  quota: cost(one.quota, other.quota)
})

/** The stricter of each: what holds while both do. */
export const meet = /* @__PURE__ */ eachOf(Math.min, dearest)

/** The looser of each: what holds while either does. */
export const join = /* @__PURE__ */ eachOf(Math.max, cheapest)

/** One until it ends, then the other, which begins with the failure that ended the first. */
export const sequence = (one: Limited, other: Limited): Limited => ({
  maxAttempts: one.maxAttempts + other.maxAttempts - 1,
  deadlineMillis: one.deadlineMillis + other.deadlineMillis,
  quota: dearest(one.quota, other.quota)
})

/** The limits of a policy, with those of what decides inside. */
export const limitsOf = (compiled: Compiled): Limited => {
  const { source } = compiled
  const inside = typeof source === "function" ? undefined : source.limited
  return inside === undefined ? compiled : meet(compiled, inside)
}

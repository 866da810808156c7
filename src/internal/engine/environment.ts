import * as Context from "effect/Context"
import * as Schedule from "effect/Schedule"
import * as Limiter from "../../AdaptiveRateLimiter.ts"
import { CurrentObserver, type RetryObserver } from "../../RetryObserver.ts"
import { RetryQuota } from "../../RetryQuota.ts"
import type { CallFiber } from "../state/clock.ts"
import type { Store } from "../state/store.ts"

/** What an attempt finds in its context. */
export interface Environment {
  readonly store: Store | undefined
  readonly limiter: Limiter.Engine | undefined
  readonly observer: RetryObserver
  /** The metadata of the schedule around the attempt, if there is one. */
  readonly metadata: Schedule.Metadata | undefined
  /** A first attempt is held back by nothing, and nothing but the quota has to hear of its success. */
  readonly isQuiet: boolean
}

const read = (context: Context.Context<never>): Environment => {
  const limiter = Context.getOrUndefined(context, Limiter.AdaptiveRateLimiter)?.engine
  const metadata = Context.getOrUndefined(context, Schedule.CurrentMetadata)
  const observer = Context.get(context, CurrentObserver)
  const store = Context.getOrUndefined(context, RetryQuota)?.store
  return { store, limiter, observer, metadata, isQuiet: isQuiet(context) }
}

/** A first attempt is held back by nothing, and nothing but the quota has to hear of its success. */
export const isQuiet = (context: Context.Context<never>): boolean => {
  const store = Context.getOrUndefined(context, RetryQuota)?.store
  return (store === undefined || store.firstAttemptCost === 0) &&
    Context.getOrUndefined(context, Limiter.AdaptiveRateLimiter)?.engine === undefined &&
    Context.get(context, CurrentObserver).onAttempt === undefined
}

// A context never changes, and many calls share one; but a retry has one of its own.
const known = new WeakMap<Context.Context<never>, Environment>()

/** What an attempt of this fiber finds. */
export const environment = (fiber: CallFiber): Environment => {
  const { context } = fiber
  const cached = known.get(context)
  if (cached !== undefined) return cached
  const found = read(context)
  if (found.metadata === undefined) known.set(context, found)
  return found
}

/** The quota that an attempt of this fiber pays from. */
export const storeOf = (fiber: CallFiber): Store | undefined => Context.getOrUndefined(fiber.context, RetryQuota)?.store

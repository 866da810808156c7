import * as Context from "effect/Context"
import * as Schedule from "effect/Schedule"
import * as Limiter from "../AdaptiveRateLimiter.ts"
import { CurrentObserver, type RetryObserver } from "../RetryObserver.ts"
import { RetryQuota } from "../RetryQuota.ts"
import type { CallFiber } from "./clock.ts"
import type { Store } from "./store.ts"

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
  const isFree = store === undefined || store.firstAttemptCost === 0
  return {
    store,
    limiter,
    observer,
    metadata,
    isQuiet: isFree && limiter === undefined && observer.onAttempt === undefined
  }
}

// A context never changes and most calls of a program share one, so the last quiet one is kept with what was read.
let lastContext: Context.Context<never> = Context.empty()
let lastEnvironment: Environment = read(lastContext)

/** What an attempt of this fiber finds. */
export const environment = (fiber: CallFiber): Environment => {
  if (fiber.context === lastContext) return lastEnvironment
  const found = read(fiber.context)
  if (found.isQuiet && found.metadata === undefined) {
    lastContext = fiber.context
    lastEnvironment = found
  }
  return found
}

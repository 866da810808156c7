import type * as Duration from "effect/Duration"
import type * as Schedule from "effect/Schedule"
import type { RetryObserver } from "../../RetryObserver.ts"
import { isRetryToken, type RetryToken } from "../../RetryToken.ts"
import type { CallFiber } from "../state/clock.ts"

type Pending = NonNullable<RetryToken["pending"]>

/** The retry that a fiber is about to make: one at a time, from its decision until it leaves. */
const byFiber = new WeakMap<CallFiber, Pending>()

/** The token behind a delay: combinators around a policy change its output, but seldom its delay. */
const byDelay = new WeakMap<Duration.Duration, RetryToken>()

const watched = (fiber: CallFiber): Pending => {
  const pending: Pending = { token: undefined }
  byFiber.set(fiber, pending)
  fiber.addObserver(() => pending.token?.held?.giveBackUnsafe())
  return pending
}

/** Gives back what the token holds if the fiber ends before the retry leaves, whatever ends it. */
export const watch = (token: RetryToken, fiber: CallFiber): void => {
  const pending = byFiber.get(fiber) ?? watched(fiber)
  pending.token = token
  token.pending = pending
}

/**
 * Gives back what the fiber holds for a retry that has not left, until it does: a schedule can be stopped by a combinator
 * around it, of which it never hears.
 */
export const lapse = (fiber: CallFiber): void => {
  byFiber.get(fiber)?.token?.held?.giveBackUnsafe()
}

/** Remembers the token where an attempt under `Effect.retry` finds it again; returns the delay to wait. */
export const remember = (token: RetryToken, fiber: CallFiber): Duration.Duration => {
  const delay = token.delay
  // A token that holds something is watched from its decision on.
  if (token.held === undefined) watch(token, fiber)
  byDelay.set(delay, token)
  return delay
}

/** The token of the retry that runs, if a policy gave leave for it. */
export const tokenOf = (metadata: Schedule.Metadata | undefined, fiber: CallFiber): RetryToken | undefined => {
  if (metadata === undefined || metadata.attempt === 0) return undefined
  if (isRetryToken(metadata.output)) return metadata.output
  const known = byDelay.get(metadata.duration) ?? byFiber.get(fiber)?.token
  return known?.error === metadata.input ? known : undefined
}

/** Tells the observer of a retry. One that throws ends the call, and the retry never leaves. */
export const announce = (token: RetryToken, observer: RetryObserver, fiber: CallFiber): void => {
  try {
    observer.onRetry?.(token, fiber)
  } catch (defect) {
    token.cancelUnsafe()
    throw defect
  }
}

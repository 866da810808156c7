/**
 * Who is told what a policy does.
 *
 * By default each retry and each stop becomes an event of the current span, and nothing else happens. `RetryMetrics`
 * is an observer that counts; {@link none} switches everything off. An observer that does not ask for attempts costs
 * calls that succeed nothing.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import type * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { clockOf } from "./internal/state/clock.ts"
import type { RetryInfo } from "./RetryInfo.ts"
import type { RetryStopped, RetryToken } from "./RetryToken.ts"

/**
 * The fiber that retries. Its context holds the services and the span of the call.
 *
 * @category models
 * @since 0.1.0
 */
export type CallFiber = Fiber.Fiber<unknown, unknown>

/**
 * Told synchronously, while the call runs: it must be quick, and what it throws is a defect of the call.
 *
 * @category models
 * @since 0.1.0
 */
export interface RetryObserver {
  /** An attempt ended with a success or a typed failure. */
  readonly onAttempt?: ((succeeded: boolean, fiber: CallFiber) => void) | undefined
  /** A retry will be made, after the token's delay. */
  readonly onRetry?: ((token: RetryToken, fiber: CallFiber) => void) | undefined
  /** A failed call is not retried. */
  readonly onStop?: ((stopped: RetryStopped, fiber: CallFiber) => void) | undefined
}

/**
 * The class of a failure: `"throttling"`, `"timeout"`, `"transient"`, or `"unknown"` when the classifier did not know it.
 *
 * @category getters
 * @since 0.1.0
 */
export const failureClass = (info: RetryInfo | undefined): "throttling" | "timeout" | "transient" | "unknown" => {
  if (info === undefined) return "unknown"
  if (info.throttling) return "throttling"
  return info.timeout ? "timeout" : "transient"
}

const event = (fiber: CallFiber, name: string, attributes: () => Record<string, unknown>): void => {
  const span = fiber.cache.span
  if (span?._tag === "Span") span.event(name, clockOf(fiber).currentTimeNanosUnsafe(), attributes())
}

/**
 * The observer that adds events to the current span: `retry` (`retry.attempt`, `retry.delay_ms`, `retry.class`,
 * `retry.cost`) and `retry.stopped` (`retry.reason`, `retry.attempts`, `retry.class`). Nothing of the error itself is in
 * them.
 *
 * @category constructors
 * @since 0.1.0
 */
export const spanEvents: RetryObserver = {
  onRetry: (token, fiber) =>
    event(fiber, "retry", () => ({
      "retry.attempt": token.attempt,
      "retry.delay_ms": token.delayMillis,
      "retry.class": failureClass(token.info),
      "retry.cost": token.cost
    })),
  onStop: (stopped, fiber) =>
    event(fiber, "retry.stopped", () => ({
      "retry.reason": stopped.reason,
      "retry.attempts": stopped.attempts,
      "retry.class": failureClass(stopped.info)
    }))
}

/**
 * The observer that does nothing.
 *
 * @category constructors
 * @since 0.1.0
 */
export const none: RetryObserver = {}

type Callback<A> = ((value: A, fiber: CallFiber) => void) | undefined

const both = <A>(first: Callback<A>, second: Callback<A>): Callback<A> => {
  if (first === undefined || second === undefined) return first ?? second
  return (value, fiber) => {
    first(value, fiber)
    second(value, fiber)
  }
}

/**
 * Tells both observers, `self` first.
 *
 * @category combinators
 * @since 0.1.0
 */
export const combine = (self: RetryObserver, that: RetryObserver): RetryObserver => ({
  onAttempt: both(self.onAttempt, that.onAttempt),
  onRetry: both(self.onRetry, that.onRetry),
  onStop: both(self.onStop, that.onStop)
})

/**
 * The observer in force. Defaults to {@link spanEvents}.
 *
 * @category services
 * @since 0.1.0
 */
export const CurrentObserver: Context.Reference<RetryObserver> = Context.Reference<RetryObserver>(
  "effect-retry/RetryObserver/CurrentObserver",
  { defaultValue: () => spanEvents }
)

/**
 * A layer that sets the observer.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (observer: RetryObserver): Layer.Layer<never> => Layer.succeed(CurrentObserver, observer)

/** The libraries of promises, each set up to make three attempts and to retry transient errors only. */
import {
  AdaptiveRetryStrategy,
  isServerError,
  isThrottlingError,
  isTransientError as isTransientOfSmithy,
  StandardRetryStrategy
} from "@smithy/core/retry"
import type { RetryErrorInfo, RetryErrorType, RetryStrategyV2, SdkError } from "@smithy/types"
import asyncRetry from "async-retry"
import { ConstantBackoff, ExponentialBackoff, handleWhen, retry as cockatielRetry } from "cockatiel"
import { constVoid } from "effect/Function"
import pRetry from "p-retry"
import { isTransient, type ServiceError } from "./operations.ts"

type Send = () => Promise<unknown>

/** Makes calls of an operation. */
export type Caller = (send: Send) => () => Promise<unknown>

/** How long to wait between attempts: as the library would, or always the same. */
export type Wait = "its own" | number

/** What the SDK's middleware reports to a strategy about an error. */
const errorTypeOf = (error: ServiceError): RetryErrorType => {
  if (isThrottlingError(error as SdkError)) return "THROTTLING"
  if (isTransientOfSmithy(error as SdkError)) return "TRANSIENT"
  return isServerError(error as SdkError) ? "SERVER_ERROR" : "CLIENT_ERROR"
}

const infoOf = (error: ServiceError): RetryErrorInfo => ({ error: error as SdkError, errorType: errorTypeOf(error) })

/** Only the loop of the SDK's middleware. `fill` keeps its quota from running dry. */
const smithyLoop = (strategy: RetryStrategyV2, fill: () => void = constVoid): Caller => (send) => async () => {
  let token = await strategy.acquireInitialRetryToken("")
  for (;;) {
    try {
      const output = await send()
      strategy.recordSuccess(token)
      return output
    } catch (error) {
      fill()
      try {
        token = await strategy.refreshRetryTokenForRetry(token, infoOf(error as ServiceError))
      } catch {
        throw error
      }
    }
  }
}

const backoffOf = (millis: number) => ({ setDelayBase: constVoid, computeNextBackoffDelay: () => millis })

export const smithy = (wait: Wait = "its own"): Caller => {
  const strategy = wait === "its own"
    ? new StandardRetryStrategy(3)
    : new StandardRetryStrategy({ maxAttempts: 3, baseDelay: wait, backoff: backoffOf(wait) })
  // An own property, since V8 would otherwise not treat the strategy as in an app.
  const quota = strategy as unknown as { capacity: number }
  return smithyLoop(strategy, () => {
    quota.capacity = 1e9
  })
}

export const smithyAdaptive: Caller = smithyLoop(new AdaptiveRetryStrategy(async () => 3) as RetryStrategyV2)

export const cockatiel = (wait: Wait = "its own"): Caller => {
  const backoff = wait === "its own"
    ? new ExponentialBackoff({ initialDelay: 1000, maxDelay: 20_000 })
    : new ConstantBackoff(wait)
  const policy = cockatielRetry(handleWhen(isTransient), { maxAttempts: 2, backoff })
  return (send) => () => policy.execute(send)
}

const timeouts = (wait: Wait) =>
  wait === "its own"
    ? { minTimeout: 1000, maxTimeout: 20_000, randomize: true }
    : { minTimeout: wait, maxTimeout: wait, factor: 1, randomize: false }

export const pRetryOf = (wait: Wait = "its own"): Caller => {
  const options = { retries: 2, shouldRetry: ({ error }: { error: Error }) => isTransient(error), ...timeouts(wait) }
  return (send) => () => pRetry(send, options)
}

/** It has no predicate: an operation asks it to bail. */
export const asyncRetryOf = (wait: Wait = "its own"): Caller => {
  const options = { retries: 2, ...timeouts(wait) }
  return (send) => () =>
    asyncRetry(async (bail) => {
      try {
        return await send()
      } catch (error) {
        if (isTransient(error)) throw error
        return bail(error as Error)
      }
    }, options)
}

const { setTimeout: timer } = globalThis

/** Runs with timers that fire immediately. */
export const withoutTimers = async <A>(run: () => Promise<A>): Promise<A> => {
  globalThis.setTimeout = ((done: () => void) => {
    done()
  }) as never
  try {
    return await run()
  } finally {
    globalThis.setTimeout = timer
  }
}

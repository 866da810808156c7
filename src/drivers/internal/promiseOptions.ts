import type * as Context from "effect/Context"
import type { Retry, Stop } from "../../RetryDecision.ts"
import type * as RetryInfo from "../../RetryInfo.ts"
import type { RetryPolicy } from "../../RetryPolicy.ts"

/**
 * One attempt of a call.
 *
 * @category models
 * @since 0.1.0
 */
export interface AttemptContext {
  /** The number of the attempt: 1 for the first. */
  readonly attempt: number
  /** Aborted, with the caller's reason, when the caller gives up. Each attempt has its own. */
  readonly signal: AbortSignal
}

/**
 * The function to retry. It returns a value or a promise, and fails by throwing or rejecting.
 *
 * @category models
 * @since 0.1.0
 */
export type AttemptFunction<A> = (attempt: AttemptContext) => PromiseLike<A> | A

/**
 * Options of one call.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallOptions {
  /**
   * Ends the call when it is aborted: the promise rejects immediately with its reason. `null` means none, as for
   * `fetch`.
   */
  readonly signal?: AbortSignal | null | undefined
}

/**
 * The policies that can be used: for errors of any type, since promises do not type their errors.
 *
 * @category models
 * @since 0.1.0
 */
export type Policy<R> = RetryPolicy<unknown, unknown, R>

/**
 * Where services come from.
 *
 * @category models
 * @since 0.1.0
 */
export interface ContextOptions {
  /**
   * Services of an Effect program: its quota, limiter, classifier, observer, clock, tracer, for example
   * `await runtime.context()` of a `ManagedRuntime`. What it has is used; a missing quota or limiter is made.
   */
  readonly context?: Context.Context<never> | undefined
}

/**
 * What a caller can change about a policy, or be notified of, without services.
 *
 * @category models
 * @since 0.1.0
 */
export interface RetryOptions {
  /** The most retries, in place of the policy's own limit: a whole number of at least 0, or `Infinity`. */
  readonly retries?: number | undefined
  /**
   * Asked first about every failure: a thrown or rejected value, or a `Response` with a status from 400 up. `true`
   * retries it, `false` never does, facts such as `{ throttling: true, retryAfter: "2 seconds" }` say more; `undefined`
   * leaves it to the classifier of the context. May return a promise of any of these. If it throws, or a promise takes
   * longer than a minute, that counts as `undefined`.
   */
  readonly classify?: ((error: unknown) => Verdict | PromiseLike<Verdict>) | undefined
  /** A retry will be made, after its delay. The call waits for a returned promise, up to a minute; an exception ends it. */
  readonly onRetry?: ((error: unknown, info: Retry) => unknown) | undefined
  /** A failed call is not retried. The call waits for a returned promise, up to a minute. */
  readonly onStop?: ((error: unknown, info: Stop) => unknown) | undefined
}

/**
 * What is known about a failure: whether to retry it, or its facts. `undefined` leaves it to the classifier of the
 * context.
 *
 * @category models
 * @since 0.1.0
 */
export type Verdict = boolean | RetryInfo.Facts | undefined

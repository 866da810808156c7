/**
 * One send: its outcome is booked, its failures can be retried.
 *
 * A schedule hears only of failures. It never sees a success, which pays the quota back, nor the first send, which the
 * adaptive limiter may hold back. {@link attempt} sees every send, the schedule sees every failure, and together they
 * are the whole retry loop of the AWS reference.
 *
 * @since 0.1.0
 */

import type * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Schedule from "effect/Schedule"
import { Booking, current } from "./internal/engine/booking.ts"
import { deadlineAt, decide, type Decision, type Parts, Run } from "./internal/engine/decision.ts"
import { environment, isQuiet, storeOf } from "./internal/engine/environment.ts"
import { nesting } from "./internal/engine/nesting.ts"
import { announce, lapse, tokenOf } from "./internal/engine/pending.ts"
import { failAgain, settling } from "./internal/engine/settling.ts"
import { clockOf } from "./internal/state/clock.ts"
import type { Store } from "./internal/state/store.ts"
import { type CallFiber, CurrentObserver } from "./RetryObserver.ts"
import { type Attempted, isRetryPolicy, type RetryPolicy, TypeId } from "./RetryPolicy.ts"
import { isRetryStopped, isRetryToken, type RetryDecision, type RetryStopped, type RetryToken } from "./RetryToken.ts"

type AnyEffect = Effect.Effect<any, any, any>

/** A first attempt that nothing but the quota hears of has succeeded. */
const bookFirstSuccess = <A>(value: A): A => {
  const fiber = current()
  const store = storeOf(fiber)
  lapse(fiber)
  if (store !== undefined && store.successIncrement !== 0 && !store.isFull) {
    store.put(store.successIncrement, clockOf(fiber))
  }
  return value
}

/**
 * Marks an effect as one send of a call: what a retry policy with a quota can retry.
 *
 * **Details**
 *
 * A success gives the tokens of its retry back to the `RetryQuota`, or puts one in if it needed no retry. Where the
 * context has an `AdaptiveRateLimiter`, the effect waits for a send token first, and its outcome is measured. A defect
 * or an interruption is booked neither as success nor as failure; a retry that was sent when it happened is spent.
 * The error comes out as it is; its type carries a mark that exists in types only.
 *
 * **Gotchas**
 *
 * Wrap the whole call, once: the first attempt inside a retried effect is the one whose success pays back. What
 * `Effect.retry` returns carries the mark on its type too, but is no attempt: to retry it again, mark it again. A type
 * cannot mark `null` and `undefined`: map such errors to something else first.
 * A limiter that fails fast makes attempts fail with `RateLimitExceeded`: use a policy that says so in its type, such as
 * `awsAdaptive`.
 *
 * **Example** (A call with the standard policy of AWS)
 *
 * ```ts
 * const program = Effect.retry(attempt(call), awsStandard)
 * Effect.runPromise(program.pipe(Effect.provide(RetryQuota.layer())))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const attempt = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E & Attempted, R> => {
  const body = Effect.map(self, bookFirstSuccess)
  const attempted = Effect.withFiber((fiber): AnyEffect => {
    const metadata = Context.getOrUndefined(fiber.context, Schedule.CurrentMetadata)
    const marks = metadata !== undefined && nesting.inUse
    const retried = tokenOf(metadata, fiber)
    if (retried === undefined && !marks && isQuiet(fiber.context)) return body
    const found = environment(fiber)
    const token = unclaimed(retried, found.store)
    const booking = new Booking(found, token)
    const marked = marks ? Effect.updateContext(self, (context: Context.Context<any>) => booking.marked(context)) : self
    return booking.send(booking.leaving(marked), fiber, failAgain)
  })
  originals.set(attempted, self)
  return attempted
}

/** What attempts were made of, so that `withRetry` does not book them twice. */
const originals = new WeakMap<AnyEffect, AnyEffect>()

/** The token, if it is still to be claimed, and not by an attempt that pays from another quota. */
const unclaimed = (token: RetryToken | undefined, store: Store | undefined): RetryToken | undefined =>
  token?.isUnclaimed && (token.held === undefined || token.held.store === store) ? token : undefined

/** Retrying has ended: the observer is told, the caller has its own error. */
const stopped = (decision: RetryStopped, cause: Cause.Cause<unknown>, fiber: CallFiber): AnyEffect => {
  fiber.getRef(CurrentObserver).onStop?.(decision, fiber)
  const failure = Effect.failCause(cause)
  return decision.delayMillis === 0 ? failure : Effect.andThen(Effect.sleep(decision.delayMillis), failure)
}

/** A call from its first failure on: it decides, sleeps, retries. */
class Call {
  private readonly self: AnyEffect
  private readonly run: Run
  private readonly booking: Booking
  private firstFailureMillis = 0
  private nowMillis = 0
  private sinceMillis = 0
  /** The next send, if it is like the last one. */
  private again: AnyEffect | undefined = undefined

  constructor(self: AnyEffect, run: Run, booking: Booking) {
    this.self = self
    this.run = run
    this.booking = booking
  }

  /** Decides on a failure, and retries after the delay, or fails with it. */
  failed(error: unknown, cause: Cause.Cause<unknown>): AnyEffect {
    const fiber = current()
    if (this.booking.token?.expired) return stopped(this.run.stop("deadline"), cause, fiber)
    return this.follow(decide(this.run, error, fiber), cause, fiber)
  }

  /** Does what was decided about a failure. */
  follow(decision: Decision, cause: Cause.Cause<unknown>, fiber: CallFiber): AnyEffect {
    const now = clockOf(fiber).currentTimeMillisUnsafe()
    return Effect.isEffect(decision)
      ? Effect.flatMap(decision, (decided) => this.obey(decided, cause, current(), now))
      : this.obey(decision, cause, fiber, now)
  }

  private obey(decision: RetryDecision, cause: Cause.Cause<unknown>, fiber: CallFiber, now: number): AnyEffect {
    if (!isRetryToken(decision)) return stopped(decision, cause, fiber)
    const first = decision.attempt === 1
    if (first) this.firstFailureMillis = now
    this.sinceMillis = first ? 0 : now - this.nowMillis
    this.nowMillis = now
    announce(decision, this.booking.environment.observer, fiber)
    this.booking.token = decision
    return Effect.flatMap(clockOf(fiber).sleep(decision.delay), this.retry)
  }

  private readonly retry = (): AnyEffect => {
    if (this.again !== undefined) return this.again
    const attempted = Effect.updateContext(this.self, (context: Context.Context<any>) => this.withMetadata(context))
    const sent = this.booking.send(attempted, current(), (error, cause) => this.failed(error, cause))
    if (this.booking.environment.limiter === undefined) this.again = sent
    return sent
  }

  private withMetadata(context: Context.Context<any>): Context.Context<any> {
    const token = this.booking.token!
    this.booking.leaves()
    const updated = Context.add(context, Schedule.CurrentMetadata, {
      input: this.run.error,
      output: token,
      duration: token.delay,
      attempt: token.attempt,
      start: this.firstFailureMillis,
      now: this.nowMillis,
      elapsed: this.nowMillis - this.firstFailureMillis,
      elapsedSincePrevious: this.sinceMillis
    })
    return this.booking.marked(updated)
  }
}

const freshMetadata = (context: Context.Context<any>) =>
  Context.add(context, Schedule.CurrentMetadata, Schedule.CurrentMetadata.defaultValue())

/** The call when something but the quota has to hear of its first attempt, or when its time has to be taken. */
const bookedCall = (self: AnyEffect, parts: Parts, fiber: CallFiber): AnyEffect => {
  const found = environment(fiber)
  const booking = new Booking(found, undefined)
  const call = new Call(self, new Run(parts, deadlineAt(parts, fiber)), booking)
  const fresh = found.metadata !== undefined || nesting.inUse
  const first = fresh
    ? Effect.updateContext(self, (context: Context.Context<any>) => booking.marked(freshMetadata(context)))
    : self
  return booking.send(booking.leaving(first), fiber, (error, cause) => call.failed(error, cause))
}

const retryWith = (self: AnyEffect, { [TypeId]: parts }: RetryPolicy<any, any, any>): AnyEffect => {
  const timed = parts.deadlineMillis !== Infinity
  const firstFailed = (error: unknown, cause: Cause.Cause<unknown>): AnyEffect => {
    const fiber = current()
    const run = new Run(parts, Infinity)
    const decision = decide(run, error, fiber)
    if (isRetryStopped(decision)) return stopped(decision, cause, fiber)
    const call = new Call(self, run, new Booking(environment(fiber), undefined))
    return call.follow(decision, cause, fiber)
  }
  const body = settling(self, (value) => Effect.succeed(bookFirstSuccess(value)), firstFailed)
  return Effect.withFiber((fiber) => {
    const { isQuiet, metadata } = environment(fiber)
    return isQuiet && metadata === undefined && !timed && !nesting.inUse ? body : bookedCall(self, parts, fiber)
  })
}

/**
 * Retries an effect: `Effect.retry(attempt(self), policy)` in one word, and the faster of the two.
 *
 * **Details**
 *
 * The decisions, delays, tokens and `Schedule.CurrentMetadata` are those of `Effect.retry`. The first attempt runs bare:
 * nothing is set up until it fails. With a schedule that is no `RetryPolicy` it is `Effect.retry`.
 *
 * **Example** (The one-word form)
 *
 * ```ts
 * const getItem = callDynamo.pipe(withRetry(awsStandard))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const withRetry: {
  <E2, Err, R2>(
    policy: Schedule.Schedule<unknown, E2, Err, R2>
  ): <A, E extends Unmarked<E2>, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E | Err, R | R2>
  <A, E extends Unmarked<E2>, R, E2, Err, R2>(
    self: Effect.Effect<A, E, R>,
    policy: Schedule.Schedule<unknown, E2, Err, R2>
  ): Effect.Effect<A, E | Err, R | R2>
} = dual(
  2,
  (self: AnyEffect, policy: Schedule.Schedule<unknown, any, any, any>): AnyEffect =>
    isRetryPolicy(policy)
      ? retryWith(originals.get(self) ?? self, policy as RetryPolicy<any, any, any>)
      : Effect.retry(attempt(self), policy)
)

/** The errors a policy takes, without the mark that `withRetry` itself leaves on them. */
type Unmarked<E> = E extends infer Error & Attempted ? Error : E

/**
 * Calls without fibers: the decisions of a policy, for code that has its own loop, timers and sends.
 *
 * `withRetry` runs a call as an effect. A simulator, an event loop or a callback client has no effect to run: it makes
 * the sends itself, and reports to the {@link Call} how each ended. The methods of a call are plain functions. Quota,
 * gates, classifier, observer, clock and randomness come from the context in which the driver is made, and work as
 * under `withRetry`. Only what has to wait is an effect: a gate that holds a send back, a remote quota, a schedule
 * lifted into the policy, an observer that the call waits for.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Scheduler from "effect/Scheduler"
import type { Compiled } from "../engine/compiled.ts"
import { asDecision, Decider, decisionOf } from "../engine/decider.ts"
import { type CallEnvironment, environmentOf } from "../engine/environment.ts"
import { compiledOf } from "../engine/policy/policy.ts"
import { withServices } from "../engine/policy/providedPolicy.ts"
import { Run } from "../engine/run.ts"
import { after, type AnyEffect, send } from "../engine/send.ts"
import type { RetryDecision, StopReason } from "../RetryDecision.ts"
import type { RetryPolicy } from "../RetryPolicy.ts"

/**
 * A send that was never made: the quota or a gate refused it, or it came after the deadline.
 *
 * @category models
 * @since 0.1.0
 */
export interface Refusal {
  /** Of a first send, what refused it; of a retry, the error of the send before. */
  readonly error: unknown
  /** What the policy decides about it. */
  readonly decision: RetryDecision
}

/**
 * One call. For each send: {@link Call.enter}, {@link Call.markSent}, and one of {@link Call.succeeded},
 * {@link Call.failed} and {@link Call.abandon}. After a `Retry`: its delay, then the next send. After a `Stop`: its
 * delay, then the call ends.
 *
 * @category models
 * @since 0.1.0
 */
export interface Call {
  /**
   * Asks quota and gates for the next send: `undefined` if it may be sent now, otherwise an effect that waits until it
   * may, and fails with a {@link Refusal}. If interrupted, it has taken nothing, and the call is over.
   */
  readonly enter: () => Effect.Effect<void, Refusal> | undefined
  /** Marks the send as sent: what it holds is spent unless it succeeds. */
  readonly markSent: () => void
  /** Ends the call with a success; gates see the value. If it returns an effect, run it to the end. */
  readonly succeeded: (value?: unknown) => Effect.Effect<void> | undefined
  /**
   * Reports a failure, and returns what the policy decides, or an effect if that has to wait. If interrupted, the call
   * is over.
   */
  readonly failed: (error: unknown) => RetryDecision | Effect.Effect<RetryDecision, unknown>
  /** Ends the call without an outcome, or before its next send: what it holds is settled. */
  readonly abandon: () => void
}

/**
 * Makes calls under a policy.
 *
 * @category models
 * @since 0.1.0
 */
export interface Driver {
  /** Begins a call. Its deadline counts from now. */
  readonly call: () => Call
}

class Driven implements Call {
  private readonly decider: Decider

  constructor(compiled: Compiled, private readonly environment: CallEnvironment) {
    this.decider = new Decider(compiled, new Run(environment)).begins()
  }

  enter(): Effect.Effect<void, Refusal> | undefined {
    const { run } = this.decider
    const admitted = run.admits()
    return admitted && this.settled(send({
      admitted,
      permit: run.permit,
      sent: Effect.void,
      refused: (error) => {
        run.record(error)
        return this.stopped("vetoed", error)
      },
      expired: () => this.stopped(run.heldBack, run.error)
    }))
  }

  private stopped(reason: StopReason, error: unknown): AnyEffect {
    this.decider.refuses(reason)
    const decision = this.decider.stops()
    return after(this.decider.run.stopped(decision), Effect.fail({ error, decision }))
  }

  markSent(): void {
    this.decider.run.sent()
  }

  succeeded(value?: unknown): Effect.Effect<void> | undefined {
    return this.decider.run.succeeded(value)
  }

  failed(error: unknown): RetryDecision | Effect.Effect<RetryDecision, unknown> {
    const wait = this.decider.run.failed(error)
    const decision = wait === undefined
      ? decisionOf(this.decider)
      : Effect.flatMap(wait, () => asDecision(decisionOf(this.decider)))
    return Effect.isEffect(decision) ? this.settled(decision) : decision
  }

  abandon(): void {
    this.decider.run.complete()
  }

  /** Runs it in the driver's context, on the scheduler of the running fiber. Interrupted, the call is over. */
  private settled<A, E>(self: Effect.Effect<A, E, unknown>): Effect.Effect<A, E> {
    const { context } = this.environment
    return Effect.updateContext(
      Effect.onInterrupt(self, () => Effect.sync(() => this.abandon())),
      (caller: Context.Context<never>) =>
        Context.add(context, Scheduler.Scheduler, Context.get(caller, Scheduler.Scheduler)) as Context.Context<unknown>
    )
  }
}

/**
 * Makes the driver of a policy, with the services of the context it is made in.
 *
 * **Gotchas**
 *
 * A call has no fiber, so nothing settles its holdings if it is forgotten: end each call with an outcome or `abandon`.
 * A policy inside the sends of a driven call does not know that it is nested.
 *
 * **Example** (A call whose first send fails)
 *
 * ```ts
 * const program = Effect.gen(function*() {
 *   const call = (yield* RetryDriver.make(awsStandard)).call()
 *   call.enter() // undefined: it may be sent immediately
 *   call.markSent()
 *   return call.failed({ status: 503 }) // a Retry, with its delay
 * }).pipe(Effect.provide(RetryQuota.layer()))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <R>(policy: RetryPolicy<unknown, unknown, R>): Effect.Effect<Driver, never, R> =>
  withServices(compiledOf(policy), (compiled, context) => {
    const environment = environmentOf(context)
    return { call: () => new Driven(compiled, environment) }
  })

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

/** Begins a call. */
const begun = (compiled: Compiled, environment: CallEnvironment): Call => {
  const decider = new Decider(compiled, new Run(environment)).begins()
  const { run } = decider
  const abandon = () => run.complete()
  const stopped = (reason: StopReason, error: unknown): AnyEffect => {
    decider.refuses(reason)
    const decision = decider.stops()
    return after(run.stopped(decision), Effect.fail({ error, decision }))
  }
  const refused = (error: unknown) => {
    run.record(error)
    return stopped("vetoed", error)
  }
  const expired = () => stopped(run.heldBack, run.error)
  return {
    enter: () => {
      const admitted = run.admits()
      const entered = admitted && send({ admitted, permit: run.permit, sent: Effect.void, refused, expired })
      return entered && settled(environment, entered, abandon)
    },
    markSent: () => run.sent(),
    succeeded: (value) => run.succeeded(value),
    failed: (error) => {
      const wait = run.failed(error)
      const decision = wait === undefined
        ? decisionOf(decider)
        : Effect.flatMap(wait, () => asDecision(decisionOf(decider)))
      return Effect.isEffect(decision) ? settled(environment, decision, abandon) : decision
    },
    abandon
  }
}

/** Runs it in the driver's context, on the scheduler of the running fiber. Interrupted, the call is over. */
const settled = <A, E>(
  { context }: CallEnvironment,
  self: Effect.Effect<A, E, unknown>,
  abandon: () => void
): Effect.Effect<A, E> =>
  Effect.updateContext(
    Effect.onInterrupt(self, () => Effect.sync(abandon)),
    (caller: Context.Context<never>) =>
      Context.add(context, Scheduler.Scheduler, Context.get(caller, Scheduler.Scheduler)) as Context.Context<unknown>
  )

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
    return { call: () => begun(compiled, environment) }
  })

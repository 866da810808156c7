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
import { type AnyEffect, asEffect, Call as EngineCall, deadlineAt, failed, succeeded } from "./engine/call.ts"
import type { Parts } from "./engine/parts.ts"
import { Permit } from "./engine/permit.ts"
import { partsOf } from "./engine/policy/policy.ts"
import { admissionUntil, settling } from "./engine/send.ts"
import { type World, worldOf } from "./engine/world.ts"
import type { AnyContext } from "./internal/shared.ts"
import type { RetryDecision } from "./RetryDecision.ts"
import type { Attempted, RetryPolicy } from "./RetryPolicy.ts"

/**
 * A send that was never made: the quota or a gate refused it, or it came after the deadline.
 *
 * @category models
 * @since 0.1.0
 */
export interface Refusal {
  /** What refused it; at the deadline, the previous send's error. */
  readonly error: unknown
  /** What the policy decides about it. */
  readonly decision: RetryDecision
}

/**
 * One call. For each send: {@link Call.enter}, {@link Call.leave}, and one of {@link Call.succeeded},
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
  readonly leave: () => void
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

type Policy<R> = RetryPolicy<Attempted, R, unknown>

class Driven implements Call {
  private readonly parts: Parts
  private readonly world: World
  /** Set from the first failure on, unless a gate, a fee or a deadline needs it earlier. */
  private engine: EngineCall | undefined
  private isRetry = false

  constructor(parts: Parts, world: World) {
    this.parts = parts
    this.world = world
    this.engine = parts.deadlineMillis === Infinity ? undefined : new EngineCall(parts, deadlineAt(parts, world))
  }

  private get call(): EngineCall {
    return this.engine ??= new EngineCall(this.parts, Infinity)
  }

  enter(): Effect.Effect<void, Refusal> | undefined {
    const { world } = this
    const isFree = this.isRetry ? this.call.deadlineAtMillis === Infinity : world.isQuiet
    if (world.gates.length === 0 && isFree) return undefined
    const { call } = this
    const permit = call.permit ??= new Permit(world, call.attempt)
    const admitted = admissionUntil(world, permit, call.attempt === 0 ? Infinity : call.deadlineAtMillis)
    return admitted === undefined ? undefined : this.admitted(admitted, call, permit)
  }

  private admitted(admitted: AnyEffect, call: EngineCall, permit: Permit): Effect.Effect<void, Refusal> {
    const refused = (error: unknown): AnyEffect => {
      permit.cancel()
      return Effect.flatMap(asEffect(this.decided(error)), (decision) => Effect.fail({ error, decision }))
    }
    const settled = settling(admitted, (isIn) => {
      if (isIn) return Effect.void
      call.ends = "deadline"
      return refused(call.error)
    }, refused)
    return this.provided(Effect.onInterrupt(settled, () => Effect.sync(() => permit.cancel())))
  }

  leave(): void {
    this.engine?.permit?.leave()
  }

  succeeded(value?: unknown): Effect.Effect<void> | undefined {
    return succeeded(this.world, this.engine?.permit, this.isRetry, value)
  }

  failed(error: unknown): RetryDecision | Effect.Effect<RetryDecision, unknown> {
    const told = failed(this.world, this.engine?.permit, error)
    const decision = told === undefined
      ? this.decided(error)
      : Effect.flatMap(told, () => asEffect(this.decided(error)))
    if (!Effect.isEffect(decision)) return decision
    return this.provided(Effect.onInterrupt(decision, () => Effect.sync(() => this.engine?.permit?.cancel())))
  }

  private decided(error: unknown): RetryDecision | Effect.Effect<RetryDecision, unknown, unknown> {
    const decision = this.call.failed(this.world, error)
    this.isRetry = true
    return decision
  }

  abandon(): void {
    this.engine?.permit?.abandon()
  }

  /** Runs it in the driver's context, on the scheduler of the running fiber. */
  private provided<A, E>(self: Effect.Effect<A, E, unknown>): Effect.Effect<A, E> {
    return Effect.updateContext(
      self,
      (context: Context.Context<never>) =>
        Context.add(
          this.world.context,
          Scheduler.Scheduler,
          Context.get(context, Scheduler.Scheduler)
        ) as Context.Context<unknown>
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
 *   call.enter() // undefined: it may leave immediately
 *   call.leave()
 *   return call.failed({ status: 503 }) // a Retry, with its delay
 * }).pipe(Effect.provide(RetryQuota.layer()))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <R>(policy: Policy<R>): Effect.Effect<Driver, never, R> =>
  Effect.contextWith((context: Context.Context<R>) =>
    Effect.sync(() => {
      const parts = partsOf(policy)
      const world = worldOf(context as AnyContext)
      return { call: () => new Driven(parts, world) }
    })
  )

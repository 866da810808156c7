import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type * as Tracer from "effect/Tracer"
import type { AnyContext } from "../internal/shared.ts"
import { QuotaExhausted } from "../RetryQuota.ts"
import type { SendGate } from "../SendGate.ts"
import { type AnyEffect, asking, earn, waiting, within } from "./call.ts"
import { failureIn, Permit } from "./permit.ts"
import type { AnyFiber, World } from "./world.ts"

/** What follows a failure: gets the error, and the cause it came in. */
export type Failed = (error: unknown, cause: Cause.Cause<unknown>) => AnyEffect

/** Fails in the same way. */
export const failAgain: Failed = (_, cause) => Effect.failCause(cause)

/**
 * Like `Effect.matchEffect`, but also passes the cause of a failure, so that it can be failed with again unchanged. A
 * cause with a single error, as nearly all are, is inspected here without allocating. `died` is for a cause without an
 * error to decide about: a defect, or only an interruption.
 */
export const settling = (
  self: AnyEffect,
  succeeded: (value: any) => AnyEffect,
  failed: Failed,
  died?: () => void
): AnyEffect =>
  Effect.matchCauseEffect(self, {
    onSuccess: succeeded,
    onFailure: handling(failed, died)
  })

/** The failure part of {@link settling}. */
export const handling = (failed: Failed, died?: () => void) => (cause: Cause.Cause<unknown>): AnyEffect => {
  const only = onlyIn(cause)
  if (only !== undefined) return failed(only.error, cause)
  if (failureIn(cause) === undefined) died?.()
  return Effect.catch(Effect.failCause(cause), (error) => failed(error, Cause.fail(error)))
}

/** The failure of a cause with nothing else, as nearly all are. */
export const onlyIn = ({ reasons }: Cause.Cause<unknown>): Cause.Fail<unknown> | undefined => {
  const reason = reasons[0]
  return reason?._tag === "Fail" && reasons.length === 1 ? reason : undefined
}

/** A first send pays its fee. */
const paid = (world: World, permit: Permit): Effect.Effect<void, QuotaExhausted> | undefined => {
  const { clock, store } = world
  if (permit.retry > 0 || !store?.firstAttemptCost) return undefined
  const { firstAttemptCost: cost } = store
  const refused = () => Effect.fail(new QuotaExhausted({ cost, balance: store.balance(clock) }))
  const answer = store.reserve(cost, clock)
  if (typeof answer === "function") {
    return Effect.flatMap(
      asking(answer, permit, Infinity),
      () => permit.reservation !== undefined ? Effect.void : refused()
    )
  }
  if (answer === undefined) return refused()
  permit.pay(answer)
  return undefined
}

/** A gate must not throw. If it does, no token is lost. */
const entered = (world: World, gate: SendGate, permit: Permit): Effect.Effect<void, unknown> | undefined => {
  try {
    const wait = gate.enter(permit)
    return wait === undefined ? undefined : waiting(world, gate.name, wait)
  } catch (defect) {
    permit.cancel()
    throw defect
  }
}

/** Waits until the quota and the gates, starting at `from`, let the send pass; `undefined` if they do immediately. */
export const admission = (world: World, permit: Permit, from = -1): Effect.Effect<void, unknown> | undefined => {
  for (let next = from; next < world.gates.length; next++) {
    const wait = next < 0 ? paid(world, permit) : entered(world, world.gates[next]!, permit)
    if (wait !== undefined) {
      return Effect.flatMap(wait, () => {
        permit.waited()
        return admission(world, permit, next + 1) ?? Effect.void
      })
    }
  }
  return undefined
}

/** Like {@link admission}, but only until a deadline. Returns `false` if that has passed. */
export const admissionUntil = (
  world: World,
  permit: Permit,
  deadlineAtMillis: number
): Effect.Effect<boolean, unknown> | undefined => {
  const wait = admission(world, permit)
  const isIn = () => deadlineAtMillis === Infinity || world.nowMillis < deadlineAtMillis
  if (wait === undefined) return isIn() ? undefined : Effect.succeed(false)
  return Effect.suspend(() => Effect.map(within(wait, Math.max(0, deadlineAtMillis - world.nowMillis)), isIn))
}

/** One send: admitted, made, and recorded. */
export interface Sending {
  readonly world: World
  readonly permit: Permit
  /** Marks the permit as sent, sends, and records how it ends. */
  readonly sent: AnyEffect
  /** How long it waits for gates. */
  readonly deadlineAtMillis: number
  /** What follows if the quota or a gate refuses the send. */
  readonly refused: Failed
  /** What follows if the deadline passes before the gates let it pass. */
  readonly expired: () => AnyEffect
}

/** Sends once the quota and the gates permit it. A send that was not made costs nothing. */
export const send = ({ deadlineAtMillis, expired, permit, refused, sent, world }: Sending): AnyEffect => {
  const admitted = admissionUntil(world, permit, deadlineAtMillis)
  if (admitted === undefined) return sent
  return settling(
    admitted,
    (isIn) => {
      if (isIn) return sent
      permit.cancel()
      return expired()
    },
    (error, cause) => {
      permit.cancel()
      return refused(error, cause)
    },
    () => permit.cancel()
  )
}

/**
 * Puts the frame of an effect around what its fiber runs next, and with a depth those of the effects nested in it. Returns
 * what runs inside. The frames are there when this returns: the fiber cannot yield or be interrupted in between.
 */
export const framed = (frame: AnyEffect, fiber: AnyFiber, depth = 1): AnyEffect => {
  let inside: any = frame
  for (let deep = 0; deep < depth; deep++) {
    inside = (inside as Tracer.EffectPrimitive<any>)["~effect/Effect/evaluate"](fiber)
  }
  return inside
}

/**
 * The first send of a call that only the quota and gates need to know about, made in a context. A frame settles what it
 * holds, in place of a watch of its fiber, which costs more than everything else here. Call it in a step of the fiber.
 */
export const guarded = (self: AnyEffect, world: World, inside: AnyContext, fiber: AnyFiber): AnyEffect => {
  const permit = new Permit(world, 0)
  const { context } = fiber
  const ended = (exit: Exit.Exit<unknown, unknown>): undefined => {
    fiber.setContext(context)
    permit.settle(exit)
    if (permit.state === "returned") earn(world.store, world.clock)
  }
  void framed(Effect.onExitPrimitive(self, ended), fiber)
  const sent = () => {
    permit.leave()
    fiber.setContext(inside)
    return self
  }
  const wait = admission(world, permit)
  return wait === undefined ? sent() : Effect.flatMap(wait, sent)
}

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import type { AnyContext } from "../internal/shared.ts"
import type { SendGate } from "../SendGate.ts"
import { Permit } from "./permit.ts"
import { World } from "./world.ts"

const settle = (permit: Permit, exit: Exit.Exit<unknown, unknown>): void => {
  const reason = Exit.isFailure(exit) ? exit.cause.reasons.find(Cause.isFailReason) : undefined
  if (Exit.isSuccess(exit)) permit.succeeded(exit.value)
  else if (reason === undefined) permit.abandon()
  else permit.failed(reason.error)
  permit.cancel()
}

/** Passes a gate, and reports to it how the scope ends: for work that is not a single send. */
export const passing = <E>(gate: SendGate<E>, context: AnyContext): Effect.Effect<void, E, Scope.Scope> => {
  const permit = new Permit(new World(context, undefined, [gate]), 0)
  return Effect.andThen(
    Effect.addFinalizer((exit) => Effect.sync(() => settle(permit, exit))),
    Effect.andThen(Effect.suspend(() => gate.enter(permit) ?? Effect.void), Effect.sync(() => permit.leave(false)))
  )
}

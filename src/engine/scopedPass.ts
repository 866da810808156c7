import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { AnyContext } from "../internal/shared.ts"
import type { SendGate } from "../SendGate.ts"
import { CallEnvironment } from "./environment.ts"
import { Permit } from "./permit.ts"

/** Passes a gate, and reports to it how the scope ends: for work that is not a single send. */
export const passing = <E>(gate: SendGate<E>, context: AnyContext): Effect.Effect<void, E, Scope.Scope> => {
  const permit = new Permit(new CallEnvironment(context, undefined, []), 0)
  return Effect.andThen(
    Effect.addFinalizer((exit) => Effect.sync(() => permit.settle(exit))),
    Effect.andThen(Effect.suspend(() => gate.enter(permit) ?? Effect.void), Effect.sync(() => permit.sent(false)))
  )
}

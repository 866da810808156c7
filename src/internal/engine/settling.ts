import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { constVoid } from "effect/Function"

type AnyEffect = Effect.Effect<any, any, any>

/** What follows on a failure: the error, and the cause that it came in. */
export type Failed = (error: unknown, cause: Cause.Cause<unknown>) => AnyEffect

/** Fails in the same way. */
export const failAgain: Failed = (_, cause) => Effect.failCause(cause)

/**
 * `Effect.matchEffect`, which also tells the cause of a failure: that can be failed with again as it is. A cause with one
 * error and nothing else, as nearly all are, is looked into here, and nothing is made of it in between. `died` hears of
 * a cause without an error to decide about: a defect, or an interruption alone.
 */
export const settling = (
  self: AnyEffect,
  succeeded: (value: any) => AnyEffect,
  failed: Failed,
  died: () => void = constVoid
): AnyEffect =>
  Effect.matchCauseEffect(self, {
    onSuccess: succeeded,
    onFailure: (cause) => {
      const { reasons } = cause
      const reason = reasons[0]
      if (reasons.length === 1 && reason?._tag === "Fail") return failed(reason.error, cause)
      if (Cause.hasDies(cause) || !Cause.hasFails(cause)) died()
      return Effect.catch(Effect.failCause(cause), (error) => failed(error, Cause.fail(error)))
    }
  })

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"

type AnyEffect = Effect.Effect<any, any, any>

/** What follows on a failure: the error, and the cause that it came in. */
export type Failed = (error: unknown, cause: Cause.Cause<unknown>) => AnyEffect

/** Fails in the same way. */
export const failAgain: Failed = (_, cause) => Effect.failCause(cause)

/**
 * `Effect.matchEffect`, which also tells the cause of a failure: that can be failed with again as it is. A cause with one
 * error and nothing else, as nearly all are, is looked into here, and nothing is made of it in between.
 */
export const settling = (
  self: AnyEffect,
  succeeded: (value: any) => unknown,
  failed: Failed
): AnyEffect =>
  Effect.matchCauseEffect(self, {
    onSuccess: (value) => Effect.succeed(succeeded(value)),
    onFailure: (cause) => {
      const { reasons } = cause
      const reason = reasons[0]
      return reasons.length === 1 && reason?._tag === "Fail"
        ? failed(reason.error, cause)
        : Effect.catch(Effect.failCause(cause), (error) => failed(error, Cause.fail(error)))
    }
  })

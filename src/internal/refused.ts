import type * as Duration from "effect/Duration"
import { get } from "./tryGet.ts"

/** Marks errors of sends that the quota or a gate refused: nothing was sent, and no policy retries them. */
export const Refused: unique symbol = Symbol.for("effect-retry/Refused") as any

/**
 * What errors of refused sends have in common.
 *
 * @category errors
 * @since 0.1.0
 */
export interface Refusal {
  readonly [Refused]: true
  /** What refused the send: the tag of its error, such as `"ConcurrencyLimitExceeded"`. */
  readonly _tag?: string | undefined
  readonly message?: string | undefined
  /** When to try again, if the gate knows. */
  readonly retryAfter?: Duration.Duration | undefined
}

/** Whether the error is the refusal of the quota or of a gate. */
export const isRefusal = (error: unknown): error is Refusal => get(error, Refused) === true

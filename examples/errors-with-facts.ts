/**
 * Errors that carry facts: who raises an error says what it knows about retrying, policies decide.
 *
 * The facts are `safety` (may the operation run again: `"Yes"`, `"No"`, `"Maybe"`), `throttling`, `timeout`, `fault` and
 * `retryAfter`. The one who catches the error sees nothing of them.
 */
import { Schema } from "effect"
import type { Effect } from "effect"
import { awsStandard, RetryInfo, withRetry } from "effect-retry"

/** The same facts for every error of the class. Safe to retry unless it says otherwise. */
export class TableBusy extends RetryInfo.TaggedError("TableBusy", { throttling: true })<{
  readonly table: string
}> {}

/** Facts computed from the error: after a lost answer, only an idempotent write may run again. */
export class AnswerLost extends RetryInfo.TaggedError("AnswerLost", (error: { readonly idempotent: boolean }) => ({
  safety: error.idempotent ? "Yes" : "Maybe",
  timeout: true
}))<{
  readonly idempotent: boolean
}> {}

/** A schema class: the annotation is to it what the `@retryable` trait is to a Smithy model. */
export class CardDeclined extends Schema.TaggedError<CardDeclined>()("CardDeclined", {
  code: Schema.String
}, RetryInfo.annotation({ safety: "No", fault: "client" })) {}

export type PaymentError = TableBusy | AnswerLost | CardDeclined

/** `awsStandard` retries what is `"Yes"` safe; `RetryPolicy.whileMaybeRetryable` would make a policy bolder. */
export const pay = (send: Effect.Effect<string, PaymentError>) => send.pipe(withRetry(awsStandard))

/**
 * Errors that carry facts: the code that raises an error says what it
 * knows about retrying, policies decide.
 *
 * The facts are `safety` (can the operation run again: `"Yes"`, `"No"`,
 * `"Maybe"`), `throttling`, `timeout`, `fault` and `retryAfter`. Code
 * that catches the error does not see them.
 */
import { Schema } from "effect"
import type { Effect } from "effect"
import { awsStandard, RetryInfo, withRetry } from "effect-retry"
import { main, show } from "./support/program.ts"

/**
 * The same facts for every error of the class. Safe to retry unless it
 * says otherwise.
 */
export class TableBusy
  extends RetryInfo.TaggedError("TableBusy", { throttling: true })<{
    readonly table: string
  }>
{}

/**
 * Facts computed from the error: after a lost response, only an
 * idempotent write can run again.
 */
export class AnswerLost extends RetryInfo.TaggedError(
  "AnswerLost",
  (error: { readonly idempotent: boolean }) => ({
    safety: error.idempotent ? "Yes" : "Maybe",
    timeout: true
  })
)<{
  readonly idempotent: boolean
}> {}

/**
 * A schema class: the annotation corresponds to the `@retryable` trait
 * of a Smithy model.
 */
export class CardDeclined
  extends Schema.TaggedError<CardDeclined>()("CardDeclined", {
    code: Schema.String
  }, RetryInfo.annotation({ safety: "No", fault: "client" }))
{}

export type PaymentError = TableBusy | AnswerLost | CardDeclined

/**
 * `awsStandard` retries what is `"Yes"` safe;
 * `RetryPolicy.withMaybeRetryable` makes a policy bolder.
 */
export const pay = (send: Effect.Effect<string, PaymentError>) =>
  send.pipe(withRetry(awsStandard))

main(
  import.meta.url,
  show("a busy table", [new TableBusy({ table: "payments" })], pay),
  show("a lost answer, idempotent", [
    new AnswerLost({ idempotent: true })
  ], pay),
  show("a lost answer, not idempotent", [
    new AnswerLost({ idempotent: false })
  ], pay),
  show("a declined card", [new CardDeclined({ code: "51" })], pay)
)

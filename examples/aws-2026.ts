/**
 * AWS retry behaviour 2.1 without an SDK: the policy of each operation, and the headers of each send.
 *
 * `forOperation` knows what differs: a long poll such as SQS ReceiveMessage is held back when the quota refuses it, so
 * that a worker in a loop does not come again at once; DynamoDB starts at 25 ms and has four attempts. The headers tell
 * the service which sends are retries of one call; `max` is that of the policy.
 */
import { Effect } from "effect"
import { withRetry } from "effect-retry"
import * as Operations from "effect-retry/aws/Operations"
import * as RequestHeaders from "effect-retry/aws/RequestHeaders"

export interface Response {
  readonly status: number
  readonly headers: Record<string, string>
}

/** What carries signed requests: an HTTP client. */
export type Transport = (
  operation: Operations.Operation,
  headers: RequestHeaders.RequestHeaders
) => Effect.Effect<Response>

/** One send: the server's date is noted for the next attempt, a failed status is an error with the server's hint. */
const send = (transport: Transport, operation: Operations.Operation, headers: RequestHeaders.RequestHeaders) =>
  transport(operation, headers).pipe(
    Effect.tap((response) => RequestHeaders.observeDate(response.headers.date)),
    Effect.filterOrFail((response) => response.status < 400, (response) => response)
  )

/** A call of an operation: retried by its policy, under one invocation id. */
export const call = (transport: Transport, operation: Operations.Operation) => {
  const policy = Operations.forOperation(operation)
  return RequestHeaders.headers({ maxAttempts: policy, readTimeout: "10 seconds" }).pipe(
    Effect.flatMap((headers) => send(transport, operation, headers)),
    withRetry(policy),
    RequestHeaders.withInvocation
  )
}

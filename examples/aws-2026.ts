/**
 * AWS retry behavior 2.1 without an SDK: the policy of each operation,
 * and the headers of each send.
 *
 * `forOperation` knows the differences: a long poll such as SQS
 * ReceiveMessage is held back when the quota refuses it, so that a
 * worker in a loop does not come back immediately; DynamoDB starts at
 * 25 ms and has four attempts. The headers tell the service which sends
 * are retries of one call; `max` is that of the policy.
 */
import { Effect } from "effect"
import { withRetry } from "effect-retry"
import * as Operations from "effect-retry/aws/Operations"
import * as RequestHeaders from "effect-retry/aws/RequestHeaders"
import { main, print } from "./support/program.ts"

export interface Response {
  readonly status: number
  readonly headers: Record<string, string>
}

/** Sends signed requests: an HTTP client. */
export type Transport = (
  operation: Operations.Operation,
  headers: RequestHeaders.RequestHeaders
) => Effect.Effect<Response>

/**
 * One send: the server's date is recorded for the next attempt, a
 * failed status becomes an error with the server's hint.
 */
const send = (
  transport: Transport,
  operation: Operations.Operation,
  headers: RequestHeaders.RequestHeaders
) =>
  transport(operation, headers).pipe(
    Effect.tap((response) =>
      RequestHeaders.observeDate(response.headers.date)
    ),
    Effect.filterOrFail(
      (response) => response.status < 400,
      (response) => response
    )
  )

/**
 * A call of an operation: retried by its policy, under one invocation
 * id.
 */
export const call = (
  transport: Transport,
  operation: Operations.Operation
) => {
  const policy = Operations.forOperation(operation)
  return RequestHeaders.headers({
    maxAttempts: policy,
    readTimeout: "10 seconds"
  }).pipe(
    Effect.flatMap((headers) => send(transport, operation, headers)),
    withRetry(policy),
    RequestHeaders.withInvocation
  )
}

/**
 * A service that is unavailable twice. It prints the header that says
 * which send of a call it is.
 */
const flaky = (): Transport => {
  let sends = 0
  return (_, headers) => {
    const status = ++sends < 3 ? 503 : 200
    const date = new Date().toUTCString()
    return Effect.as(
      print(`${headers["amz-sdk-request"]}: status ${status}`),
      { status, headers: { date } }
    )
  }
}

main(
  import.meta.url,
  call(flaky(), { service: "DynamoDB", operation: "GetItem" }),
  call(flaky(), { service: "SQS", operation: "ReceiveMessage" })
)

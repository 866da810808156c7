/**
 * The first retry: a client that throws, retried as the AWS SDKs do it.
 *
 * The errors need no preparation. The default classifier knows AWS error codes, HTTP statuses, network failures of Node
 * and gRPC statuses, also where they are the `cause` of another error, as they are after `Effect.tryPromise`.
 */
import { Effect } from "effect"
import { attempt, awsStandard, RetryQuota } from "effect-retry"

export interface Client {
  readonly getItem: (key: string) => Promise<string>
}

/** One send. `attempt` books its outcome, the policy decides about its failures. */
export const getItem = (client: Client, key: string) => {
  const send = Effect.tryPromise(() => client.getItem(key))
  return Effect.retry(attempt(send), awsStandard)
}

/** All calls of a client share one quota: provide it once, where the program runs. */
export const program = (client: Client) =>
  Effect.gen(function*() {
    const order = yield* getItem(client, "order-1")
    const customer = yield* getItem(client, "customer-1")
    return [order, customer]
  }).pipe(Effect.provide(RetryQuota.layer()))

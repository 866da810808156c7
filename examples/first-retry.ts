/**
 * The first retry: a client that throws, retried like the AWS SDKs do
 * it.
 *
 * The errors need no preparation. The default classifier knows AWS
 * error codes, HTTP statuses, network failures of Node and gRPC
 * statuses, even as the `cause` of another error, as after
 * `Effect.tryPromise`.
 */
import { Effect } from "effect"
import { awsStandard, RetryQuota } from "effect-retry"
import { main, print } from "./support/program.ts"

export interface Client {
  readonly getItem: (key: string) => Promise<string>
}

/**
 * One send. The policy decides about its failures, and the quota gets
 * its successes.
 */
export const getItem = (client: Client, key: string) => {
  const send = Effect.tryPromise(() => client.getItem(key))
  return Effect.retry(send, awsStandard)
}

/**
 * All calls of a client share one quota: provide it once, where the
 * program runs.
 */
export const program = (client: Client) =>
  Effect.gen(function*() {
    const order = yield* getItem(client, "order-1")
    const customer = yield* getItem(client, "customer-1")
    return [order, customer]
  }).pipe(Effect.provide(RetryQuota.layer()))

/** A client whose service is unavailable for the first two sends. */
const flaky = (): Client => {
  let sends = 0
  return {
    getItem: async (key) => {
      sends++
      console.log(`send ${sends}: ${key}`)
      if (sends < 3) {
        throw Object.assign(new Error("later"), { status: 503 })
      }
      return `the item ${key}`
    }
  }
}

main(
  import.meta.url,
  Effect.flatMap(program(flaky()), (items) => print(items.join(", ")))
)

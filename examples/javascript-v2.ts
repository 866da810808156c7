/**
 * Migrating from the AWS SDK for JavaScript 2.x: its retries, around
 * any effect, including its own clients.
 *
 * A client made with `maxRetries: 0` leaves retrying to the policy. Its
 * errors say in `retryable` whether it would have retried: the layer's
 * classifier uses that.
 */
import { Effect } from "effect"
import { withRetry } from "effect-retry"
import * as JavaScriptV2 from "effect-retry/aws/legacy/JavaScriptV2"
import { down, main, print, show } from "./support/program.ts"

interface Client {
  readonly listTables: (
    input: {}
  ) => {
    readonly promise: () => Promise<
      { readonly TableNames?: Array<string> }
    >
  }
}

/**
 * What `new DynamoDB()` does on its own: 10 retries, `random * 2^n *
 * 50` milliseconds.
 */
export const listTables = (client: Client) =>
  Effect.tryPromise(() => client.listTables({}).promise()).pipe(
    withRetry(JavaScriptV2.dynamoDBPolicy),
    Effect.provide(JavaScriptV2.layer)
  )

/**
 * `retryDelayOptions.customBackoff`: a negative delay stops retrying.
 */
export const brisk = JavaScriptV2.policy({
  maxRetries: 5,
  customBackoff: (retryCount) =>
    retryCount < 2 ? 20 * (retryCount + 1) : -1
})

/** A client that is unavailable twice. */
const flaky = (): Client => {
  let sends = 0
  const promise = async () => {
    if (++sends < 3) {
      throw Object.assign(new Error("busy"), {
        statusCode: 503,
        retryable: true
      })
    }
    return { TableNames: [`orders, after ${sends} sends`] }
  }
  return { listTables: () => ({ promise }) }
}

main(
  import.meta.url,
  Effect.flatMap(
    listTables(flaky()),
    ({ TableNames }) => print(TableNames)
  ),
  show("customBackoff", down, (send) => send.pipe(withRetry(brisk)))
)

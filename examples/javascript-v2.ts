/**
 * Coming from the AWS SDK for JavaScript 2.x: its retries, around any effect, its own clients among them.
 *
 * A client made with `maxRetries: 0` leaves retrying to the policy, and its errors say in `retryable` what it thinks of
 * them: the layer's classifier listens to that.
 */
import { Effect } from "effect"
import { withRetry } from "effect-retry"
import * as JavaScriptV2 from "effect-retry/aws/legacy/JavaScriptV2"

interface Client {
  readonly listTables: (input: {}) => { readonly promise: () => Promise<{ readonly TableNames?: Array<string> }> }
}

/** What `new DynamoDB()` does by itself: 10 retries, `random * 2^n * 50` milliseconds. */
export const listTables = (client: Client) =>
  Effect.tryPromise(() => client.listTables({}).promise()).pipe(
    withRetry(JavaScriptV2.dynamoDBPolicy),
    Effect.provide(JavaScriptV2.layer)
  )

/** `retryDelayOptions.customBackoff`: a negative delay stops retrying. */
export const brisk = JavaScriptV2.policy({
  maxRetries: 5,
  customBackoff: (retryCount) => retryCount < 2 ? 20 * (retryCount + 1) : -1
})

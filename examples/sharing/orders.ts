/** What the servers of this folder do for a request: one call of a client, with retries that all requests pay for together. */
import { Effect } from "effect"
import { awsStandard2026, RetryQuota, withRetry } from "effect-retry"

export interface Client {
  readonly getItem: (key: string) => Promise<string>
}

/** Needs a `RetryQuota`, and leaves it to the program where that comes from. */
export const getOrder = (client: Client, id: string) =>
  Effect.tryPromise(() => client.getItem(`order-${id}`)).pipe(withRetry(awsStandard2026))

/**
 * The mistake: a layer that is provided to a single call is built for that call, also when it is a constant. Its quota is
 * full each time, so it never bounds anything. After some calls that fail, a warning says so.
 */
const quotaLayer = RetryQuota.layer()
export const notShared = (client: Client, id: string) =>
  Effect.runPromise(getOrder(client, id).pipe(Effect.provide(quotaLayer)))

/**
 * What the servers in this folder do for a request: one client call,
 * with retries paid for from a quota that all requests share.
 */
import { Effect } from "effect"
import { awsStandard2026, RetryQuota, withRetry } from "effect-retry"
import { main } from "../support/program.ts"
import { downClient, fortyRequests } from "../support/requests.ts"

export interface Client {
  readonly getItem: (key: string) => Promise<string>
}

/** Requires a `RetryQuota`, and leaves it to the program to provide. */
export const getOrder = (client: Client, id: string) =>
  Effect.tryPromise(() => client.getItem(`order-${id}`)).pipe(
    withRetry(awsStandard2026)
  )

/**
 * The mistake: a layer provided to a single call is built for that
 * call, even if it is a constant. Its quota is full each time, so it
 * never limits anything. After some failed calls, a warning says so.
 */
const quotaLayer = RetryQuota.layer()
export const notShared = (client: Client, id: string) =>
  Effect.runPromise(
    getOrder(client, id).pipe(Effect.provide(quotaLayer))
  )

const client = downClient()

/** The mistake, run: 120 sends, where a shared quota makes it 75. */
main(
  import.meta.url,
  fortyRequests(client, (id) => notShared(client, id))
)

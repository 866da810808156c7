/**
 * AWS Lambda: what is created outside the handler lives as long as the
 * instance, and all its invocations share it.
 *
 * An instance runs one invocation at a time, so its quota sees the
 * failures of earlier invocations. For one quota across all instances
 * there is `effect-retry/RetryQuotaRedis`.
 */
import { ManagedRuntime } from "effect"
import { RetryQuota } from "effect-retry"
import { main } from "../support/program.ts"
import { downClient, fortyRequests } from "../support/requests.ts"
import { type Client, getOrder } from "./orders.ts"

export interface Event {
  readonly id: string
}

/**
 * Never disposed of: the instance is frozen and eventually discarded,
 * and a quota holds nothing that must be closed.
 */
const runtime = ManagedRuntime.make(RetryQuota.layer())

export const handlerWith = (client: Client) => (event: Event) =>
  runtime.runPromise(getOrder(client, event.id))

const client = downClient()
const handler = handlerWith(client)

main(import.meta.url, fortyRequests(client, (id) => handler({ id })))

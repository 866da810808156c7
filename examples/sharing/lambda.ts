/**
 * AWS Lambda: what stands outside of the handler lives as long as the instance, and is shared by all its invocations.
 *
 * An instance runs one invocation at a time, so a quota of its own sees the failures of the invocations before. For one
 * quota of all instances there is `effect-retry/RetryQuotaRedis`.
 */
import { ManagedRuntime } from "effect"
import { RetryQuota } from "effect-retry"
import { type Client, getOrder } from "./orders.ts"

export interface Event {
  readonly id: string
}

/** Never disposed of: the instance is frozen and one day thrown away, and a quota holds nothing that must be closed. */
const runtime = ManagedRuntime.make(RetryQuota.layer())

export const handlerWith = (client: Client) => (event: Event) => runtime.runPromise(getOrder(client, event.id))

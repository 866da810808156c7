/**
 * Express and similar: the runtime lives next to the application,
 * handlers are functions of a request.
 */
import { Effect, ManagedRuntime } from "effect"
import { RetryQuota } from "effect-retry"
import { main } from "../support/program.ts"
import { downClient, fortyRequests } from "../support/requests.ts"
import { type Client, getOrder } from "./orders.ts"

/** The part of Express that a handler needs. */
export type Handler = (
  request: { readonly params: { readonly id: string } },
  response: { readonly send: (body: string) => unknown },
  next: (error: unknown) => void
) => Promise<unknown>

/**
 * `app.get("/orders/:id", orders.get)`. When the process ends: `await
 * orders.close()`.
 */
export const ordersOf = (client: Client) => {
  const runtime = ManagedRuntime.make(RetryQuota.layer())
  const get: Handler = (request, response, next) =>
    runtime.runPromise(getOrder(client, request.params.id)).then(
      (order) => response.send(order),
      next
    )
  return { get, close: () => runtime.dispose() }
}

const client = downClient()
const orders = ordersOf(client)
const request = (id: string) =>
  new Promise((resolve, reject) =>
    void orders.get({ params: { id } }, { send: resolve }, reject)
  )

main(
  import.meta.url,
  Effect.ensuring(
    fortyRequests(client, request),
    Effect.promise(orders.close)
  )
)

/** Express and its like: the runtime lives next to the application, handlers are functions of a request. */
import { ManagedRuntime } from "effect"
import { RetryQuota } from "effect-retry"
import { type Client, getOrder } from "./orders.ts"

/** As much of Express as a handler needs. */
export type Handler = (
  request: { readonly params: { readonly id: string } },
  response: { readonly send: (body: string) => unknown },
  next: (error: unknown) => void
) => Promise<unknown>

/** `app.get("/orders/:id", orders.get)`. When the process ends: `await orders.close()`. */
export const ordersOf = (client: Client) => {
  const runtime = ManagedRuntime.make(RetryQuota.layer())
  const get: Handler = (request, response, next) =>
    runtime.runPromise(getOrder(client, request.params.id)).then((order) => response.send(order), next)
  return { get, close: () => runtime.dispose() }
}

/**
 * Cloudflare Workers: one runtime per isolate, at the top of the
 * module.
 *
 * There is no process to share with: an isolate serves the requests of
 * one location, many at a time, and they share its quota.
 */
import { ManagedRuntime } from "effect"
import { RetryQuota } from "effect-retry"
import { main } from "../support/program.ts"
import { downClient, fortyRequests } from "../support/requests.ts"
import { type Client, getOrder } from "./orders.ts"

const runtime = ManagedRuntime.make(RetryQuota.layer())

export const worker = {
  fetch: async (
    request: Request,
    env: { readonly orders: Client }
  ): Promise<Response> => {
    const id = new URL(request.url).pathname.slice(1)
    return runtime.runPromise(getOrder(env.orders, id)).then(
      (order) => new Response(order),
      () => new Response(null, { status: 503 })
    )
  }
}

const orders = downClient()

main(
  import.meta.url,
  fortyRequests(
    orders,
    (id) =>
      worker.fetch(new Request(`https://orders.example/${id}`), {
        orders
      })
  )
)

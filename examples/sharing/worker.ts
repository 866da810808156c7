/**
 * Cloudflare Workers: one runtime for each isolate, at the top of the module.
 *
 * There is no process to share with: an isolate serves the requests of one place, many at a time, and its quota is theirs.
 */
import { ManagedRuntime } from "effect"
import { RetryQuota } from "effect-retry"
import { type Client, getOrder } from "./orders.ts"

const runtime = ManagedRuntime.make(RetryQuota.layer())

export const worker = {
  fetch: async (request: Request, env: { readonly orders: Client }): Promise<Response> => {
    const id = new URL(request.url).pathname.slice(1)
    return runtime.runPromise(getOrder(env.orders, id)).then(
      (order) => new Response(order),
      () => new Response(null, { status: 503 })
    )
  }
}

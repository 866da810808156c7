/**
 * A plain server: one runtime, made with the server, runs all requests.
 */
import { Effect, ManagedRuntime } from "effect"
import { RetryQuota } from "effect-retry"
import { createServer } from "node:http"
import { main } from "../support/program.ts"
import { downClient, fortyRequests } from "../support/requests.ts"
import { withServer } from "../support/server.ts"
import { type Client, getOrder } from "./orders.ts"

/**
 * The runtime builds the layer once, on the first request. Nothing is
 * provided to single calls.
 */
export const ordersServer = (client: Client) => {
  const runtime = ManagedRuntime.make(RetryQuota.layer())
  const server = createServer((request, response) => {
    const answer = getOrder(client, request.url!.slice(1)).pipe(
      Effect.matchEager({
        onSuccess: (order) => response.end(order),
        onFailure: () => response.writeHead(503).end()
      })
    )
    runtime.runFork(answer)
  })
  server.on("close", () => runtime.dispose())
  return server
}

const client = downClient()

main(
  import.meta.url,
  withServer(
    ordersServer(client),
    (url) => fortyRequests(client, (id) => fetch(`${url}/${id}`))
  )
)

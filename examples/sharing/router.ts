/**
 * Effect's own router: `provideRequest` gives all requests of the
 * routes the services built by one layer.
 */
import { Effect, Layer } from "effect"
import { RetryQuota } from "effect-retry"
import { HttpRouter, HttpServer, HttpServerResponse } from "effect/http"
import { main } from "../support/program.ts"
import { downClient, fortyRequests } from "../support/requests.ts"
import { type Client, getOrder } from "./orders.ts"

/**
 * The layer is built with the routes, once. `Effect.provide` inside the
 * handler would build one for each request.
 */
export const ordersRoutes = (client: Client) =>
  HttpRouter.add(
    "GET",
    "/:id",
    Effect.gen(function*() {
      const { id } = yield* HttpRouter.params
      return HttpServerResponse.text(yield* getOrder(client, id!))
    }).pipe(Effect.orElseSucceed(() =>
      HttpServerResponse.empty({ status: 503 })
    ))
  ).pipe(HttpRouter.provideRequest(RetryQuota.layer()))

/**
 * The same for servers that take a `Request`; use `HttpRouter.serve`
 * for all others.
 */
export const ordersHandler = (client: Client) =>
  HttpRouter.toWebHandler(
    ordersRoutes(client).pipe(Layer.provide(HttpServer.layerServices))
  )

const client = downClient()

main(
  import.meta.url,
  Effect.suspend(() => {
    const routes = ordersRoutes(client).pipe(
      Layer.provide(HttpServer.layerServices)
    )
    const { dispose, handler } = HttpRouter.toWebHandler(routes, {
      disableLogger: true
    })
    const get = (id: string) =>
      handler(new Request(`http://localhost/${id}`))
    return Effect.ensuring(
      fortyRequests(client, get),
      Effect.promise(dispose)
    )
  })
)

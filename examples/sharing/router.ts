/** Effect's own router: `provideRequest` gives all requests of the routes what one layer has built. */
import { Effect, Layer } from "effect"
import { RetryQuota } from "effect-retry"
import { HttpRouter, HttpServer, HttpServerResponse } from "effect/http"
import { type Client, getOrder } from "./orders.ts"

/** The layer is built with the routes, once. `Effect.provide` inside of the handler would build one for each request. */
export const ordersRoutes = (client: Client) =>
  HttpRouter.add(
    "GET",
    "/:id",
    Effect.gen(function*() {
      const { id } = yield* HttpRouter.params
      return HttpServerResponse.text(yield* getOrder(client, id!))
    }).pipe(Effect.orElseSucceed(() => HttpServerResponse.empty({ status: 503 })))
  ).pipe(HttpRouter.provideRequest(RetryQuota.layer()))

/** The same for servers that take a `Request`; `HttpRouter.serve` is for all others. */
export const ordersHandler = (client: Client) =>
  HttpRouter.toWebHandler(ordersRoutes(client).pipe(Layer.provide(HttpServer.layerServices)))

/**
 * Errors that cross a process: over Effect's RPC, a refusal of the
 * server's limiter arrives as an instance of its class.
 *
 * `effect-retry/schemas` has a Schema of each error of the library. The
 * errors themselves load no Schema.
 */
import { Duration, Effect, Layer } from "effect"
import { AdaptiveRateLimiter } from "effect-retry"
import {
  HttpClient,
  HttpServerRequest,
  HttpServerResponse
} from "effect/http"
import { RpcClient, RpcSerialization, RpcServer } from "effect/rpc"
import { handlers, Orders } from "./rpcOrders.ts"
import { inVirtualTime, main, print } from "./support/program.ts"

/** The client: it sees what the limiter of the server said. */
export const latest = RpcClient.make(Orders).pipe(
  Effect.flatMap((orders) => orders.Latest()),
  Effect.catchTag(
    "RateLimitExceeded",
    ({ retryAfter }) =>
      Effect.succeed(
        `busy, try again in ${Duration.format(retryAfter)}`
      )
  ),
  Effect.scoped
)

/** Client and server in one process, with JSON between them. */
export const connected = (send: Effect.Effect<string>) =>
  RpcClient.layerProtocolHttp({ url: "http://orders/rpc" }).pipe(
    Layer.provide(Layer.effect(
      HttpClient.HttpClient,
      Effect.map(
        RpcServer.toHttpEffect(Orders),
        (server) =>
          HttpClient.make((request) =>
            server.pipe(
              Effect.provideService(
                HttpServerRequest.HttpServerRequest,
                HttpServerRequest.fromClientRequest(request)
              ),
              Effect.map((response) =>
                HttpServerResponse.toClientResponse(response, {
                  request
                })
              ),
              Effect.scoped
            )
          )
      )
    )),
    Layer.provide([handlers(send), RpcSerialization.layerJson])
  )

/**
 * The service has throttled the server: its limiter has a token again
 * after two seconds.
 */
const program = Effect.gen(function*() {
  yield* AdaptiveRateLimiter.update(true)
  yield* print(yield* latest)
  yield* Effect.sleep("2 seconds")
  yield* print(yield* latest)
}).pipe(Effect.provide(connected(Effect.succeed("order 1"))))

main(
  import.meta.url,
  inVirtualTime(program).pipe(
    Effect.provide(AdaptiveRateLimiter.layer({ onExceeded: "fail" }))
  )
)

/**
 * An HTTP client that retries, and what it needs from the code that
 * sends through it.
 *
 * A GET, PUT or DELETE needs nothing. A POST is sent again only if the
 * server cannot have started processing it; an idempotency key, or an
 * explicit mark, makes it safe. A stream is sent once, unless it can be
 * recreated.
 */
import { Effect, Layer, Schema, Stream } from "effect"
import {
  awsStandard2026,
  Hedge,
  ResourceLimiters,
  RetryPolicy
} from "effect-retry"
import * as RetryHttp from "effect-retry/RetryHttp"
import {
  HttpBody,
  HttpClient,
  HttpClientRequest,
  HttpClientResponse
} from "effect/http"
import {
  HttpApi,
  HttpApiClient,
  HttpApiEndpoint,
  HttpApiGroup
} from "effect/http-api"
import { RpcClient } from "effect/rpc"
import { ended, inVirtualTime, main, print } from "./support/program.ts"

/**
 * Three attempts of at most 2 seconds each, and no retry that would
 * begin after 10 seconds.
 */
export const shop = Effect.map(
  HttpClient.HttpClient,
  (client) =>
    client.pipe(
      HttpClient.mapRequest(
        HttpClientRequest.prependUrl("https://shop.example")
      ),
      RetryHttp.retry(
        awsStandard2026.pipe(RetryPolicy.deadline("10 seconds")),
        { attemptTimeout: "2 seconds" }
      ),
      HttpClient.filterStatusOk
    )
)

export const getOrder = (id: number) =>
  Effect.flatMap(shop, (client) => client.get(`/orders/${id}`))

/**
 * For servers outside AWS: a retry respects `Retry-After`, and if that
 * exceeds two minutes, there is none.
 */
export const patient = awsStandard2026.pipe(
  RetryPolicy.honorRetryAfter({ atMost: "2 minutes", beyond: "stop" })
)

/**
 * Every POST has its own key, and only this layer retries, not the
 * proxies on the way.
 */
export const payments = Effect.map(
  HttpClient.HttpClient,
  (client) =>
    client.pipe(
      RetryHttp.idempotencyKey(),
      RetryHttp.retry(patient, { disableProxyRetries: true })
    )
)

/** The server treats two requests with the same key as one order. */
export const order = (article: string, key: string) =>
  Effect.flatMap(shop, (client) =>
    client.post("/orders", {
      headers: { "idempotency-key": key },
      body: HttpBody.jsonUnsafe({ article })
    }))

/** A POST that changes nothing. */
export const search = (text: string) =>
  Effect.flatMap(
    shop,
    (client) => client.post("/search", { body: HttpBody.text(text) })
  ).pipe(RetryHttp.repeatable)

/** Every attempt gets its own stream. */
export const upload = (
  name: string,
  open: () => Stream.Stream<Uint8Array>
) =>
  Effect.flatMap(
    shop,
    (client) =>
      client.put(`/files/${name}`, {
        body: RetryHttp.bodyFactory(open)
      })
  )

/**
 * A client that retries for everything that requires an `HttpClient`:
 * it uses the quota that the layer is given.
 */
export const layer = RetryHttp.layer(awsStandard2026)

/**
 * Each host has its own quota and its own cool-down. Without
 * `"unlimited"`, it also has the limiter of adaptive mode, which slows
 * all calls of a host after a 429, under any policy.
 */
export const perHost = RetryHttp.layer(awsStandard2026, {
  resource: RetryHttp.hostOf
}).pipe(
  Layer.provide(
    ResourceLimiters.layer({ coolDown: {}, limiter: "unlimited" })
  )
)

/**
 * The same, with a second request for a read that has no response after
 * 200 milliseconds.
 */
export const hedgingLayer = layer.pipe(Layer.provide(Layer.effect(
  HttpClient.HttpClient,
  Effect.zipWith(
    HttpClient.HttpClient,
    Hedge.Hedge,
    (client, hedge) =>
      client.pipe(
        RetryHttp.hedge({ after: "200 millis" }),
        HttpClient.transformResponse(
          Effect.provideService(Hedge.Hedge, hedge)
        )
      )
  )
)))

class Orders extends HttpApiGroup.make("orders").add(
  HttpApiEndpoint.get("get", "/orders/:id", {
    params: { id: Schema.String },
    success: Schema.String
  })
) {}

class OrdersApi extends HttpApi.make("OrdersApi").add(Orders) {}

/**
 * A client of an HTTP API. Make it once: the transform provides the
 * quota from where it runs.
 */
export const ordersClient = Effect.gen(function*() {
  const transformClient = yield* RetryHttp.transform(awsStandard2026)
  return yield* HttpApiClient.make(OrdersApi, {
    transformClient,
    baseUrl: "https://shop.example"
  })
})

/**
 * The protocol of an RPC client. Every RPC is a POST, so say which can
 * be sent again.
 */
export const rpcProtocol = Layer.unwrap(
  Effect.map(
    RetryHttp.transform(awsStandard2026),
    (transformClient) =>
      RpcClient.layerProtocolHttp({
        url: "https://shop.example/rpc",
        transformClient
      })
  )
)

/** A server with its own header and status. */
export const vendor: RetryHttp.Options = {
  hints: [
    RetryHttp.hintSeconds("x-vendor-wait"),
    ...RetryHttp.defaultHints
  ],
  retryStatus: (status) =>
    status === 423 || RetryHttp.isRetryStatus(status)
}

/** A server that is unavailable for the first request of each call. */
const requestsOf = <E, R>(
  title: string,
  call: Effect.Effect<{ readonly status: number }, E, R>
) =>
  Effect.gen(function*() {
    let requests = 0
    const flaky = HttpClient.make((request) =>
      Effect.sync(() =>
        HttpClientResponse.fromWeb(
          request,
          new Response(null, { status: ++requests > 1 ? 200 : 503 })
        )
      )
    )
    const exit = yield* inVirtualTime(
      Effect.exit(Effect.map(call, ({ status }) => `status ${status}`))
    ).pipe(
      Effect.provideService(HttpClient.HttpClient, flaky)
    )
    yield* print(`${title}: requests ${requests}; ${ended(exit)}`)
  })

const plainPost = Effect.flatMap(
  shop,
  (client) => client.post("/orders")
)

main(
  import.meta.url,
  requestsOf("a GET", getOrder(1)),
  requestsOf("a POST", plainPost),
  requestsOf("a POST with an idempotency key", order("book", "key-1")),
  requestsOf("a POST marked as repeatable", search("books")),
  requestsOf(
    "an upload of a stream",
    upload("book.txt", () => Stream.make(new Uint8Array([1, 2, 3])))
  )
)

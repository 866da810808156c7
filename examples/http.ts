/**
 * An HTTP client that retries, and what it asks of those who send through it.
 *
 * A GET, PUT or DELETE needs nothing. A POST is sent again only if the server has surely not begun with it; an
 * idempotency key, or the word of someone who knows, makes it safe. A stream is sent once, unless it can be made anew.
 */
import { Effect, Layer, Schema, type Stream } from "effect"
import { awsStandard2026, RetryPolicy } from "effect-retry"
import * as RetryHttp from "effect-retry/RetryHttp"
import { HttpBody, HttpClient, HttpClientRequest } from "effect/http"
import { HttpApi, HttpApiClient, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { RpcClient } from "effect/rpc"

/** Three attempts of at most 2 seconds each, and no retry that would begin after 10 seconds. */
export const shop = Effect.map(
  HttpClient.HttpClient,
  (client) =>
    client.pipe(
      HttpClient.mapRequest(HttpClientRequest.prependUrl("https://shop.example")),
      RetryHttp.retry(awsStandard2026.pipe(RetryPolicy.deadline("10 seconds")), { attemptTimeout: "2 seconds" }),
      HttpClient.filterStatusOk
    )
)

export const getOrder = (id: number) => Effect.flatMap(shop, (client) => client.get(`/orders/${id}`))

/** For servers that are not of AWS: a retry keeps `Retry-After`, or there is none where that is longer than two minutes. */
export const patient = awsStandard2026.pipe(RetryPolicy.honorRetryAfter({ atMost: "2 minutes", beyond: "stop" }))

/** Every POST has a key of its own, and only this layer retries, not the proxies on the way. */
export const payments = Effect.map(
  HttpClient.HttpClient,
  (client) => client.pipe(RetryHttp.idempotencyKey(), RetryHttp.retry(patient, { disableProxyRetries: true }))
)

/** The server takes two requests with one key for one order. */
export const order = (article: string, key: string) =>
  Effect.flatMap(shop, (client) =>
    client.post("/orders", {
      headers: { "idempotency-key": key },
      body: HttpBody.jsonUnsafe({ article })
    }))

/** A POST that changes nothing. */
export const search = (text: string) =>
  Effect.flatMap(shop, (client) => client.post("/search", { body: HttpBody.text(text) })).pipe(RetryHttp.repeatable)

/** Every attempt gets a stream of its own. */
export const upload = (name: string, open: () => Stream.Stream<Uint8Array>) =>
  Effect.flatMap(shop, (client) => client.put(`/files/${name}`, { body: RetryHttp.bodyFactory(open) }))

/** A client that retries for all that ask for an `HttpClient`: it has the quota that the layer is given. */
export const layer = RetryHttp.layer(awsStandard2026)

class Orders extends HttpApiGroup.make("orders").add(
  HttpApiEndpoint.get("get", "/orders/:id", { params: { id: Schema.String }, success: Schema.String })
) {}

class OrdersApi extends HttpApi.make("OrdersApi").add(Orders) {}

/** A client of an HTTP API. Make it once: the transform brings the quota of where it runs. */
export const ordersClient = Effect.gen(function*() {
  const transformClient = yield* RetryHttp.transform(awsStandard2026)
  return yield* HttpApiClient.make(OrdersApi, { transformClient, baseUrl: "https://shop.example" })
})

/** The protocol of an RPC client. Every RPC is a POST, so say which may be sent again. */
export const rpcProtocol = Layer.unwrap(
  Effect.map(
    RetryHttp.transform(awsStandard2026),
    (transformClient) => RpcClient.layerProtocolHttp({ url: "https://shop.example/rpc", transformClient })
  )
)

/** A server with a header and a status of its own. */
export const vendor: RetryHttp.Options = {
  hints: [RetryHttp.hintSeconds("x-vendor-wait"), ...RetryHttp.defaultHints],
  retryStatus: (status) => status === 423 || RetryHttp.isRetryStatus(status)
}

/**
 * One of several processes in a row: it answers by asking the next one, with three attempts. The last one is down, and
 * counts. What is asked for below `/plain` is not propagated.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Backoff, RetryPolicy } from "effect-retry"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as RetryPropagation from "effect-retry/RetryPropagation"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpServer from "effect/http/HttpServer"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import { createServer } from "node:http"

const [, , next = ""] = process.argv

const threeAttempts = Backoff.fixed("5 millis").pipe(
  RetryPolicy.maxAttempts(3),
  RetryPolicy.whileRetryable,
  RetryPolicy.outermostOnly
)

let sends: Array<Record<string, string | undefined>> = []

const app = Effect.gen(function*() {
  const request = yield* HttpServerRequest.HttpServerRequest
  if (request.url === "/seen") {
    const seen = sends
    sends = []
    return HttpServerResponse.jsonUnsafe(seen)
  }
  const { headers } = request
  sends.push({
    attempt: headers["x-retry-attempt"],
    max: headers["x-retry-max-attempts"],
    deadline: headers["x-deadline-ms"],
    criticality: headers["x-criticality"]
  })
  if (request.url === "/slow" && next === "") {
    return yield* Effect.onInterrupt(Effect.never, () => Effect.sync(() => sends.push({ attempt: "cut off" })))
  }
  if (next === "") return HttpServerResponse.empty({ status: 503 })
  const client = (yield* HttpClient.HttpClient).pipe(RetryHttp.retry(threeAttempts))
  const answer = yield* client.get(`${next}${request.url}`)
  return HttpServerResponse.empty({ status: answer.status })
})

const propagated = RetryPropagation.server()

const serving = HttpServer.serve(app, (app) =>
  Effect.flatMap(
    HttpServerRequest.HttpServerRequest,
    ({ url }) => url === "/plain" ? app : propagated(app)
  )).pipe(
    Layer.merge(Layer.effectDiscard(
      HttpServer.HttpServer.use(({ address }) =>
        Effect.sync(() => process.send?.("port" in address ? address.port : 0))
      )
    )),
    Layer.provide([NodeHttpServer.layer(() => createServer(), { port: 0, host: "127.0.0.1" }), FetchHttpClient.layer])
  )

NodeRuntime.runMain(Layer.launch(serving))

/**
 * One of several processes in a row: it answers by asking the next one, with three attempts. The last one is down, and counts.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Layer } from "effect"
import { Backoff, RetryPolicy } from "effect-retry"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as RetryPropagation from "effect-retry/RetryPropagation"
import { FetchHttpClient, HttpClient, HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { createServer } from "node:http"

const [, , next = "", middleware = "on"] = process.argv

const threeAttempts = Backoff.fixed({ delay: "5 millis" }).pipe(
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
    yield* Effect.onInterrupt(Effect.never, () => Effect.sync(() => sends.push({ attempt: "cut off" })))
  }
  if (next === "") return HttpServerResponse.empty({ status: 503 })
  const client = (yield* HttpClient.HttpClient).pipe(RetryHttp.retry(threeAttempts))
  const answer = yield* client.get(`${next}${request.url}`)
  return HttpServerResponse.empty({ status: answer.status })
})

const told = RetryPropagation.server()

const serving = HttpServer.serve(app, (app) => middleware === "on" ? told(app) : app).pipe(
  Layer.merge(Layer.effectDiscard(
    HttpServer.HttpServer.use(({ address }) => Effect.sync(() => process.send?.("port" in address ? address.port : 0)))
  )),
  Layer.provide([NodeHttpServer.layer(() => createServer(), { port: 0, host: "127.0.0.1" }), FetchHttpClient.layer])
)

NodeRuntime.runMain(Layer.launch(serving))

import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Fleet from "../../examples/outage/Fleet.ts"
import * as Report from "../../examples/outage/Report.ts"
import * as Script from "../../examples/outage/Script.ts"
import * as Service from "../../examples/outage/Service.ts"

/** The fleets of the whole example after their run, with the service called in memory: it waits for nothing but time. */
const fleetsInMemory = Effect.gen(function*() {
  const service = yield* Service.make(Script.outage)
  const client = HttpClient.make((request, url) =>
    Effect.map(
      service.handle(url.pathname),
      (response) =>
        // The body of a web response is a promise, and virtual time waits for none.
        Object.defineProperty(HttpClientResponse.fromWeb(request, HttpServerResponse.toWeb(response)), "text", {
          value: Effect.succeed("")
        })
    )
  ).pipe(HttpClient.mapRequest(HttpClientRequest.prependUrl("http://service")))
  const fleets = Fleet.all()
  yield* Effect.forEach(fleets, ({ run }) => run(Script.totalSeconds(Script.outage)), {
    concurrency: "unbounded"
  }).pipe(Effect.provideService(HttpClient.HttpClient, client))
  return { fleets, service }
})

/** The figures of the whole example in memory. */
export const inMemory = Effect.map(
  fleetsInMemory,
  ({ fleets, service }) => fleets.map(({ name, path, tally }) => Report.figures(name, tally, service.requests(path)))
)

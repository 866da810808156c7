/**
 * A rate limiter and a circuit breaker of Effect, with a policy around
 * them: each send asks both, and the policy waits for both.
 */
import { Effect, Layer } from "effect"
import { awsStandard2026 } from "effect-retry"
import * as RetryHttp from "effect-retry/RetryHttp"
import { HttpClient, HttpClientResponse } from "effect/http"
import { CircuitBreaker, RateLimiter } from "effect/persistence"
import { main, showMany } from "./support/program.ts"

/**
 * At most ten requests a second, none while the circuit is open. The
 * rate limiter must not retry by itself: `times: 0`.
 */
export const shop = Effect.gen(function*() {
  const client = yield* HttpClient.HttpClient
  const limiter = yield* RateLimiter.RateLimiter
  const breaker = yield* CircuitBreaker.make({
    tripPolicy: CircuitBreaker.consecutive(5),
    openDuration: "30 seconds"
  })
  return client.pipe(
    HttpClient.withRateLimiter({
      limiter,
      key: "shop",
      limit: 10,
      window: "1 second",
      times: 0
    }),
    HttpClient.withCircuitBreaker({ breaker }),
    RetryHttp.retry(awsStandard2026)
  )
})

/** Where both keep their state: in this process, or in Redis. */
export const stores = Layer.merge(
  CircuitBreaker.layerStoreMemory(),
  RateLimiter.layer.pipe(Layer.provide(RateLimiter.layerStoreMemory))
)

/** A client whose server answers with what `send` gives. */
const clientOf = (send: Effect.Effect<string>) =>
  HttpClient.make((request) =>
    Effect.map(send, (status) =>
      HttpClientResponse.fromWeb(
        request,
        new Response(null, { status: Number(status) })
      ))
  )

/** Calls of one client, made once. */
const called = (title: string, status: string, every: number) =>
  Effect.gen(function*() {
    let send = Effect.succeed(status)
    const client = yield* shop.pipe(
      Effect.provideService(
        HttpClient.HttpClient,
        clientOf(Effect.suspend(() => send))
      )
    )
    yield* showMany(
      title,
      { calls: 20, everyMillis: every },
      Effect.succeed(status),
      (counted) => {
        send = counted
        return Effect.map(
          client.get("http://shop.example"),
          (response) => `status ${response.status}`
        )
      }
    )
  }).pipe(Effect.scoped, Effect.provide(stores))

main(
  import.meta.url,
  called("a service that is up", "200", 10),
  called("a service that is down", "503", 100)
)

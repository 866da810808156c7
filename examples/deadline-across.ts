/**
 * A deadline and an attempt count that cross processes.
 *
 * Each send says how much time is left and which send it is. The server
 * rejects what is too late, interrupts what runs out of time, passes
 * the remaining time on to its own calls, and does not retry what its
 * caller retries.
 */
import { Effect, Layer } from "effect"
import { awsStandard, awsStandard2026, RetryPolicy } from "effect-retry"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as Criticality from "effect-retry/Criticality"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as RetryPropagation from "effect-retry/RetryPropagation"
import { HttpClient, HttpRouter } from "effect/http"
import { ended, inVirtualTime, main, print } from "./support/program.ts"

/** In the caller: every call under this layer tells the server. */
export const CallerLive = RetryPropagation.layer()

/**
 * Two seconds for everything, including all calls; sends in flight are
 * aborted when they are over.
 */
export const page = Effect.gen(function*() {
  const client = (yield* HttpClient.HttpClient).pipe(
    RetryHttp.retry(awsStandard2026)
  )
  return yield* client.get("http://orders/latest")
}).pipe(RetryPropagation.withDeadline("2 seconds"))

/** Work that no user waits for says so, and is shed first. */
export const prefetch = page.pipe(
  Effect.provideService(Criticality.CurrentCriticality, "sheddable")
)

/**
 * In the server: at most 100 requests are worked on, the most critical
 * first.
 */
export const ServerLive = Layer.unwrap(Effect.gen(function*() {
  const limiter = yield* ConcurrencyLimiter.make({
    rule: ConcurrencyLimiter.fixed(100)
  })
  return HttpRouter.middleware(RetryPropagation.server({ limiter }), {
    global: true
  })
}))

/**
 * Under it, a policy that leaves retrying to the outermost caller does
 * so across processes.
 */
export const fromStock = Effect.gen(function*() {
  const client = (yield* HttpClient.HttpClient).pipe(
    RetryHttp.retry(RetryPolicy.outermostOnly(awsStandard2026))
  )
  return yield* client.get("http://stock/latest")
})

/** Your own client asks for the headers inside the attempt. */
export const ownClient = <A, E, R>(
  send: (
    headers: { readonly [name: string]: string }
  ) => Effect.Effect<A, E, R>
) =>
  Effect.retry(
    Effect.flatMap(RetryPropagation.headers, send),
    awsStandard
  )

/** A server that prints the headers it gets, and does not answer. */
const silent = HttpClient.make(({ headers }) =>
  Effect.andThen(
    print(
      `${headers["x-deadline-ms"]} ms are left, criticality ${
        headers["x-criticality"]
      }`
    ),
    Effect.never
  )
)

const down = (headers: { readonly [name: string]: string }) =>
  Effect.andThen(
    print(
      `send ${headers["x-retry-attempt"]} of ${
        headers["x-retry-max-attempts"]
      }`
    ),
    Effect.fail({ status: 503 })
  )

main(
  import.meta.url,
  Effect.gen(function*() {
    for (const call of [page, prefetch]) {
      yield* print(ended(yield* inVirtualTime(Effect.exit(call))))
    }
    yield* print(
      ended(yield* inVirtualTime(Effect.exit(ownClient(down))))
    )
  }).pipe(
    Effect.provide(CallerLive),
    Effect.provideService(HttpClient.HttpClient, silent)
  )
)

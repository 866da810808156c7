/**
 * A deadline and the count of attempts that cross processes.
 *
 * Each send says how much time is left and which send it is. The server refuses what is too late, interrupts what runs out
 * of time, gives the rest to what it calls in turn, and does not retry what its caller retries.
 */
import { Effect, Layer } from "effect"
import { attempt, awsStandard, awsStandard2026, RetryPolicy } from "effect-retry"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as Criticality from "effect-retry/Criticality"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as RetryPropagation from "effect-retry/RetryPropagation"
import { HttpClient, HttpRouter } from "effect/http"

/** In the caller: every call under this layer tells the server. */
export const CallerLive = RetryPropagation.layer()

/** Two seconds for all that it takes, whatever is called; sends that run are aborted at the end of them. */
export const page = Effect.gen(function*() {
  const client = (yield* HttpClient.HttpClient).pipe(RetryHttp.retry(awsStandard2026))
  return yield* client.get("http://orders/latest")
}).pipe(RetryPropagation.withDeadline("2 seconds"))

/** What nobody waits for says so, and is shed first. */
export const prefetch = page.pipe(Effect.provideService(Criticality.CurrentCriticality, "sheddable"))

/** In the server: at most 100 requests are worked on, what matters most first. */
export const ServerLive = Layer.unwrap(Effect.gen(function*() {
  const limiter = yield* ConcurrencyLimiter.make({ rule: ConcurrencyLimiter.fixed(100) })
  return HttpRouter.middleware(RetryPropagation.server({ limiter }), { global: true })
}))

/** Under it, a policy that leaves retrying to the outermost caller does so across processes. */
export const fromStock = Effect.gen(function*() {
  const client = (yield* HttpClient.HttpClient).pipe(RetryHttp.retry(RetryPolicy.outermostOnly(awsStandard2026)))
  return yield* client.get("http://stock/latest")
})

/** A client of one's own asks for the headers inside the attempt. */
export const ownClient = <A, E, R>(send: (headers: { readonly [name: string]: string }) => Effect.Effect<A, E, R>) =>
  Effect.retry(attempt(Effect.flatMap(RetryPropagation.headers, send)), awsStandard)

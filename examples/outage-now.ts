/**
 * In an outage now: `fetch` with a quota for its retries, a limit on
 * the requests in flight, and a pause when the server asks for one. It
 * needs no knowledge of Effect: paste the lines down to `guardedFetch`.
 *
 * The program calls two copies of a service for ten seconds, two of
 * them an outage: one copy with up to three tries per call, the other
 * with `guardedFetch`.
 */
import { Effect, Layer, ManagedRuntime } from "effect"
import { awsStandard, RetryPolicy } from "effect-retry"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import { make } from "effect-retry/RetryPromise"

// Once per process, for each service that you call; never per request.
const gates = Layer.merge(
  // fewer requests in flight while they time out
  ConcurrencyLimiter.layer(),
  // after a Retry-After, no call sends before it is over
  CoolDown.layer()
)
// A response that asks for a longer wait than two seconds is the
// result: no caller hangs.
const policy = awsStandard.pipe(
  RetryPolicy.honorRetryAfter({ atMost: "2 seconds", beyond: "stop" }),
  RetryPolicy.requires(ConcurrencyLimiter.ConcurrencyLimiter),
  RetryPolicy.requires(CoolDown.CoolDown)
)
const retry = make(policy, {
  context: ManagedRuntime.make(gates).runSync(Effect.context()),
  // pays for at most 100 retries in an outage, not two per call
  quota: { capacity: 500 }
})

/**
 * Use it like `fetch`, for requests that may run twice. Each attempt
 * has one second, including its body.
 */
export const guardedFetch = (url: string, init: RequestInit = {}) =>
  retry(
    ({ signal }) =>
      fetch(url, {
        ...init,
        signal: AbortSignal.any([signal, AbortSignal.timeout(1000)])
      }),
    {
      signal: init.signal
    }
  )

import { createServer } from "node:http"
import { main, print } from "./support/program.ts"
import { withServer } from "./support/server.ts"

const threeTries = async (url: string): Promise<Response> => {
  for (let attempt = 1;; attempt++) {
    try {
      return await fetch(url, { signal: AbortSignal.timeout(1000) })
    } catch (error) {
      if (attempt === 3) throw error
    }
  }
}

/**
 * Answers 50 requests per second in turn, even those that were given
 * up, but none between its first and third second.
 */
const service = () => {
  let startedAt: number | undefined
  let freeAt = 0
  return createServer((_, response) => {
    const now = performance.now()
    startedAt ??= now
    freeAt = Math.max(freeAt, now)
    if (freeAt > startedAt + 1000) {
      freeAt = Math.max(freeAt, startedAt + 3000)
    }
    freeAt += 20
    setTimeout(() => response.end("ok"), freeAt - now).unref()
  })
}

const callsPerSecond = 40
const calls = 10 * callsPerSecond

const succeeded = (ended: ReadonlyArray<boolean>): number =>
  ended.filter((isSuccess) => isSuccess).length

/** Calls a copy of the service for ten seconds. */
const load = (title: string, get: (url: string) => Promise<Response>) =>
  Effect.suspend(() => withServer(service(), (url) => loadAt(url, get)))
    .pipe(
      Effect.map((ended) =>
        `${title}: ${succeeded(ended)} of ${calls} calls succeed, and ${
          succeeded(ended.slice(-100))
        } of the last 100`
      )
    )

const loadAt = (url: string, get: (url: string) => Promise<Response>) =>
  Effect.forEach(
    Array.from({ length: calls }, (_, n) => n),
    (n) =>
      Effect.tryPromise(() =>
        get(url).then((response) => response.text())
      ).pipe(
        Effect.isSuccess,
        Effect.delay(n * 1000 / callsPerSecond)
      ),
    { concurrency: "unbounded" }
  )

main(
  import.meta.url,
  Effect.all([
    load("three tries", threeTries),
    load("guardedFetch", guardedFetch)
  ], { concurrency: "unbounded" }).pipe(
    Effect.flatMap(Effect.forEach(print))
  )
)

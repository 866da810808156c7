import { AdaptiveRateLimiter, awsAdaptive, awsStandard, RetryObserver, RetryQuota, withRetry } from "effect-retry"
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import * as HttpClient from "effect/http/HttpClient"
import type * as HttpClientError from "effect/http/HttpClientError"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Script from "./Script.ts"

/** Callers come at a fixed rate, whatever becomes of those before them. */
const callsPerSecond = 40
/** How long a caller waits for one answer. */
const attemptTimeout = "500 millis"
/** How long a caller waits in all, its retries included. */
const patience = "8 seconds"

/** One request of a call. */
export type Send = Effect.Effect<string, HttpClientError.HttpClientError | Cause.TimeoutError>

/** What a fleet has seen so far. */
export class Tally {
  calls = 0
  attempts = 0
  failed = 0
  /** Calls that the retry quota refused another attempt. */
  refused = 0
  /** Seconds that each call took which succeeded. */
  readonly latencies: Array<number> = []
  /** Of the retry quota, if the fleet has one. */
  balance: number | undefined = undefined
  /** Of the rate limiter, once it has seen a throttle. */
  fillRate: number | undefined = undefined
}

/** The clients of one policy. */
export interface Fleet {
  readonly name: string
  /** Where its copy of the service is. */
  readonly path: string
  readonly tally: Tally
  /** Calls for a while, and waits for the last answers. */
  readonly run: (seconds: number) => Effect.Effect<void, never, HttpClient.HttpClient>
}

const readGauges = Effect.fnUntraced(function*(tally: Tally) {
  const quota = yield* Effect.serviceOption(RetryQuota.RetryQuota)
  if (Option.isSome(quota)) tally.balance = yield* quota.value.balance
  const limiter = yield* Effect.serviceOption(AdaptiveRateLimiter.AdaptiveRateLimiter)
  if (Option.isNone(limiter)) return
  const { enabled, fillRate } = yield* limiter.value.snapshot
  if (enabled) tally.fillRate = fillRate
})

const counting = (tally: Tally): RetryObserver.RetryObserver => ({
  onStop: ({ reason }) => {
    if (reason === "quota-exhausted") tally.refused++
  }
})

/** Makes a fleet whose clients share the services of the layer. */
export const make = <E, R>(
  name: string,
  retry: (send: Send) => Effect.Effect<string, E, R>,
  layer: Layer.Layer<R>
): Fleet => {
  const path = `/${name.replaceAll(" ", "-")}`
  const tally = new Tally()

  const makeCall = Effect.map(HttpClient.HttpClient, (client) => {
    const get = HttpClient.filterStatusOk(client).get(path)
    const send: Send = Effect.suspend(() => {
      tally.attempts++
      return Effect.timeout(Effect.flatMap(get, (response) => response.text), attemptTimeout)
    })
    return Effect.gen(function*() {
      tally.calls++
      const startedAt = yield* Script.now
      const exit = yield* Effect.exit(Effect.timeout(retry(send), patience))
      if (Exit.isSuccess(exit)) tally.latencies.push((yield* Script.now) - startedAt)
      else tally.failed++
      yield* readGauges(tally)
    })
  })

  const run = Effect.fnUntraced(function*(seconds: number) {
    const call = yield* makeCall
    const running = yield* FiberSet.make()
    const startedAt = yield* Script.now
    for (let number = 0; number < seconds * callsPerSecond; number++) {
      const wait = startedAt + number / callsPerSecond - (yield* Script.now)
      if (wait > 0) yield* Effect.sleep(wait * 1000)
      yield* FiberSet.run(running, call)
    }
    yield* FiberSet.awaitEmpty(running)
  })

  const services = Layer.merge(layer, RetryObserver.layer(counting(tally)))
  return { name, path, tally, run: (seconds) => run(seconds).pipe(Effect.scoped, Effect.provide(services)) }
}

/** The four fleets, each with services of its own. */
export const all = (): ReadonlyArray<Fleet> => [
  make("no retry", (send) => send, Layer.empty),
  make("naive retry", (send) => Effect.retry(send, { times: 3 }), Layer.empty),
  make("awsStandard", withRetry(awsStandard), RetryQuota.layer()),
  make("awsAdaptive", withRetry(awsAdaptive), Layer.merge(RetryQuota.layer(), AdaptiveRateLimiter.layer()))
]

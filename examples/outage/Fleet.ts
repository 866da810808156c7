import {
  AdaptiveRateLimiter,
  awsAdaptive,
  awsStandard,
  RetryObserver,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import * as HttpClient from "effect/http/HttpClient"
import type * as HttpClientError from "effect/http/HttpClientError"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Script from "./Script.ts"

/**
 * Callers arrive at a fixed rate, whatever happens to those before
 * them.
 */
const callsPerSecond = 40
/** How long a caller waits for one response. */
const attemptTimeout = "500 millis"
/** How long a caller waits in total, including retries. */
const patience = "8 seconds"

/** One request of a call. */
export type Send = Effect.Effect<
  string,
  HttpClientError.HttpClientError | Cause.TimeoutError
>

/** What happens to calls. */
const events = ["calls", "attempts", "succeeded", "failed"] as const

/** How often each happened in a second. */
export type Second = { [Event in (typeof events)[number]]: number }

const nothing: Second = {
  calls: 0,
  attempts: 0,
  succeeded: 0,
  failed: 0
}

/** What a fleet has seen so far. */
export class Tally {
  calls = 0
  attempts = 0
  failed = 0
  /** When the first call began, in seconds. */
  startedAt = 0
  /** When each call began, in milliseconds since the first. */
  readonly arrivals: Array<number> = []
  /** What happened in each second since the first call. */
  readonly series: Array<Second> = []
  /** Calls whose next attempt the retry quota refused. */
  refused = 0
  /** Seconds taken by each successful call. */
  readonly latencies: Array<number> = []
  /** The balance of the retry quota, if the fleet has one. */
  balance: number | undefined = undefined
  /** The rate of the limiter, once it has seen a throttle. */
  fillRate: number | undefined = undefined

  /** Counts what happens at a time. */
  count(event: keyof Second, now: number): void {
    const second = Math.max(0, Math.floor(now - this.startedAt))
    while (this.series.length <= second) {
      this.series.push({ ...nothing })
    }
    this.series[second]![event]++
    if (event === "calls") {
      this.arrivals.push(Math.max(0, now - this.startedAt) * 1000)
    }
    if (event === "succeeded") return
    this[event]++
  }
}

/** The clients of one policy. */
export interface Fleet {
  readonly name: string
  /** What its policy does, in a few words. */
  readonly about: string
  /** The path of its copy of the service. */
  readonly path: string
  readonly tally: Tally
  /** Makes calls for this long, then waits for the last responses. */
  readonly run: (
    seconds: number
  ) => Effect.Effect<void, never, HttpClient.HttpClient>
}

const readGauges = Effect.fnUntraced(function*(tally: Tally) {
  const quota = yield* Effect.serviceOption(RetryQuota.RetryQuota)
  if (Option.isSome(quota)) tally.balance = yield* quota.value.balance
  const limiter = yield* Effect.serviceOption(
    AdaptiveRateLimiter.AdaptiveRateLimiter
  )
  if (Option.isNone(limiter)) return
  const { enabled, fillRate } = yield* limiter.value.state
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
  about: string,
  retry: (send: Send) => Effect.Effect<string, E, R>,
  layer: Layer.Layer<R>
): Fleet => {
  const path = `/${name.replaceAll(" ", "-")}`
  const tally = new Tally()

  const makeCall = Effect.map(HttpClient.HttpClient, (client) => {
    const get = HttpClient.filterStatusOk(client).get(path)
    const send: Send = Effect.flatMap(Script.now, (now) => {
      tally.count("attempts", now)
      return Effect.timeout(
        Effect.flatMap(get, (response) => response.text),
        attemptTimeout
      )
    })
    return Effect.gen(function*() {
      const startedAt = yield* Script.now
      tally.count("calls", startedAt)
      const exit = yield* Effect.exit(
        Effect.timeout(retry(send), patience)
      )
      const endedAt = yield* Script.now
      if (Exit.isSuccess(exit)) {
        tally.latencies.push(endedAt - startedAt)
      }
      tally.count(
        Exit.isSuccess(exit) ? "succeeded" : "failed",
        endedAt
      )
      yield* readGauges(tally)
    })
  })

  const run = Effect.fnUntraced(function*(seconds: number) {
    const call = yield* makeCall
    const running = yield* FiberSet.make()
    const startedAt = yield* Script.now
    tally.startedAt = startedAt
    for (let number = 0; number < seconds * callsPerSecond; number++) {
      const wait = startedAt + number / callsPerSecond -
        (yield* Script.now)
      if (wait > 0) yield* Effect.sleep(wait * 1000)
      yield* FiberSet.run(running, call)
    }
    yield* FiberSet.awaitEmpty(running)
  })

  const services = Layer.merge(
    layer,
    RetryObserver.layer(counting(tally))
  )
  return {
    name,
    about,
    path,
    tally,
    run: (seconds) =>
      run(seconds).pipe(Effect.scoped, Effect.provide(services))
  }
}

/**
 * The five fleets, each with its own services. The last has gates: it
 * waits when its server asks, and sends less when sends time out.
 */
export const all = (): ReadonlyArray<Fleet> => [
  make("no retry", "one request per call", (send) => send, Layer.empty),
  make(
    "naive retry",
    "up to 3 more, immediately",
    (send) => Effect.retry(send, { times: 3 }),
    Layer.empty
  ),
  make(
    "awsStandard",
    "up to 2 more, after random waits, paid from a quota",
    withRetry(awsStandard),
    RetryQuota.layer()
  ),
  make(
    "awsAdaptive",
    "the same, with a limit on requests per second",
    withRetry(awsAdaptive),
    Layer.merge(RetryQuota.layer(), AdaptiveRateLimiter.layer())
  ),
  make(
    "quota and gates",
    "awsStandard with a limit on open requests, and a cool-down",
    withRetry(awsStandard),
    // The service asks for a pause of 1 s. With the default of 250 ms,
    // calls that wait through it would be rejected.
    Layer.mergeAll(
      RetryQuota.layer(),
      ConcurrencyLimiter.layer({ maxWait: "1 second" }),
      CoolDown.layer()
    )
  )
]

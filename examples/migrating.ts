/**
 * Migrating from another library: its settings, as policies. The tests
 * run each next to the library it comes from.
 */
import {
  DynamoDBClient,
  type DynamoDBClientConfig,
  GetItemCommand
} from "@aws-sdk/client-dynamodb"
import type { AxiosInstance } from "axios"
import { Duration, Effect, Option } from "effect"
import {
  AwsModes,
  Backoff,
  RetryClassifier,
  RetryInfo,
  RetryPolicy,
  withRetry
} from "effect-retry"
import * as AwsSdk from "effect-retry/AwsSdk"
import * as RetryHttp from "effect-retry/RetryHttp"
import { retryPromise } from "effect-retry/RetryPromise"
import type { HttpClient } from "effect/http"
import got from "got"
import { main, print } from "./support/program.ts"

type Send = (
  options: { readonly signal: AbortSignal }
) => Promise<string>
type Log = (line: string) => void

/** An error that another send would not change. */
export class NotFound extends Error {}

const sixTimes = Backoff.exponential("1 second", 2, {
  cap: "10 seconds"
}).pipe(
  RetryPolicy.maxAttempts(6)
)

/** From p-retry. */
export const getPage = (send: Send, log: Log, signal?: AbortSignal) =>
  retryPromise((attempt) => send(attempt), sixTimes, {
    signal,
    classify: (error) => !(error instanceof NotFound),
    onRetry: (error, { retry }) => log(`retry ${retry} after ${error}`)
  })

/** Any settings of p-retry and async-retry, in milliseconds. */
export const fromTimeouts = (settings: {
  readonly retries: number
  readonly minTimeout: number
  readonly factor: number
  readonly maxTimeout: number
  readonly randomize: boolean
}) => {
  const { factor, maxTimeout, minTimeout, randomize, retries } =
    settings
  const delays = randomize
    ? Backoff.exponential(1.5 * minTimeout, factor, {
      jitter: { proportional: 1 / 3 }
    })
    : Backoff.exponential(minTimeout, factor)
  return delays.pipe(
    RetryPolicy.capped(maxTimeout),
    RetryPolicy.maxAttempts(retries + 1)
  )
}

const threeTimes = fromTimeouts({
  retries: 2,
  minTimeout: 500,
  factor: 2,
  maxTimeout: 30_000,
  randomize: true
})

/** From async-retry. */
export const getUser = (send: Send, log: Log) =>
  retryPromise((attempt) => send(attempt), threeTimes, {
    classify: (error) => !(error instanceof NotFound),
    onRetry: (error, { retry }) => log(`retry ${retry} after ${error}`)
  })

const fourTimes = Backoff.exponential(200, 2, {
  cap: "5 seconds",
  jitter: "full"
}).pipe(RetryPolicy.maxAttempts(4))

/** From cockatiel. */
export const getOrder = (send: Send, log: Log, signal?: AbortSignal) =>
  retryPromise((attempt) => send(attempt), fourTimes, {
    signal,
    classify: (error) => !(error instanceof NotFound),
    onStop: (error) => log(`gave up: ${error}`)
  })

/** `IterableBackoff`: the last delay is repeated. */
export const fromList = (delays: ReadonlyArray<Duration.Input>) =>
  RetryPolicy.fromDelay(({ attempt }) =>
    delays[Math.min(attempt, delays.length) - 1]
  )

/** From `HttpClient.retryTransient`. */
export const patient = <E, R>(
  client: HttpClient.HttpClient.With<E, R>
) =>
  client.pipe(
    RetryHttp.retry(
      Backoff.exponential("200 millis").pipe(
        RetryPolicy.honorRetryAfter({ atMost: "1 minute" }),
        RetryPolicy.maxAttempts(4)
      )
    )
  )

/** Your own error, which says itself whether it is retryable. */
export interface LoadError {
  readonly busy: boolean
}

/**
 * From `Effect.retry` with options. The predicate becomes a classifier.
 */
export const load = <A, R>(send: Effect.Effect<A, LoadError, R>) =>
  send.pipe(
    withRetry(
      Backoff.exponential("100 millis").pipe(
        RetryPolicy.maxAttempts(5),
        RetryPolicy.whileRetryable
      )
    ),
    Effect.provide(
      RetryClassifier.layer((error) =>
        (error as LoadError).busy
          ? Option.some(RetryInfo.transient)
          : Option.none()
      )
    )
  )

/** From `maxAttempts` of a client of DynamoDB. */
export const getItem = (client: DynamoDBClient, id: string) =>
  AwsSdk.sendWithRetry(
    client,
    new GetItemCommand({ TableName: "orders", Key: { id: { S: id } } }),
    AwsModes.standard2026({ maxAttempts: 6, base: "25 millis" })
  )

/**
 * From `new ConfiguredRetryStrategy(4, (attempt) => 100 + attempt *
 * 1000)`.
 */
export const configured = RetryPolicy.fromDelay(({ attempt }) =>
  100 + attempt * 1000
).pipe(
  RetryPolicy.maxAttempts(4),
  RetryPolicy.whileRetryable,
  RetryPolicy.quotaGated({ cost: 14, throttlingCost: 5 })
)

/**
 * The same in the client's own loop, for calls that stay as they are.
 */
export const makeClient = (config: DynamoDBClientConfig) =>
  Effect.map(
    AwsSdk.makeRetryStrategy(configured),
    (retryStrategy) =>
      new DynamoDBClient({
        ...config,
        retryStrategy,
        maxAttempts: retryStrategy.maxAttempts
      })
  )

/**
 * From the `retry` of got: up to 100 ms of added noise, and a hint of
 * at most a minute.
 */
export const fromGot = (
  { backoffLimit, limit }: {
    readonly backoffLimit: Duration.Input
    readonly limit: number
  }
) =>
  Backoff.exponential("1 second").pipe(
    RetryPolicy.capped(backoffLimit),
    RetryPolicy.mapDelay((delay, { random }) =>
      Duration.sum(
        delay,
        Duration.millis(100 * random.nextDoubleUnsafe())
      )
    ),
    RetryPolicy.honorRetryAfter({ atMost: "1 minute", beyond: "stop" }),
    RetryPolicy.maxAttempts(limit + 1),
    RetryPolicy.whileRetryable
  )

const thrice = fromGot({ limit: 2, backoffLimit: "10 seconds" })

/** From got, whose own retries are off. */
export const getText = (url: string) =>
  retryPromise(
    ({ signal }) => got(url, { retry: { limit: 0 }, signal }).text(),
    thrice
  )

/**
 * From axios-retry with `exponentialDelay`: up to a fifth more at
 * random, also on a hint.
 */
export const fromAxiosRetry = ({ delayFactor = 100, retries = 3 }: {
  readonly delayFactor?: number
  readonly retries?: number
}) =>
  Backoff.exponential(2 * delayFactor).pipe(
    RetryPolicy.honorRetryAfter({ atMost: "1 minute" }),
    RetryPolicy.mapDelay((delay, { random }) =>
      Duration.times(delay, 1 + 0.2 * random.nextDoubleUnsafe())
    ),
    RetryPolicy.maxAttempts(retries + 1),
    RetryPolicy.whileRetryable
  )

const fourSends = fromAxiosRetry({ retries: 3 })

/** From axios-retry, which is no longer installed on the client. */
export const getData = async (client: AxiosInstance, url: string) => {
  const answer = await retryPromise(
    ({ signal }) => client.get(url, { signal }),
    fourSends
  )
  return answer.data
}

/** From the `RetryStrategyOptions` of Polly. */
export const fromPolly = (options: {
  readonly maxRetryAttempts: number
  readonly delay: Duration.Input
  readonly backoffType: "Constant" | "Linear" | "Exponential"
  readonly maxDelay: Duration.Input
}) => {
  const { backoffType, delay, maxDelay, maxRetryAttempts } = options
  const delays = {
    Constant: Backoff.fixed(delay),
    Linear: Backoff.linear(delay),
    Exponential: Backoff.exponential(delay)
  }[backoffType]
  return delays.pipe(
    RetryPolicy.capped(maxDelay),
    RetryPolicy.maxAttempts(maxRetryAttempts + 1)
  )
}

/**
 * From `IntervalFunction.ofExponentialRandomBackoff` and `maxAttempts`
 * of resilience4j.
 */
export const fromResilience4j = (config: {
  readonly maxAttempts: number
  readonly initialInterval: Duration.Input
  readonly multiplier: number
  readonly randomizationFactor: number
}) =>
  Backoff.exponential(config.initialInterval, config.multiplier, {
    jitter: { proportional: config.randomizationFactor }
  }).pipe(RetryPolicy.maxAttempts(config.maxAttempts))

/** Fails twice. */
const flaky = (): Send => {
  let sends = 0
  return async () => {
    if (++sends < 3) throw new Error("busy")
    return `the order, after ${sends} sends`
  }
}

main(
  import.meta.url,
  print(`p-retry and async-retry: ${threeTimes}`),
  print(`got: ${thrice}`),
  print(`axios-retry: ${fourSends}`),
  print(`cockatiel: ${fourTimes}`),
  Effect.flatMap(
    Effect.promise(() => getOrder(flaky(), console.log)),
    print
  )
)

/**
 * Retries for Effect's HTTP client.
 *
 * {@link retry} turns a client into one that retries: every request is an attempt of a policy, its outcome is booked, its
 * failures are classified. A response with a status such as 503 is a failure to the policy and stays a response to the
 * caller: when retrying ends, the last response is the result, body and all, as it is without retries. So
 * `HttpClient.filterStatusOk` works before and after it alike.
 *
 * A request is sent again only if that does no harm: its method is idempotent, or it carries an `Idempotency-Key`, or it
 * is marked with {@link repeatable}, or the server has surely not begun with it. A body that may be used up is never sent again.
 *
 * @since 0.1.0
 */

import type * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as HttpClient from "effect/http/HttpClient"
import type { HttpClientError } from "effect/http/HttpClientError"
import * as Layer from "effect/Layer"
import type * as Schedule from "effect/Schedule"
import type { Parts } from "../engine/parts.ts"
import { extended, partsOf } from "../engine/policy/policy.ts"
import { type CallOptions, type Hedge, validatedCall } from "../Hedge.ts"
import { checks } from "../internal/checks.ts"
import * as RetryClassifier from "../RetryClassifier.ts"
import { type Attempted, fromSchedule, isRetryPolicy, type RetryPolicy } from "../RetryPolicy.ts"
import { retrying, type Send, type Settings, telling } from "./internal/call.ts"
import { classifierOf, isRetryStatus } from "./internal/classify.ts"
import { hedging } from "./internal/hedge.ts"
import { defaultHints, type HintReader } from "./internal/hints.ts"
import { withoutProxyRetries } from "./internal/keys.ts"
import { bringing } from "./internal/plain.ts"

export { hintOf } from "./internal/asked.ts"
export { bodyFactory, repeatableBody } from "./internal/bodies.ts"
export type { Send } from "./internal/call.ts"
export { isRetryStatus } from "./internal/classify.ts"
export { defaultHints, hintMillis, type HintReader, hintReset, hintRetryAfter, hintSeconds } from "./internal/hints.ts"
export { idempotencyKey, type IdempotencyKeyOptions } from "./internal/keys.ts"
export { CurrentRepeatable, repeatable } from "./internal/safety.ts"

/**
 * What the classifier can be told.
 *
 * @category models
 * @since 0.1.0
 */
export interface ClassifierOptions {
  /** Who is asked, in turn, how long a response wants the client to wait. Default `defaultHints`. */
  readonly hints?: ReadonlyArray<HintReader> | undefined
  /** Which statuses from 400 on are worth a retry. Default `isRetryStatus`: 408, 425, 429 and most of 5xx. */
  readonly retryStatus?: ((status: number) => boolean) | undefined
}

/**
 * How a client retries.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends ClassifierOptions {
  /**
   * Asked first about every failure: an `HttpClientResponse` with a status from 400 on, or an error. About what it does
   * not know the classifier of this module is asked, and about errors that are not HTTP's the one in `CurrentClassifier`.
   * A veto of a classifier that you have put there always holds.
   */
  readonly classifier?: RetryClassifier.RetryClassifier | undefined
  /**
   * How long one attempt may take until its response begins. No retry begins after `RetryPolicy.deadline`, so with both
   * a call has its response, or has failed, after the sum of the two. An attempt that takes longer is aborted and fails
   * with an `HttpClientError`: a `TransportError` whose cause is a `TimeoutError`. Its request has the method, host and
   * path only; classifiers are asked about it with the whole request. Above 0. Default: no such limit.
   */
  readonly attemptTimeout?: Duration.Input | undefined
  /**
   * After which failures a retry may use the connection again: after throttling only, as in the AWS reference; always, as
   * in its retry behaviour 2.1; never. Where it may, the response that is thrown away is read to its end, up to 64 KiB and
   * for at most a second; where it may not, it is aborted. Default `"throttling"`.
   */
  readonly reuseConnection?: "throttling" | "always" | "never" | undefined
  /**
   * Sends the retries that must not use the old connection. Needed with `fetch` only: it takes a connection back when a
   * response has arrived whole, before anybody can abort it. Default: they are sent like all others.
   */
  readonly newConnection?: (<E, R>(send: Send<E, R>) => Send<E, R>) | undefined
  /**
   * By which share at most chance lengthens a hint, so that clients which were told the same do not return together: a
   * hint becomes `hint * (1 + random * hintSpread)`. From 0 to 1. Default 0.1.
   */
  readonly hintSpread?: number | undefined
  /**
   * Tells proxies on the way not to retry, so that only one layer does: every request says `x-envoy-max-retries: 0` and
   * `l5d-retry-limit: 0`. Envoy heeds it from clients that it takes for internal. Default false.
   */
  readonly disableProxyRetries?: boolean | undefined
}

/**
 * Makes a classifier of responses and of the errors of Effect's HTTP client, for use outside of {@link retry} too.
 *
 * **Details**
 *
 * | failure | facts | a POST or PATCH is safe |
 * | --- | --- | --- |
 * | 429 | throttling | yes |
 * | 425 | the server has not begun | yes |
 * | 408, other 5xx but 501, 505, 506, 508, 510, 511 | passes | with a key or mark |
 * | `x-should-retry: true` / `false`, status from 400 on | the server permits / forbids | yes / no |
 * | `x-envoy-ratelimited` | throttling | yes |
 * | `x-envoy-overloaded`, `finagle-http-nonretryable-nack`, a negative `grpc-retry-pushback-ms` | forbidden | no |
 * | no connection: refused, DNS, no route, refused HTTP/2 stream | passes | yes |
 * | connection broken, time-out | passes | with a key or mark |
 * | bad certificate, bad argument, cancelled by the caller's own signal | forbidden | no |
 * | `InvalidUrlError`, `EncodeError`, body of a good response unreadable | forbidden | no |
 * | 409 to a request with a key | one with the same key is under way | yes |
 * | any other 4xx | unknown: the response is an answer | no |
 *
 * After a redirect that `fetch` has followed, a POST or PATCH is safe only with a key or mark.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeClassifier = (options?: ClassifierOptions): RetryClassifier.RetryClassifier =>
  classifierOf({
    hints: options?.hints ?? defaultHints,
    retryStatus: options?.retryStatus ?? isRetryStatus
  })

/**
 * The classifier with its defaults: see {@link makeClassifier}.
 *
 * @category constructors
 * @since 0.1.0
 */
export const classifier: RetryClassifier.RetryClassifier = makeClassifier()

type AnySchedule<Err, R> = Schedule.Schedule<unknown, Attempted, Err, R>

const settingsOf = (options: Options): Settings => {
  const check = checks("RetryHttp.retry")
  const { attemptTimeout, classifier, newConnection } = options
  const own = makeClassifier(options)
  return {
    classifier: classifier === undefined ? own : RetryClassifier.orElse(classifier, own),
    attemptTimeoutMillis: attemptTimeout === undefined
      ? undefined
      : check.positiveDuration("attemptTimeout", attemptTimeout),
    reuseConnection: check.oneOf("reuseConnection", options.reuseConnection ?? "throttling", [
      "throttling",
      "always",
      "never"
    ]),
    newConnection,
    hintSpread: check.between("hintSpread", options.hintSpread ?? 0.1, 0, 1)
  }
}

const askingParts = ({ whileRetryable }: Parts): Partial<Parts> =>
  whileRetryable === "off" ? { whileRetryable: "yes" } : {}

/** The schedule as a policy that asks whether a failure may be retried: one that does not would resend a consumed body. */
const asking = <Err, R>(schedule: AnySchedule<Err, R>): RetryPolicy<Attempted, R, Err> => {
  const policy = isRetryPolicy(schedule) ? schedule as RetryPolicy<Attempted, R, Err> : fromSchedule(schedule)
  return partsOf(policy).whileRetryable === "off"
    ? extended(policy, "RetryPolicy.whileRetryable", undefined, askingParts)
    : policy
}

const prepared = <E, R>(self: HttpClient.HttpClient.With<E, R>, options: Options | undefined) =>
  telling(options?.disableProxyRetries === true ? withoutProxyRetries(self) : self)

/**
 * Turns a client into one that retries.
 *
 * **Details**
 *
 * The policy may be any schedule; whatever it is, only failures that may be retried are. The client needs what the policy
 * needs, such as a `RetryQuota`. The request is prepared once: what `HttpClient.mapRequest` does is done before the first
 * attempt, and an idempotency key stays the same. A transform of the client that is applied before `retry` runs with
 * every attempt, one that is applied after it runs once.
 *
 * Each attempt has its own client span; from the first retry on it carries `http.request.resend_count`.
 *
 * **Gotchas**
 *
 * An attempt ends when the response begins: what goes wrong while its body is read is not retried. When the deadline of
 * the policy passes while a retry waits for its send token, the body of the last response is gone.
 *
 * Follow redirects above it: `HttpClient.followRedirects` below makes all of them one attempt, and `fetch` hides them. A
 * POST that a redirect has made a GET of was carried out: whatever becomes of the GET, it is not sent again without a key
 * or mark.
 *
 * **Example** (A client with the standard policy of AWS)
 *
 * ```ts
 * const client = (yield* HttpClient.HttpClient).pipe(
 *   RetryHttp.retry(awsStandard, { attemptTimeout: "2 seconds" })
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const retry: {
  <Err, R2>(
    policy: Schedule.Schedule<unknown, Attempted, Err, R2>,
    options?: Options
  ): <E, R>(self: HttpClient.HttpClient.With<E, R>) => HttpClient.HttpClient.With<E | HttpClientError | Err, R | R2>
  <E, R, Err, R2>(
    self: HttpClient.HttpClient.With<E, R>,
    policy: Schedule.Schedule<unknown, Attempted, Err, R2>,
    options?: Options
  ): HttpClient.HttpClient.With<E | HttpClientError | Err, R | R2>
} = dual(
  (args) => HttpClient.isHttpClient(args[0]),
  <E, R, Err, R2>(
    self: HttpClient.HttpClient.With<E, R>,
    policy: Schedule.Schedule<unknown, Attempted, Err, R2>,
    options: Options = {}
  ): HttpClient.HttpClient.With<E | HttpClientError | Err, R | R2> =>
    HttpClient.transform(prepared(self, options), retrying(settingsOf(options), asking(policy)))
)

/**
 * How requests are hedged.
 *
 * @category models
 * @since 0.1.0
 */
export interface HedgeOptions extends Omit<CallOptions, "isRetryable"> {
  /** What says which responses and errors are failures, and which of them end all. Default {@link classifier}. */
  readonly classifier?: RetryClassifier.RetryClassifier | undefined
}

/**
 * Turns a client into one that sends a request once more when its response does not begin in time, and takes the first
 * good one: see `Hedge.hedged`.
 *
 * **Details**
 *
 * Only what may be sent twice is: by its method, with an `Idempotency-Key`, or marked with {@link repeatable}, and never
 * with a body that may be used up. A response that could be retried, such as a 503, has the next send made, and loses to a
 * good one; when all are such, the first is the result. The requests that lose are aborted, and responses that nobody sees
 * are closed.
 *
 * **Gotchas**
 *
 * Put it below {@link retry}, so that a retry hedges, and not the other way around. With an `attemptTimeout` of `retry` the
 * time-out is that of all its sends.
 *
 * **Example** (A client that hedges the slowest 2 % of its reads)
 *
 * ```ts
 * const client = (yield* HttpClient.HttpClient).pipe(
 *   RetryHttp.hedge({ after: Hedge.quantile(0.98) }),
 *   RetryHttp.retry(awsStandard)
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const hedge: {
  (options?: HedgeOptions): <E, R>(
    self: HttpClient.HttpClient.With<E, R>
  ) => HttpClient.HttpClient.With<E, R | Hedge>
  <E, R>(self: HttpClient.HttpClient.With<E, R>, options?: HedgeOptions): HttpClient.HttpClient.With<E, R | Hedge>
} = (...args: ReadonlyArray<any>): any => {
  const isFirst = HttpClient.isHttpClient(args[0])
  const { classifier: own = classifier, ...options }: HedgeOptions = args[isFirst ? 1 : 0] ?? {}
  const hedged = hedging(validatedCall("RetryHttp.hedge", options), own)
  return isFirst
    ? HttpClient.transform(args[0], hedged)
    : <E, R>(self: HttpClient.HttpClient.With<E, R>) => HttpClient.transform(self, hedged)
}

/**
 * A transform of any client that asks for nothing: what takes a `transformClient` takes it.
 *
 * @category models
 * @since 0.1.0
 */
export type Transform = <E, R>(self: HttpClient.HttpClient.With<E, R>) => HttpClient.HttpClient.With<E, R>

/**
 * {@link retry} as a transform that brings what the policy needs, such as a `RetryQuota`: for what takes a plain client
 * and gives one, as `HttpApiClient.make` and `RpcClient.layerProtocolHttp` do.
 *
 * **Details**
 *
 * Quota and limiter are those of where the effect runs, for every caller. All else, such as span, classifier and observer, is
 * that of the call; only a schedule that is no policy of this library has what the call lacks from there too.
 *
 * **Gotchas**
 *
 * A policy that can fail itself, as `awsAdaptive` with its `RateLimitExceeded`, does not fit a plain client: its error has
 * no place there. Use {@link retry}.
 *
 * Run it once, where the client is made. A client whose error is not `HttpClientError` may fail with one all the same when
 * there is an `attemptTimeout`.
 *
 * Every RPC is a POST: it is sent again only where it was surely not processed, or is marked with `repeatable`.
 *
 * **Example** (A plain client; `HttpApiClient.make(Api, { transformClient })` takes the same)
 *
 * ```ts
 * const plain = Effect.gen(function*() {
 *   const transformClient = yield* RetryHttp.transform(awsStandard2026)
 *   return transformClient(yield* HttpClient.HttpClient)
 * })
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const transform = <R>(
  policy: Schedule.Schedule<unknown, Attempted, never, R>,
  options?: Options
): Effect.Effect<Transform, never, R> => {
  const settings = settingsOf(options ?? {})
  const asked = asking(policy)
  return Effect.contextWith((built: Context.Context<R>) => {
    const bring = bringing(policy, built as Context.Context<never>)
    return Effect.succeed<Transform>((self) =>
      HttpClient.transformResponse(
        HttpClient.transform(prepared(self, options), retrying(settings, asked)),
        Effect.updateContext(bring as any)
      ) as any
    )
  })
}

/**
 * A layer that makes the client around it one that retries, for all that ask for an `HttpClient`.
 *
 * **Details**
 *
 * As {@link transform}: quota and limiter are those that the layer is given.
 *
 * **Example** (Every request of a program)
 *
 * ```ts
 * const HttpLive = RetryHttp.layer(awsStandard2026).pipe(
 *   Layer.provide([FetchHttpClient.layer, RetryQuota.layer()])
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <R>(
  policy: Schedule.Schedule<unknown, Attempted, never, R>,
  options?: Options
): Layer.Layer<HttpClient.HttpClient, never, HttpClient.HttpClient | R> =>
  Layer.effect(
    HttpClient.HttpClient,
    Effect.zipWith(transform(policy, options), HttpClient.HttpClient, (apply, client) => apply(client))
  )

/**
 * Retries for Effect's HTTP client.
 *
 * {@link retry} turns a client into one that retries: every request is an attempt under a policy, its outcome is
 * recorded, its failures are classified. A response with a status such as 503 is a failure to the policy but stays a
 * response to the caller: when retrying ends, the last response is the result, including its body, as without retries.
 * So `HttpClient.filterStatusOk` works both before and after it.
 *
 * A request is sent again only if that is safe: its method is idempotent, it carries an `Idempotency-Key`, it is marked
 * with {@link repeatable}, or the server cannot have started processing it. A body that may already be consumed is
 * never resent.
 *
 * @since 0.1.0
 */

import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as HttpClient from "effect/http/HttpClient"
import type { HttpClientError } from "effect/http/HttpClientError"
import type { HttpClientRequest } from "effect/http/HttpClientRequest"
import * as Layer from "effect/Layer"
import type * as Schedule from "effect/Schedule"
import { bringing } from "../engine/callContext.ts"
import { changed, type Compiled } from "../engine/compiled.ts"
import { compiledIn } from "../engine/policy/policy.ts"
import { withServices } from "../engine/policy/providedPolicy.ts"
import type { CallOptions, Hedge } from "../hedge/Hedge.ts"
import { validCall } from "../hedge/internal/hedgeOptions.ts"
import { also, callable, checksOf, rejectUnknown } from "../internal/checks.ts"
import { validOptions } from "../internal/options.ts"
import { layer as limitersLayer, type Limiters, ResourceLimiters } from "../resources/ResourceLimiters.ts"
import type * as RetryClassifier from "../RetryClassifier.ts"
import { classifierOf, classifierOptions, type HintReader } from "./internal/classifyResponse.ts"
import * as defaults from "./internal/defaults.ts"
import { hedging, hostOf, retried, type Send, settingsOf } from "./internal/httpCall.ts"

export {
  defaultHints,
  hintMillis,
  hintOf,
  type HintReader,
  hintReset,
  hintRetryAfter,
  hintSeconds,
  isRetryStatus
} from "./internal/classifyResponse.ts"
export { hostOf, type Send } from "./internal/httpCall.ts"
export {
  bodyFactory,
  CurrentRepeatable,
  idempotencyKey,
  type IdempotencyKeyOptions,
  repeatable,
  repeatableBody
} from "./internal/requestSafety.ts"

/**
 * Options of the classifier.
 *
 * @category models
 * @since 0.1.0
 */
export interface ClassifierOptions {
  /** The readers, asked in turn, of how long a response wants the client to wait. Default `defaultHints`. */
  readonly hints?: ReadonlyArray<HintReader> | undefined
  /** Which statuses from 400 up are retryable. Default `isRetryStatus`: 408, 425, 429 and most of 5xx. */
  readonly retryStatus?: ((status: number) => boolean) | undefined
}

/**
 * Options of a client that retries.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends ClassifierOptions {
  /**
   * Asked first about every failure: an `HttpClientResponse` with a status from 400 up, or an error. What it does not
   * know goes to the classifier of this module, and errors outside HTTP to the one in `CurrentClassifier`. A veto of a
   * classifier that you set there always applies.
   */
  readonly classifier?: RetryClassifier.RetryClassifier | undefined
  /**
   * How long one attempt may take until its response begins, and the JSON body of a 429 or 503 is waited for. No retry begins after `RetryPolicy.deadline`, so with
   * both, a call has its response, or has failed, after the sum of the two. An attempt that takes longer is aborted and
   * fails with an `HttpClientError`: a `TransportError` whose cause is a `TimeoutError`. Its request shows only method,
   * host and path; classifiers see the whole request. Above 0. Default: no such limit.
   */
  readonly attemptTimeout?: Duration.Input | undefined
  /**
   * After which failures a retry may reuse the connection: only after throttling, as in the AWS reference; always, as
   * in its retry behavior 2.1; never. If it may, the discarded response is read to its end, up to 64 KiB and for at
   * most a second; otherwise it is aborted. Default `"throttling"`.
   */
  readonly reuseConnection?: "throttling" | "always" | "never" | undefined
  /**
   * Sends the retries that must not use the old connection. Only needed with `fetch`: it reclaims a connection once a
   * response has arrived completely, before it can be aborted. Default: they are sent like all others.
   */
  readonly newConnection?: (<E, R>(send: Send<E, R>) => Send<E, R>) | undefined
  /**
   * The largest share by which randomness lengthens a hint, so that clients with the same hint do not return together:
   * a hint becomes `hint * (1 + random * hintSpread)`. From 0 to 1. Default 0.1.
   */
  readonly hintSpread?: number | undefined
  /**
   * Tells proxies on the way not to retry, so that only one layer does: every request carries `x-envoy-max-retries: 0`
   * and `l5d-retry-limit: 0`. Envoy respects it from clients that it considers internal. Default false.
   */
  readonly disableProxyRetries?: boolean | undefined
  /**
   * The resource that a request is for, such as {@link hostOf}: its quota, limiter and gates are then those of that key
   * of `ResourceLimiters`, in place of those around the call, also where the key has none. Gates that `ResourceLimiters`
   * has no option for, such as a `TokenLimiter`, still apply. No type shows the refusals of the gates:
   * `SendGate.catchRefusal` catches them. If it throws, the host. Default: none.
   */
  readonly resource?: ((request: HttpClientRequest) => string) | undefined
}

/**
 * Options of a client whose requests are for several resources.
 *
 * @category models
 * @since 0.1.0
 */
export interface ResourceOptions extends Options {
  readonly resource: (request: HttpClientRequest) => string
}

/**
 * What a policy needs besides the quotas and limiters of resources.
 *
 * @category models
 * @since 0.1.0
 */
export type PerResource<R> = Exclude<R, Limiters> | ResourceLimiters

/**
 * Makes a classifier of responses and of the errors of Effect's HTTP client, also for use outside {@link retry}.
 *
 * **Details**
 *
 * | failure | facts | a POST or PATCH is safe |
 * | --- | --- | --- |
 * | 429 | throttling | yes |
 * | 425 | the server has not started processing it | yes |
 * | 408, other 5xx except 501, 505, 506, 508, 510, 511 | transient | with a key or mark |
 * | `x-should-retry: true` / `false`, status from 400 up | the server permits / forbids | yes / no |
 * | `x-envoy-ratelimited` | throttling | yes |
 * | `x-envoy-overloaded`, `finagle-http-nonretryable-nack`, a negative `grpc-retry-pushback-ms` | forbidden | no |
 * | no connection: refused, DNS, no route, refused HTTP/2 stream | transient | yes |
 * | connection broken, timeout | transient | with a key or mark |
 * | bad certificate, bad argument, canceled by the caller's own signal | forbidden | no |
 * | `InvalidUrlError`, `EncodeError`, body of a good response unreadable | forbidden | no |
 * | 409 to a request with a key | one with the same key is in progress | yes |
 * | any other 4xx | unknown: the response is the result | no |
 *
 * After a redirect followed by `fetch`, a POST or PATCH is safe only with a key or mark.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeClassifier = (options: ClassifierOptions = {}): RetryClassifier.RetryClassifier => {
  const check = checksOf("RetryHttp.makeClassifier", options)
  return classifierOf(validOptions(check, classifierOptions, options))
}

/**
 * The classifier with its defaults: see {@link makeClassifier}.
 *
 * @category constructors
 * @since 0.1.0
 */
export const classifier: RetryClassifier.RetryClassifier = makeClassifier()

type AnySchedule<Err, R> = Schedule.Schedule<unknown, unknown, Err, R>

/**
 * The schedule as a policy that checks whether a failure is retryable: one that does not would resend a consumed body.
 */
const asking = (schedule: AnySchedule<unknown, any>): Compiled =>
  changed(compiledIn(schedule, "RetryHttp.retry", "policy"), ({ whileRetryable }) => ({
    whileRetryable: whileRetryable === "off" ? "yes" : whileRetryable
  }))

/**
 * Turns a client into one that retries.
 *
 * **Details**
 *
 * The policy may be any schedule: only retryable failures are ever retried. The client needs what the policy needs,
 * such as a `RetryQuota`. The request is prepared once: `HttpClient.mapRequest` runs before the first attempt, and an
 * idempotency key stays the same. A transform of the client applied before `retry` runs with every attempt, one applied
 * after it runs once.
 *
 * Each attempt has its own client span; from the first retry on it has the attribute `http.request.resend_count`.
 *
 * **Gotchas**
 *
 * An attempt ends when the response begins: a failure while its body is read is not retried. If the deadline of the
 * policy passes while a retry waits for its send token, the body of the last response is gone.
 *
 * Follow redirects above it: `HttpClient.followRedirects` below makes all of them one attempt, and `fetch` hides them.
 * A POST that a redirect turned into a GET was processed: whatever happens to the GET, it is not sent again without a
 * key or mark.
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
    policy: Schedule.Schedule<unknown, unknown, Err, R2>,
    options: ResourceOptions
  ): <E, R>(
    self: HttpClient.HttpClient.With<E, R>
  ) => HttpClient.HttpClient.With<E | HttpClientError | Err, R | PerResource<R2>>
  <Err, R2>(
    policy: Schedule.Schedule<unknown, unknown, Err, R2>,
    options?: Options
  ): <E, R>(self: HttpClient.HttpClient.With<E, R>) => HttpClient.HttpClient.With<E | HttpClientError | Err, R | R2>
  <E, R, Err, R2>(
    self: HttpClient.HttpClient.With<E, R>,
    policy: Schedule.Schedule<unknown, unknown, Err, R2>,
    options: ResourceOptions
  ): HttpClient.HttpClient.With<E | HttpClientError | Err, R | PerResource<R2>>
  <E, R, Err, R2>(
    self: HttpClient.HttpClient.With<E, R>,
    policy: Schedule.Schedule<unknown, unknown, Err, R2>,
    options?: Options
  ): HttpClient.HttpClient.With<E | HttpClientError | Err, R | R2>
} = dual(
  (args) => HttpClient.isHttpClient(args[0]),
  (self: HttpClient.HttpClient, policy: AnySchedule<unknown, any>, options: Options = {}): any =>
    retried(self, settingsOf(options, "RetryHttp.retry"), asking(policy))
)

/**
 * Options for hedging requests.
 *
 * @category models
 * @since 0.1.0
 */
export interface HedgeOptions extends Omit<CallOptions, "isRetryable"> {
  /** Decides which responses and errors are failures, and which of them end the call. Default {@link classifier}. */
  readonly classifier?: RetryClassifier.RetryClassifier | undefined
}

/**
 * Turns a client into one that sends a request again if its response does not begin in time, and takes the first good
 * one: see `Hedge.hedged`.
 *
 * **Details**
 *
 * It hedges only requests that can be sent twice: by their method, with an `Idempotency-Key`, or marked with
 * {@link repeatable}, and never with a body that may already be consumed. After a retryable response, such as a 503,
 * the next send is made, and a good response wins over it; if there is no good one, the first is the result. Losing
 * requests are aborted (under `HttpClient.withScope`, when the scope closes), and unused responses are closed.
 *
 * **Gotchas**
 *
 * Put it below {@link retry}, so that a retry hedges, and not the other way around. The `attemptTimeout` of `retry`
 * then covers all its sends.
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
  (options?: HedgeOptions): <E, R>(self: HttpClient.HttpClient.With<E, R>) => HttpClient.HttpClient.With<E, R | Hedge>
  <E, R>(self: HttpClient.HttpClient.With<E, R>, options?: HedgeOptions): HttpClient.HttpClient.With<E, R | Hedge>
} = (...args: ReadonlyArray<any>): any => {
  const isFirst = HttpClient.isHttpClient(args[0])
  const { [isFirst ? 1 : 0]: input = {} } = args
  const check = checksOf("RetryHttp.hedge", input)
  const { classifier: own = classifier, ...options }: HedgeOptions = input
  also(check, "after", "atMost", "cost", "classifier")
  rejectUnknown(check, input)
  const hedged = hedging(validCall(check, options), callable(check, "classifier", own, "a function of a failure"))
  const transformed = (self: HttpClient.HttpClient) => HttpClient.transform(self, hedged)
  return isFirst ? transformed(args[0]) : transformed
}

/**
 * A transform of any client with no requirements: fits every `transformClient`.
 *
 * @category models
 * @since 0.1.0
 */
export type Transform = <E, R>(self: HttpClient.HttpClient.With<E, R>) => HttpClient.HttpClient.With<E, R>

/** `lastMillis`: how long an attempt may take that none can follow, if that is longer. */
const transforming = (policy: AnySchedule<never, any>, options: Options = {}, lastMillis?: number) => {
  const settings = settingsOf(options, "RetryHttp.retry", lastMillis)
  return withServices<Transform, any>(asking(policy), (compiled, made) => {
    const bring = bringing(compiled, made, ResourceLimiters)
    return (self) =>
      HttpClient.transformResponse(retried(self, settings, compiled), Effect.updateContext(bring as any)) as any
  })
}

/**
 * {@link retry} as a transform that provides what the policy needs, such as a `RetryQuota`: for functions from a plain
 * client to a plain client, as `HttpApiClient.make` and `RpcClient.layerProtocolHttp` expect.
 *
 * **Details**
 *
 * Quota, limiter and gates come from where this effect runs, for every caller, or, if it has none there, from the call.
 * Where the call names a resource (`ResourceLimiters.get`, `quota`), those of the resource apply. Classifier and observer
 * come from the call, or, if it has none, from there; the policy of `RetryConfig.live` from there alone. Everything else,
 * such as the span, is that of the call.
 *
 * **Gotchas**
 *
 * A policy that can fail itself, such as `awsAdaptive` with its `RateLimitExceeded`, does not fit a plain client, whose
 * type has no room for its error. Use {@link retry}.
 *
 * Run it once, where the client is made. With an `attemptTimeout`, even a client whose error type is not
 * `HttpClientError` may fail with one.
 *
 * Every RPC is a POST: it is sent again only if it cannot have been processed, or is marked with `repeatable`.
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
export const transform: {
  <R>(
    policy: Schedule.Schedule<unknown, unknown, never, R>,
    options: ResourceOptions
  ): Effect.Effect<Transform, never, PerResource<R>>
  <R>(policy: Schedule.Schedule<unknown, unknown, never, R>, options?: Options): Effect.Effect<Transform, never, R>
} = (policy: AnySchedule<never, any>, options?: Options) => transforming(policy, options)

/**
 * A layer that makes the client around it retry, for everything that requires an `HttpClient`.
 *
 * **Details**
 *
 * Like {@link transform}: quota, limiter and gates are those that the layer is given.
 *
 * Without arguments, it needs only the client, and has the defaults of `retryFetch`: `httpStandard` with ten attempts in
 * 30 seconds, 10 seconds for an attempt until its response begins, or 30 if none can follow it, and a quota and a
 * cool-down for each host, of at most 10,000.
 *
 * **Example** (Every request of a program)
 *
 * ```ts
 * const HttpLive = RetryHttp.layer().pipe(Layer.provide(FetchHttpClient.layer))
 * ```
 *
 * **Example** (With a policy)
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
export const layer: {
  (): Layer.Layer<HttpClient.HttpClient, never, HttpClient.HttpClient>
  <R>(
    policy: Schedule.Schedule<unknown, unknown, never, R>,
    options: ResourceOptions
  ): Layer.Layer<HttpClient.HttpClient, never, HttpClient.HttpClient | PerResource<R>>
  <R>(
    policy: Schedule.Schedule<unknown, unknown, never, R>,
    options?: Options
  ): Layer.Layer<HttpClient.HttpClient, never, HttpClient.HttpClient | R>
} = (policy?: AnySchedule<never, any>, options?: Options) =>
  policy === undefined ? byDefault : applied(transforming(policy, options))

const applied = (transform: Effect.Effect<Transform, never, any>): Layer.Layer<HttpClient.HttpClient, never, any> =>
  Layer.effect(
    HttpClient.HttpClient,
    Effect.zipWith(transform, HttpClient.HttpClient, (apply, client) => apply(client))
  )

const byDefault = /* @__PURE__ */ Layer.suspend(() => {
  const { attemptMillis, lastMillis } = defaults.timeouts
  const transform = transforming(defaults.policy(), { resource: hostOf, attemptTimeout: attemptMillis }, lastMillis)
  return Layer.provide(applied(transform), limitersLayer(defaults.limiters))
})

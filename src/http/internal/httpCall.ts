import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as HttpClient from "effect/http/HttpClient"
import { type HttpClientError, isHttpClientError } from "effect/http/HttpClientError"
import { type HttpClientRequest, setHeaders } from "effect/http/HttpClientRequest"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import { type Compiled, limitsOf } from "../../engine/compiled.ts"
import { environmentOf } from "../../engine/environment.ts"
import { retrying as loop } from "../../engine/loop.ts"
import { Hedge } from "../../hedge/Hedge.ts"
import { type HedgeOptions, hedging as race } from "../../hedge/internal/race.ts"
import { checksOf } from "../../internal/checks.ts"
import { clockOf, monotonicMillis } from "../../internal/clock.ts"
import * as Options from "../../internal/options.ts"
import { headersIn, remainingIn } from "../../internal/propagation.ts"
import type { AnyFiber } from "../../internal/shared.ts"
import { guarded, look } from "../../internal/tryGet.ts"
import { withoutGates } from "../../resources/internal/resourceGates.ts"
import * as ResourceLimiters from "../../resources/ResourceLimiters.ts"
import { classify, CurrentClassifier, orElse, type RetryClassifier } from "../../RetryClassifier.ts"
import * as RetryInfo from "../../RetryInfo.ts"
import { combine, CurrentObserver, observerOf, type RetryObserver } from "../../RetryObserver.ts"
import { discard, isWorthReading, readAhead } from "./bufferedBody.ts"
import { classifierOf, classifierOptions, inside, isResponse, mayFail, timedOut } from "./classifyResponse.ts"
import { isOneShot, isRepeatable, withoutProxyRetries } from "./requestSafety.ts"

/**
 * The sending of a request, until its response has begun.
 *
 * @category models
 * @since 0.1.0
 */
export type Send<E, R> = Effect.Effect<HttpClientResponse, E, R>

/**
 * The host and port of a request, `""` if its URL has none: the usual `resource`.
 *
 * **Example** (A quota and gates for each host)
 *
 * ```ts
 * const perHost = RetryHttp.layer(awsStandard2026, { resource: RetryHttp.hostOf }).pipe(
 *   Layer.provide([FetchHttpClient.layer, ResourceLimiters.layer({ coolDown: {}, limiter: "unlimited" })])
 * )
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const hostOf = ({ url }: HttpClientRequest): string => look(() => new URL(url).host) ?? ""

/** Options of a client that retries. A spread is not free of effects for a bundler. */
const clientOptions = /* @__PURE__ */ (() => ({
  ...classifierOptions,
  attemptTimeout: Options.optional(Options.positiveDuration()),
  classifier: Options.optional(Options.functionOf<RetryClassifier>("a function of a failure")),
  newConnection: Options.optional(Options.functionOf<<E, R>(send: Send<E, R>) => Send<E, R>>("a function of a send")),
  resource: Options.optional(Options.functionOf<(request: HttpClientRequest) => string>("a function of a request")),
  disableProxyRetries: Options.flag(),
  reuseConnection: Options.word("throttling", "always", "never"),
  hintSpread: Options.share(0.1)
}))()

export type Settings = ReturnType<typeof settingsOf>

/** `lastMillis`: how long an attempt may take that none can follow, if that is longer. */
export const settingsOf = (
  options: Options.Inputs<typeof clientOptions>,
  constructorName: string,
  lastMillis?: number
) => {
  const valid = Options.validOptions(checksOf(constructorName, options), clientOptions, options)
  const { attemptTimeoutMillis, classifier, resource } = valid
  const own = classifierOf(valid)
  return {
    ...valid,
    classifier: classifier === undefined ? own : orElse(classifier, own),
    lastTimeoutMillis: lastMillis ?? attemptTimeoutMillis,
    resource: resource && guarded(resource, hostOf)
  }
}

const now = (fiber = Fiber.getCurrent()!): number => monotonicMillis(clockOf(fiber))

/** One call: the attempts at one request. */
class HttpCall {
  /** The classifier around the call: for errors outside HTTP, and for vetoes. */
  private readonly outer: RetryClassifier
  private readonly classify: RetryClassifier
  readonly observer: RetryObserver
  /** Whether the policy retries failures that are only `"Maybe"` safe. */
  private readonly retriesMaybe: boolean
  private readonly oneShot: boolean
  private sends = 0
  private failure: unknown = undefined
  private info: Option.Option<RetryInfo.RetryInfo> = Option.none()
  /** The response that the attempt failed with; `undefined` if it failed with an error. */
  private response: HttpClientResponse | undefined = undefined
  /** The response of the failure, until it is discarded. */
  private held: HttpClientResponse | undefined = undefined
  /** When the call and the attempt are out of time, in milliseconds of the monotonic clock. */
  private readonly deadlineAtMillis: number
  private untilMillis = Infinity
  private bodyForbids = false

  constructor(
    private readonly settings: Settings,
    compiled: Compiled,
    private readonly request: HttpClientRequest,
    fiber: AnyFiber
  ) {
    this.outer = fiber.getRef(CurrentClassifier)
    this.classify = inside(settings.classifier, this.outer)
    this.observer = observerOf(fiber.context)
    this.retriesMaybe = compiled.whileRetryable === "maybe"
    this.oneShot = isOneShot(request.body)
    this.deadlineAtMillis = now(fiber) + limitsOf(compiled).deadlineMillis
  }

  /** One attempt: a response that is a failure becomes an error. */
  attempt<E, R>(send: Send<E, R>): Effect.Effect<HttpClientResponse, E | HttpClientError | HttpClientResponse, R> {
    return Effect.suspend(() => {
      const resends = this.sends++
      this.response = this.held = this.failure = undefined
      const { newConnection } = this.settings
      const fresh = resends > 0 && !this.reuse ? newConnection?.(send) : undefined
      const plain = this.timely(Effect.isEffect(fresh) ? fresh : send).pipe(
        Effect.provideService(CurrentClassifier, this.outer),
        Effect.provideService(CurrentObserver, this.observer)
      )
      const counted = resends === 0 ? plain : Effect.annotateSpans(plain, "http.request.resend_count", resends)
      return Effect.flatMap(counted, this.inspected)
    })
  }

  /** Limits an attempt to its timeout, and, if calls are propagated, to the deadline. */
  private timely<E, R>(send: Send<E, R>): Send<E | HttpClientError, R> {
    return Effect.withFiber((fiber): Send<E | HttpClientError, R> => {
      const { attemptTimeoutMillis, lastTimeoutMillis } = this.settings
      /** Whether no attempt can follow one that may have been processed. */
      const isLast = this.oneShot || !(this.retriesMaybe || isRepeatable(this.request))
      const timeoutMillis = isLast ? lastTimeoutMillis : attemptTimeoutMillis
      const millis = Math.min(timeoutMillis ?? Infinity, remainingIn(fiber.context))
      this.untilMillis = Math.min(this.deadlineAtMillis, now(fiber) + millis)
      if (millis === Infinity) return send
      const late = Effect.suspend(() => Effect.fail(timedOut(this.request, millis)))
      return millis === 0 ? late : Effect.timeoutOrElse(send, { duration: millis, orElse: () => late })
    })
  }

  private readonly inspected = (
    response: HttpClientResponse
  ): Effect.Effect<HttpClientResponse, HttpClientResponse> => {
    if (!mayFail(response)) return Effect.succeed(response)
    return look(() => isWorthReading(response))
      ? Effect.flatMap(readAhead(response, Math.max(0, this.untilMillis - now())), this.judged)
      : this.judged(response)
  }

  private readonly judged = (response: HttpClientResponse): Effect.Effect<HttpClientResponse, HttpClientResponse> => {
    if (Option.isNone(this.facts(response))) return Effect.succeed(response)
    this.response = this.held = response
    return Effect.fail(response)
  }

  /** The facts of a failure, computed once. */
  readonly facts: RetryClassifier = (failure) => {
    if (failure === this.failure) return this.info
    const info = Option.map(this.classify(failure), (info) => this.forRequest(info, failure))
    if (!isResponse(failure) || Option.isSome(info)) {
      this.failure = failure
      this.info = info
      if (isHttpClientError(failure)) this.held ??= failure.response
    }
    return info
  }

  /** A redirect or a consumed body forbids a retry, and randomness lengthens the hint. */
  private forRequest(info: RetryInfo.RetryInfo, failure: unknown): RetryInfo.RetryInfo {
    const { hintSpread } = this.settings
    const safety = info.safety === "Yes" && !this.mayRepeat(failure) ? "Maybe" : info.safety
    const retried = safety === "Yes" || (safety === "Maybe" && this.retriesMaybe)
    this.bodyForbids = retried && this.oneShot
    const retryAfter = info.retryAfter === undefined || hintSpread === 0
      ? info.retryAfter
      : Duration.times(info.retryAfter, 1 + hintSpread * Fiber.getCurrent()!.getRef(Random.Random).nextDoubleUnsafe())
    return RetryInfo.make({ ...info, safety: this.bodyForbids ? "No" : safety, retryAfter })
  }

  /** The failed request may be the result of a redirect; then the original request was processed. */
  private mayRepeat(failure: unknown): boolean {
    const failed = isResponse(failure) || isHttpClientError(failure) ? failure.request : this.request
    return failed.method === this.request.method || isRepeatable(this.request)
  }

  /** Whether a retry may use the connection of the failed attempt. */
  get reuse(): boolean {
    const { reuseConnection } = this.settings
    const throttled = Option.isSome(this.info) && this.info.value.throttling
    return reuseConnection === "always" || (reuseConnection === "throttling" && throttled)
  }

  /** The end of the call: the last response is the result, as without retries; an error stays unchanged. */
  complete<E>(failure: E | HttpClientResponse): Effect.Effect<HttpClientResponse, E> {
    const { response } = this
    const returned = response !== undefined && failure === response
      ? Effect.succeed(response)
      : Effect.fail(failure as E)
    // The schedule itself has failed.
    if (failure !== this.failure) return Effect.andThen(this.discarded(), returned)
    return this.bodyForbids ? Effect.andThen(warnOneShot, returned) : returned
  }

  /** Discards the response of the last attempt, which will not be read. */
  discarded(reuse = false): Effect.Effect<void> {
    return Effect.uninterruptible(Effect.suspend(() => {
      const { held } = this
      this.held = undefined
      return held === undefined ? Effect.void : discard(held, reuse)
    }))
  }
}

const warnOneShot = Effect.andThen(
  Effect.annotateCurrentSpan("http.request.body.one_shot", true),
  Effect.logWarning("The request is not sent again: its body is a stream that may already be consumed.")
)

/**
 * Runs with what the resource of the request has, and without the gates around the call that it could have. The types of a
 * client name what that needs.
 */
const forResource = <A extends Send<any, any>>({ resource }: Settings, request: HttpClientRequest, call: A): A =>
  resource === undefined ? call : Effect.updateContext(
    Effect.provide(call, ResourceLimiters.get(resource(request))),
    withoutGates
  ) as any

/** Sends a request, and retries it as needed. */
const retrying =
  (settings: Settings, { services, ...policy }: Compiled) =>
  <E, R>(send: Send<E, R>, request: HttpClientRequest): Send<any, any> => {
    const own: Compiled = { ...policy, services: undefined }
    const sent: Send<any, any> = Effect.withFiber((fiber) => {
      const compiled = own.live?.(environmentOf(fiber.context).services) ?? own
      const call = new HttpCall(settings, compiled, request, fiber)
      const retried: Send<any, any> = loop(call.attempt(send), compiled)
      return retried.pipe(
        Effect.provideService(CurrentClassifier, call.facts),
        Effect.provideService(CurrentObserver, combine(call.observer, { onRetry: () => call.discarded(call.reuse) })),
        Effect.catch((failure) => call.complete(failure)),
        Effect.onError((cause) => Cause.hasFails(cause) ? Effect.void : call.discarded())
      )
    })
    return forResource(settings, request, (services?.retried(undefined, () => sent) ?? sent) as Send<any, any>)
  }

/** A client whose every send tells the server about its call, if calls are propagated. */
const withPropagatedHeaders = <E, R>(self: HttpClient.HttpClient.With<E, R>): HttpClient.HttpClient.With<E, R> =>
  HttpClient.makeWith(
    (prepared) =>
      Effect.flatMap(prepared, (request) =>
        Effect.withFiber(({ context }) => {
          const headers = headersIn(context)
          return self.postprocess(Effect.succeed(headers === undefined ? request : setHeaders(request, headers)))
        })),
    self.preprocess
  )

/** A client that retries. */
export const retried = <E, R>(self: HttpClient.HttpClient.With<E, R>, settings: Settings, compiled: Compiled) =>
  HttpClient.transform(
    withPropagatedHeaders(settings.disableProxyRetries ? withoutProxyRetries(self) : self),
    retrying(settings, compiled)
  )

/** Closes the unread response of a send. */
const release: HedgeOptions["release"] = (exit) => {
  const held = exit._tag === "Success" ? exit.value : exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error
  return isResponse(held) ? discard(held, false) : Effect.void
}

/**
 * Hedges a request that can be sent twice. A response that the classifier considers a failure loses to one that is not.
 */
export const hedging =
  (options: HedgeOptions, classifier: RetryClassifier) =>
  <E, R>(send: Send<E, R>, request: HttpClientRequest): Send<E, R | Hedge> =>
    Effect.withFiber((fiber) => {
      if (!isRepeatable(request) || isOneShot(request.body)) return send
      const outer = fiber.getRef(CurrentClassifier)
      const failures = new Set<unknown>()
      const sent: Effect.Effect<HttpClientResponse, E | HttpClientResponse, R> = Effect.flatMap(
        Effect.provideService(send, CurrentClassifier, outer),
        (response) =>
          mayFail(response) && Option.isSome(classify(classifier, response))
            ? Effect.fail(failures.add(response) && response)
            : Effect.succeed(response)
      )
      return Hedge.use(({ home }) => race(sent, { ...options, release }, home)).pipe(
        Effect.provideService(CurrentClassifier, inside(classifier, outer)),
        Effect.catch((failure) =>
          failures.has(failure) ? Effect.succeed(failure as HttpClientResponse) : Effect.fail(failure as E)
        )
      )
    })

import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
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
import { clockOf, monotonicMillis } from "../../internal/clock.ts"
import { headersIn, remainingIn } from "../../internal/propagation.ts"
import type { AnyContext, AnyFiber } from "../../internal/shared.ts"
import { look } from "../../internal/tryGet.ts"
import { withoutGates } from "../../resources/internal/resourceGates.ts"
import * as ResourceLimiters from "../../resources/ResourceLimiters.ts"
import { CurrentClassifier, type RetryClassifier } from "../../RetryClassifier.ts"
import * as RetryInfo from "../../RetryInfo.ts"
import { combine, CurrentObserver, observerOf } from "../../RetryObserver.ts"
import { discard, isWorthReading, readAhead } from "./bufferedBody.ts"
import { inside, isResponse, mayFail, timedOut } from "./classifyResponse.ts"
import type { Send, Settings } from "./httpSettings.ts"
import { isOneShot, isRepeatable } from "./requestSafety.ts"

const now = (fiber = Fiber.getCurrent()!): number => monotonicMillis(clockOf(fiber))

/** One call: the attempts at one request. */
class HttpCall {
  /** The classifier around the call: for errors outside HTTP, and for vetoes. */
  private readonly outer = this.fiber.getRef(CurrentClassifier)
  private readonly classify = inside(this.settings.classifier, this.outer)
  readonly observer = observerOf(this.fiber.context)
  /** Whether the policy retries failures that are only `"Maybe"` safe. */
  private readonly retriesMaybe = this.compiled.whileRetryable === "maybe"
  private readonly oneShot = isOneShot(this.request.body)
  private sends = 0
  private failure: unknown = undefined
  private info: Option.Option<RetryInfo.RetryInfo> = Option.none()
  /** The response that the attempt failed with; `undefined` if it failed with an error. */
  private response: HttpClientResponse | undefined = undefined
  /** The response of the failure, until it is discarded. */
  private held: HttpClientResponse | undefined = undefined
  /** When the call and the attempt are out of time, in milliseconds of the monotonic clock. */
  private readonly deadlineAtMillis = now(this.fiber) + limitsOf(this.compiled).deadlineMillis
  private untilMillis = Infinity
  private bodyForbids = false

  constructor(
    private readonly settings: Settings,
    private readonly compiled: Compiled,
    private readonly request: HttpClientRequest,
    private readonly fiber: AnyFiber
  ) {}

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

  /** Whether no attempt can follow one that may have been processed. */
  private isLast(): boolean {
    return this.oneShot || !(this.retriesMaybe || isRepeatable(this.request))
  }

  /** Limits an attempt to its timeout, and, if calls are propagated, to the deadline. */
  private timely<E, R>(send: Send<E, R>): Send<E | HttpClientError, R> {
    return Effect.contextWith((context: Context.Context<R>) => {
      const { attemptTimeoutMillis, lastTimeoutMillis } = this.settings
      const timeoutMillis = this.isLast() ? lastTimeoutMillis : attemptTimeoutMillis
      const millis = Math.min(timeoutMillis ?? Infinity, remainingIn(context as AnyContext))
      this.untilMillis = Math.min(this.deadlineAtMillis, now() + millis)
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
      this.held = isHttpClientError(failure) ? failure.response : undefined
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
  private get reuse(): boolean {
    const { reuseConnection } = this.settings
    const throttled = Option.isSome(this.info) && this.info.value.throttling
    return reuseConnection === "always" || (reuseConnection === "throttling" && throttled)
  }

  /** A retry is decided: the response of the previous attempt is no longer needed. */
  readonly retrying = (): Effect.Effect<void> => this.dropped(this.reuse)

  /** The end of the call: the last response is the result, as without retries; an error stays unchanged. */
  complete<E>(failure: E | HttpClientResponse): Effect.Effect<HttpClientResponse, E> {
    const { response } = this
    const returned = response !== undefined && failure === response
      ? Effect.succeed(response)
      : Effect.fail(failure as E)
    // The schedule itself has failed.
    if (failure !== this.failure) return Effect.andThen(this.abandoned(), returned)
    return this.bodyForbids ? Effect.andThen(warnOneShot, returned) : returned
  }

  /** The call ends without an outcome: the response it holds will not be read. */
  abandoned(): Effect.Effect<void> {
    return this.dropped(false)
  }

  private dropped(reuse: boolean): Effect.Effect<void> {
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

/** A client whose every send tells the server about its call, if calls are propagated. */
export const withPropagatedHeaders = <E, R>(self: HttpClient.HttpClient.With<E, R>): HttpClient.HttpClient.With<E, R> =>
  HttpClient.makeWith(
    (prepared) =>
      Effect.flatMap(prepared, (request) =>
        Effect.withFiber(({ context }) => {
          const headers = headersIn(context)
          return self.postprocess(Effect.succeed(headers === undefined ? request : setHeaders(request, headers)))
        })),
    self.preprocess
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
export const retrying =
  (settings: Settings, { services, ...policy }: Compiled) =>
  <E, R>(send: Send<E, R>, request: HttpClientRequest): Send<any, any> => {
    const own: Compiled = { ...policy, services: undefined }
    const sent: Send<any, any> = Effect.withFiber((fiber) => {
      const compiled = own.live?.(environmentOf(fiber.context).services) ?? own
      const call = new HttpCall(settings, compiled, request, fiber)
      const retried: Send<any, any> = loop(call.attempt(send), compiled)
      return retried.pipe(
        Effect.provideService(CurrentClassifier, call.facts),
        Effect.provideService(CurrentObserver, combine(call.observer, { onRetry: () => call.retrying() })),
        Effect.catch((failure) => call.complete(failure)),
        Effect.onError((cause) => Cause.hasFails(cause) ? Effect.void : call.abandoned())
      )
    })
    return forResource(settings, request, (services?.retried(undefined, () => sent) ?? sent) as Send<any, any>)
  }

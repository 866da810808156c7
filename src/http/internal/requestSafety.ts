import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { constFalse, constTrue } from "effect/Function"
import * as HttpBody from "effect/http/HttpBody"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as Predicate from "effect/Predicate"
import * as Stream from "effect/Stream"
import { also, callable, checksOf, rejectUnknown } from "../../internal/checks.ts"
import { isReader, isRepeatable as isShown, keyHeader } from "../../internal/classification/wire.ts"
import { look } from "../../internal/tryGet.ts"

const repeatableBodies = new WeakSet<HttpBody.HttpBody>()

/**
 * Declares that a stream body can be sent again: running its stream again gives the same bytes, as with
 * `HttpBody.file`.
 *
 * **Gotchas**
 *
 * It marks this one body object. Functions that make a new one, such as `HttpClientRequest.compressBody`, lose the
 * mark.
 *
 * @category bodies
 * @since 0.1.0
 */
export const repeatableBody = (body: HttpBody.Stream): HttpBody.Stream => {
  const repeatable = HttpBody.stream(body.stream, body.contentType, body.contentLength)
  repeatableBodies.add(repeatable)
  return repeatable
}

/**
 * A body whose bytes are produced again for every attempt.
 *
 * **Details**
 *
 * `make` is called, or run if it is an effect, when an attempt begins to send the body. To clients without retries it
 * is an ordinary stream body.
 *
 * @category bodies
 * @since 0.1.0
 */
export const bodyFactory = <E = never>(
  make: (() => Stream.Stream<Uint8Array, E>) | Effect.Effect<Stream.Stream<Uint8Array, E>, E>,
  options: {
    /** Default `"application/octet-stream"`. */
    readonly contentType?: string | undefined
    /** In bytes, if known. */
    readonly contentLength?: number | undefined
  } = {}
): HttpBody.Stream => {
  const check = checksOf("RetryHttp.bodyFactory", options)
  also(check, "contentType", "contentLength")
  const { contentLength, contentType } = rejectUnknown(check, options, options)
  return repeatableBody(
    HttpBody.stream(Effect.isEffect(make) ? Stream.unwrap(make) : Stream.suspend(make), contentType, contentLength)
  )
}

/** Whether the first attempt may consume the body. */
export const isOneShot = (body: HttpBody.HttpBody): boolean =>
  body._tag === "Stream" ? !repeatableBodies.has(body) : body._tag === "Raw" && isReader(body.body)

/**
 * The source of idempotency keys.
 *
 * @category models
 * @since 0.1.0
 */
export interface IdempotencyKeyOptions {
  /** Makes the key of a call. Default: a random UUID from the platform's `crypto`. */
  readonly make?: ((request: HttpClientRequest.HttpClientRequest) => string) | undefined
}

/**
 * Gives every POST and PATCH, and every other request that is not idempotent, an `Idempotency-Key`: one UUID per call,
 * which all its retries keep. A request that already has a key keeps it.
 *
 * **Details**
 *
 * With a key, a request is sent again after any transient failure. A 409 then means that an earlier send is still in
 * progress: it is retried. A 422 means that the key was used for another request: it is the result.
 *
 * Apply it below or above `retry`: a request is prepared once per call.
 *
 * **Gotchas**
 *
 * Only for servers that support the header. With any other, a POST sent twice is processed twice, key or not.
 *
 * **Example** (An order is placed once)
 *
 * ```ts
 * const client = (yield* HttpClient.HttpClient).pipe(
 *   RetryHttp.idempotencyKey(),
 *   RetryHttp.retry(awsStandard2026)
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const idempotencyKey = (
  options: IdempotencyKeyOptions = {}
): <E, R>(self: HttpClient.HttpClient.With<E, R>) => HttpClient.HttpClient.With<E, R> => {
  const check = checksOf("RetryHttp.idempotencyKey", options)
  const make = callable(check, "make", options.make ?? (() => crypto.randomUUID()))
  rejectUnknown(check, options)
  return HttpClient.mapRequest((request) =>
    isShown(request) ? request : HttpClientRequest.setHeader(request, keyHeader, make(request))
  )
}

/** Tells Envoy and Linkerd not to retry. Source: Envoy, "HTTP header manipulation"; Linkerd, "Retries". */
export const withoutProxyRetries: <E, R>(self: HttpClient.HttpClient.With<E, R>) => HttpClient.HttpClient.With<E, R> =
  HttpClient.mapRequest(HttpClientRequest.setHeaders({ "x-envoy-max-retries": "0", "l5d-retry-limit": "0" }))

/**
 * Which requests can be sent twice although their method does not say so. Default: none. A predicate that throws marks
 * nothing.
 *
 * **Example** (A search that is a POST)
 *
 * ```ts
 * program.pipe(Effect.provideService(
 *   RetryHttp.CurrentRepeatable,
 *   (request) => request.url.endsWith("/_search")
 * ))
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export const CurrentRepeatable = Context.Reference<Predicate.Predicate<HttpClientRequest.HttpClientRequest>>(
  "effect-retry/RetryHttp/CurrentRepeatable",
  { defaultValue: () => constFalse }
)

/**
 * Declares that every request of the effect can be sent twice, whatever its method.
 *
 * @category combinators
 * @since 0.1.0
 */
export const repeatable: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R> = Effect.provideService(
  CurrentRepeatable,
  constTrue
)

/** Whether the request can safely be sent twice. */
export const isRepeatable = (request: HttpClientRequest.HttpClientRequest): boolean =>
  isShown(request) || look(() => Fiber.getCurrent()?.getRef(CurrentRepeatable)(request)) === true

import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import { callable, checksOf, rejectUnknown } from "../../internal/checks.ts"
import { isRepeatable, keyHeader } from "../../internal/classification/wire.ts"

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
    isRepeatable(request)
      ? request
      : HttpClientRequest.setHeader(request, keyHeader, make(request))
  )
}

/** Tells Envoy and Linkerd not to retry. Source: Envoy, "HTTP header manipulation"; Linkerd, "Retries". */
export const withoutProxyRetries: <E, R>(
  self: HttpClient.HttpClient.With<E, R>
) => HttpClient.HttpClient.With<E, R> = HttpClient.mapRequest(
  HttpClientRequest.setHeaders({ "x-envoy-max-retries": "0", "l5d-retry-limit": "0" })
)

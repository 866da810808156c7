import * as Effect from "effect/Effect"
import * as HttpBody from "effect/http/HttpBody"
import * as Stream from "effect/Stream"
import { also, checksOf, rejectUnknown } from "../../internal/checks.ts"
import { isReader } from "../../internal/classification/wire.ts"

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
  make:
    | (() => Stream.Stream<Uint8Array, E>)
    | Effect.Effect<Stream.Stream<Uint8Array, E>, E>,
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

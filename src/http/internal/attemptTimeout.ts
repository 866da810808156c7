import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import { HttpClientError, TransportError } from "effect/http/HttpClientError"
import { empty, type HttpClientRequest, makeWith } from "effect/http/HttpClientRequest"
import { look } from "../../internal/tryGet.ts"

/**
 * The destination of a request: scheme, host and path. For a relative URL, only the path; for an invalid one, an empty
 * string.
 */
const placeOf = (url: string): string => {
  const absolute = look(() => new URL(url))
  const path = (absolute ?? look(() => new URL(url, "http://relative")))?.pathname
  const origin = absolute === undefined || absolute.host === "" ? "" : `${absolute.protocol}//${absolute.host}`
  return origin + (path?.startsWith("/") ? path : "")
}

/** The method and destination of a request: no user, no query, no headers, no body. */
const outlineOf = ({ method, url }: HttpClientRequest): HttpClientRequest =>
  makeWith(method, placeOf(url), empty.urlParams, empty.hash, empty.headers, empty.body)

/** The same errors, with the request as sent. */
const wholes = new WeakMap<object, HttpClientError>()

/**
 * The error of an attempt that got no response in time, or had no time to be sent. It shows only the outline of the
 * request.
 */
export const timedOut = (request: HttpClientRequest, millis: number): HttpClientError => {
  const description = millis === 0
    ? "the deadline of the call has passed: it was not sent"
    : `no response within ${Duration.format(Duration.millis(millis))}`
  const cause = new Cause.TimeoutError(description)
  const errorOf = (request: HttpClientRequest) =>
    new HttpClientError({ reason: new TransportError({ request, cause, description }) })
  const error = errorOf(outlineOf(request))
  wholes.set(error, errorOf(request))
  return error
}

/** A failure with the whole request, for deciding whether a retry is safe. */
export const wholeOf = (failure: unknown): unknown =>
  typeof failure === "object" && failure !== null ? wholes.get(failure) ?? failure : failure

import * as Duration from "effect/Duration"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as Hint from "../../internal/classification/hint.ts"
import type { Answer } from "../../internal/classification/wire.ts"
import { get } from "../../internal/tryGet.ts"

/**
 * Reads how long a response asks the client to wait; `undefined` if it says nothing meaningful.
 *
 * `nowMillis` is the current time in epoch milliseconds, for headers that name a point in time: from the response's
 * `Date` header, else from the wall clock. It is NaN outside a fiber. A reader that throws counts as saying nothing.
 *
 * @category models
 * @since 0.1.0
 */
export type HintReader = (response: HttpClientResponse, nowMillis: number) => Duration.Input | undefined

/** The longest hint: a day. */
const maxHintMillis = 86_400_000

/** The answer in a response. */
export const answerOf = (response: HttpClientResponse): Answer & Hint.Headed => ({
  status: response.status,
  header: (name) => response.headers[name],
  bodies: () => [get(response, "data")]
})

const ofResponse = (reader: Hint.Reader): HintReader => (response, nowMillis) => reader(answerOf(response), nowMillis)

/**
 * Reads a header in whole milliseconds.
 *
 * @category hints
 * @since 0.1.0
 */
export const hintMillis = (name: string): HintReader => ofResponse(Hint.named(name, Hint.millis))

/**
 * Reads a header in whole seconds.
 *
 * @category hints
 * @since 0.1.0
 */
export const hintSeconds = (name: string): HintReader => ofResponse(Hint.named(name, Hint.seconds))

/**
 * Reads a header like `Retry-After`: whole seconds or an HTTP date. A date in the past says nothing.
 *
 * @category hints
 * @since 0.1.0
 */
export const hintRetryAfter = (name: string): HintReader => ofResponse(Hint.named(name, Hint.secondsOrDate))

/**
 * Reads a header like `RateLimit-Reset`: the seconds until the window ends, or, from 1,000,000,000 up, its end in epoch
 * seconds, or, from 1,000,000,000,000 up, in epoch milliseconds; a time such as `6m0s`; or an RFC 3339 date. Services
 * send it with every response, so it is a hint only on a 429, or if the response says that nothing remains: in
 * `ratelimit-remaining`, `x-ratelimit-remaining`, or the header of the same name with `remaining` in place of `reset`.
 *
 * @category hints
 * @since 0.1.0
 */
export const hintReset = (name: string): HintReader => ofResponse(Hint.resets(name))

/**
 * The default readers, in this order: `grpc-retry-pushback-ms`, `x-amz-retry-after`, `retry-after-ms` and
 * `x-ms-retry-after-ms` in milliseconds, `retry-after` and `x-ratelimit-retry-after` in seconds or as a date, `ratelimit` as
 * drafted by the IETF, `ratelimit-reset`, `x-ratelimit-reset`, `x-rate-limit-reset`, the reset headers of OpenAI and
 * Anthropic, then the `retryDelay` of Google's `RetryInfo` in a JSON body. The first that says something decides.
 *
 * @category hints
 * @since 0.1.0
 */
export const defaultHints: ReadonlyArray<HintReader> = /* @__PURE__ */ Hint.readers.map(ofResponse)

/** The duration, unless a user's reader returned an invalid one. */
const valid = (hint: Duration.Input | undefined): Duration.Duration | undefined => {
  if (hint === undefined || (typeof hint === "number" && !(hint >= 0))) return undefined
  const duration = Option.getOrUndefined(Duration.fromInput(hint))
  if (duration === undefined || Duration.isNegative(duration)) return undefined
  return Duration.min(duration, Duration.millis(maxHintMillis))
}

/** The hint of the first reader that finds one; at most a day. Never throws. */
export const readHint = (
  readers: ReadonlyArray<HintReader>,
  response: HttpClientResponse,
  wallMillis: number
): Duration.Duration | undefined => {
  const nowMillis = Hint.presentMillis(answerOf(response), wallMillis)
  for (const reader of readers) {
    try {
      const hint = valid(reader(response, nowMillis))
      if (hint !== undefined) return hint
    } catch {
      // The next reader may know.
    }
  }
  return undefined
}

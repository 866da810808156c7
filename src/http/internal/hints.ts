import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Headers from "effect/http/Headers"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as Result from "effect/Result"

/**
 * Reads how long a response asks the client to wait; `undefined` when it says nothing that makes sense.
 *
 * `nowMillis` is the present in epoch milliseconds, for headers that name a point in time: what the response's `Date`
 * header says, else the wall clock. It is NaN outside of a fiber. A reader that throws counts as one that says nothing.
 *
 * @category models
 * @since 0.1.0
 */
export type HintReader = (response: HttpClientResponse, nowMillis: number) => Duration.Input | undefined

/** A header longer than this is not read. */
const maxHeaderLength = 256

/** No hint is longer: a day. */
const maxHintMillis = 86_400_000

const digits = /^\d+$/
const outerSpace = /^[ \t]+|[ \t]+$/g

/** The values of a header, which several headers of one name and proxies join with commas. */
const valuesOf = ({ headers }: HttpClientResponse, name: string): ReadonlyArray<string> => {
  const header: unknown = headers[name]
  if (typeof header !== "string" || header.length > maxHeaderLength) return []
  return header.split(",").map((value) => value.replace(outerSpace, ""))
}

/** Only digits are a number: no sign, no fraction, no exponent. */
const wholeNumber = (value: string): number | undefined => digits.test(value) ? Number(value) : undefined

/** The longest of these waits, since waiting too long is the smaller risk. */
const longest = (millis: ReadonlyArray<number | undefined>): number | undefined => {
  const known = millis.filter((wait) => wait !== undefined && wait >= 0)
  return known.length === 0 ? undefined : Math.max(...known as ReadonlyArray<number>)
}

/**
 * Reads a header that counts milliseconds, in whole numbers.
 *
 * @category hints
 * @since 0.1.0
 */
export const hintMillis = (name: string): HintReader => (response) => longest(valuesOf(response, name).map(wholeNumber))

/**
 * Reads a header that counts seconds, in whole numbers.
 *
 * @category hints
 * @since 0.1.0
 */
export const hintSeconds = (name: string): HintReader => (response) =>
  longest(valuesOf(response, name).map((value) => digits.test(value) ? Number(value) * 1000 : undefined))

const dayName = /^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*$/i

/** An HTTP date has a comma after the day of the week: puts the two halves together again. */
const rejoined = (values: ReadonlyArray<string>): ReadonlyArray<string> =>
  values.flatMap((value, index) => {
    if (dayName.test(value)) return []
    const before = values[index - 1]
    return [before !== undefined && dayName.test(before) ? `${before}, ${value}` : value]
  })

/**
 * Reads a header like `Retry-After`: whole seconds or an HTTP date, with Effect's parser. A date in the past says
 * nothing.
 *
 * @category hints
 * @since 0.1.0
 */
export const hintRetryAfter = (name: string): HintReader => (response, nowMillis) =>
  longest(
    rejoined(valuesOf(response, name)).map((value) => {
      const parsed = Headers.parseRetryAfter(value)
      // The parser takes more for white space than HTTP does.
      if (Result.isFailure(parsed) || value !== value.trim()) return undefined
      const { success } = parsed
      if (success._tag === "Duration") return Duration.toMillis(success.duration)
      const wait = DateTime.toEpochMillis(success.dateTime) - nowMillis
      return wait > 0 ? wait : undefined
    })
  )

const isRemaining = (response: HttpClientResponse): boolean =>
  ["ratelimit-remaining", "x-ratelimit-remaining"].some((name) => valuesOf(response, name).includes("0"))

/**
 * Reads a header like `RateLimit-Reset`: the seconds until the window ends, or, from 1,000,000,000 on, when it ends in
 * epoch seconds, or, from 1,000,000,000,000 on, in epoch milliseconds. Services send it with every response, so it is a
 * hint only on a 429, or where the response says that nothing remains.
 *
 * @category hints
 * @since 0.1.0
 */
export const hintReset = (name: string): HintReader => (response, nowMillis) => {
  if (response.status !== 429 && !isRemaining(response)) return undefined
  return longest(
    valuesOf(response, name).map((value) => {
      const reset = wholeNumber(value)
      if (reset === undefined || reset < 1e9) return reset === undefined ? undefined : reset * 1000
      return (reset < 1e12 ? reset * 1000 : reset) - nowMillis
    })
  )
}

/**
 * The readers that are asked by default, in this order: `x-amz-retry-after`, `retry-after-ms` and `x-ms-retry-after-ms`
 * in milliseconds, `retry-after` in seconds or as a date, `ratelimit-reset`, `x-ratelimit-reset`. The first that says
 * something decides.
 *
 * @category hints
 * @since 0.1.0
 */
export const defaultHints: ReadonlyArray<HintReader> = [
  hintMillis("x-amz-retry-after"),
  hintMillis("retry-after-ms"),
  hintMillis("x-ms-retry-after-ms"),
  hintRetryAfter("retry-after"),
  hintReset("ratelimit-reset"),
  hintReset("x-ratelimit-reset")
]

const serverMillis = (response: HttpClientResponse, wallMillis: number): number => {
  const date: unknown = response.headers["date"]
  if (typeof date !== "string" || date.length > maxHeaderLength) return wallMillis
  const parsed = Headers.parseHttpDate(date)
  return Result.isSuccess(parsed) ? DateTime.toEpochMillis(parsed.success) : wallMillis
}

/** The duration, unless a reader of the user made something that is none. */
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
  for (const reader of readers) {
    try {
      const hint = valid(reader(response, serverMillis(response, wallMillis)))
      if (hint !== undefined) return hint
    } catch {
      // The next reader may know.
    }
  }
  return undefined
}

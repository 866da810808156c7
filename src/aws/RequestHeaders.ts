/**
 * The headers by which AWS services tell retries from new calls: `amz-sdk-invocation-id` and `amz-sdk-request`.
 *
 * The id belongs to a call, the rest to a send. So there are two parts: {@link withInvocation} goes around the whole
 * call, including its retries, and makes the id; {@link headers} runs in each attempt, and learns its number from the
 * schedule or the `RetryStrategy.run` around it. An attempt outside of a call does not compile.
 *
 * The AWS SDKs send these headers themselves. This is for clients that talk to AWS without one.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import { checksOf } from "../internal/checks.ts"
import { flag, inCode, optional, positiveDuration, validOptions, word } from "../internal/options.ts"
import { remainingIn } from "../internal/propagation.ts"
import { short } from "../internal/tryGet.ts"
import { isRetryPolicy, limits, type RetryPolicy } from "../RetryPolicy.ts"

/**
 * What the attempts of one call share.
 *
 * @category models
 * @since 0.1.0
 */
export interface Call {
  /** A UUID of version 4. */
  readonly id: string
  /**
   * The metadata of the schedule around the call, which does not count the call's attempts.
   *
   * @internal
   */
  readonly around: Schedule.Metadata
  /**
   * The server's clock minus ours.
   *
   * @internal
   */
  skewMillis: number | undefined
}

/**
 * The call that an attempt belongs to: see {@link withInvocation}.
 *
 * @category services
 * @since 0.1.0
 */
export class Invocation extends Context.Service<Invocation, Call>()("effect-retry/aws/RequestHeaders/Invocation") {}

/**
 * The headers of one send.
 *
 * @category models
 * @since 0.1.0
 */
export interface RequestHeaders {
  readonly "amz-sdk-invocation-id": string
  readonly "amz-sdk-request": string
}

/**
 * Options of the headers of a send.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The policy of the call, or its attempts: a whole number of at least 1. `Infinity` omits `max`. */
  readonly maxAttempts: number | RetryPolicy<never, unknown, unknown>
  /** Whether the first attempt has `max` too: `false` as in botocore before behavior 2.1. Default `true`. */
  readonly maxInFirst?: boolean | undefined
  /**
   * The number of the attempt, 1 for the first: for your own loop, such as one that asks a `RetryStrategy` itself.
   * Default: counted by the schedule or the `RetryStrategy.run` around the attempt.
   */
  readonly attempt?: number | undefined
  /** How long the client waits for a response, above 0. Default: there is no `ttl`. */
  readonly readTimeout?: Duration.Input | undefined
  /** The position of the `ttl`: `"first"` as in botocore and Rust, `"last"` as in Go. Default `"first"`. */
  readonly ttlPosition?: "first" | "last" | undefined
}

/** 32 random bits, as 8 hexadecimal digits. */
const randomWord = (random: Random.Random): string =>
  ((random.nextDoubleUnsafe() * 0x1_0000_0000) >>> 0).toString(16).padStart(8, "0")

/** A UUID of version 4 and of the variant of RFC 9562. */
const uuid = (random: Random.Random): string => {
  const [a, b, c, d] = [randomWord(random), randomWord(random), randomWord(random), randomWord(random)]
  const variant = "89ab"[Number.parseInt(c[0]!, 16) & 3]
  return `${a}-${b.slice(0, 4)}-4${b.slice(5)}-${variant}${c.slice(1, 4)}-${c.slice(4)}${d}`
}

/**
 * Makes an effect one call: all attempts inside share one invocation id, and every run gets another.
 *
 * **Details**
 *
 * The id comes from Effect's `Random`, so a seed repeats it. It is not a secret. A call inside an attempt of another
 * has its own id if it is wrapped too, and the other's if it is not.
 *
 * **Gotchas**
 *
 * Wrap it around the retry, not inside: inside the retried effect every attempt would be its own call.
 *
 * **Example** (A call of two layers)
 *
 * ```ts
 * const getItem = RequestHeaders.headers({ maxAttempts: policy }).pipe(
 *   Effect.flatMap(send),
 *   withRetry(policy),
 *   RequestHeaders.withInvocation
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const withInvocation = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, Exclude<R, Invocation>> =>
  Effect.withFiber((fiber) =>
    Effect.provideService(self, Invocation, {
      id: uuid(fiber.getRef(Random.Random)),
      around: fiber.getRef(Schedule.CurrentMetadata),
      skewMillis: undefined
    })
  )

/** A date in HTTP's format. */
const httpDate = /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/

/**
 * Records the `date` header of a response, success or failure: it shows how far the server's clock is ahead of ours,
 * which the `ttl` of the next attempt needs.
 *
 * **Details**
 *
 * Run it when the response arrives, inside the attempt. The last date counts, within the call only. Anything but a date
 * of the form `Sat, 01 Jun 2019 00:00:00 GMT` is ignored.
 *
 * @category combinators
 * @since 0.1.0
 */
export const observeDate = (date: string | undefined): Effect.Effect<void, never, Invocation> =>
  Effect.gen(function*() {
    const call = yield* Invocation
    const server = httpDate.test(short(date)) ? DateTime.make(date as string) : Option.none()
    const now = yield* Clock.currentTimeMillis
    if (Option.isSome(server)) call.skewMillis = DateTime.toEpochMillis(server.value) - now
  })

const optionRecord = {
  maxAttempts: inCode,
  maxInFirst: flag(true),
  attempt: inCode,
  readTimeout: optional(positiveDuration()),
  ttlPosition: word("first", "last")
}

/** The second as `YYYYMMDDTHHMMSSZ`; `undefined` if the time has no such form. */
const basicForm = (epochMillis: number): string | undefined => {
  const iso = Option.getOrUndefined(Option.map(DateTime.make(epochMillis), DateTime.formatIso))
  return iso?.length === 24 ? iso.replace(/[-:]|\.\d{3}/g, "") : undefined
}

/**
 * The headers of this send; run it inside the attempt they belong to.
 *
 * **Details**
 *
 * `amz-sdk-invocation-id` is that of the call. `amz-sdk-request` is `attempt=N; max=M`, with `ttl=YYYYMMDDTHHMMSSZ; `
 * before it once a `ttl` is known: it needs a `readTimeout` and a date from the server (see {@link observeDate}), so
 * the first attempt has none. `N` counts from 1. `ttl = now + readTimeout + skew`, in UTC, in whole seconds, rounded
 * down. With `RetryPropagation`, the time left until the call's deadline bounds the `readTimeout`, or replaces it if
 * there is none.
 *
 * Throws `InvalidOption` for options out of range. Never fails, never waits. Source: botocore `retries/standard.py` of
 * behavior 2.1 (before it, the first attempt had no `max`: see `maxInFirst`); smithy-typescript `retryMiddleware.ts`;
 * aws-sdk-go-v2 `aws/retry/middleware.go`.
 *
 * **Gotchas**
 *
 * A `Schedule` inside the attempt, such as that of an `Effect.repeat`, has its own count: run this outside it. So do
 * retries within retries: the innermost one counts. If one invocation encloses both, each retry of the outer one starts
 * again with `attempt=1`, and the service sees the same number of the same call twice. Enclose only the inner one in
 * {@link withInvocation}, or count across both and pass the `attempt`.
 *
 * In your own loop around the attempt nothing counts, and every send is the first: pass the `attempt`.
 *
 * @category getters
 * @since 0.1.0
 */
export const headers = (options: Options): Effect.Effect<RequestHeaders, never, Invocation> => {
  const check = checksOf("RequestHeaders.headers", options)
  const { maxInFirst, readTimeoutMillis = Infinity, ttlPosition } = validOptions(check, optionRecord, options)
  const { attempt, maxAttempts } = options
  if (attempt !== undefined && !(Number.isSafeInteger(attempt) && attempt >= 1)) {
    check.reject("attempt", attempt, "a whole number of at least 1")
  }
  const max = isRetryPolicy(maxAttempts)
    ? limits(maxAttempts).maxAttempts
    : check.count("maxAttempts", maxAttempts as number, 1)
  return Effect.gen(function*() {
    const { around, id, skewMillis } = yield* Invocation
    const metadata = yield* Schedule.CurrentMetadata
    const number = attempt ?? (metadata === around ? 1 : metadata.attempt + 1)
    const hasMax = max < Infinity && (maxInFirst || number > 1)
    const waitMillis = Math.min(readTimeoutMillis, remainingIn(yield* Effect.context<never>()))
    const now = yield* Clock.currentTimeMillis
    const ttl = skewMillis === undefined ? undefined : basicForm(now + waitMillis + skewMillis)
    const parts = [`attempt=${number}`, ...hasMax ? [`max=${max}`] : []]
    if (ttl !== undefined) parts.splice(ttlPosition === "first" ? 0 : parts.length, 0, `ttl=${ttl}`)
    return { "amz-sdk-invocation-id": id, "amz-sdk-request": parts.join("; ") }
  })
}

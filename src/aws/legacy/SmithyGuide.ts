/**
 * Smithy's retry guide: its example strategy, and the traits with which a model says what its errors are.
 *
 * The example is a retry strategy like any other ({@link layer}), but it is not the standard mode of AWS, and no
 * policy: {@link make} lists where it goes its own way. The loop that runs on it is `RetryStrategy.run`.
 *
 * **Source**: Smithy documentation, "Retrying Requests" (client guidance) of March 2026, and the specification of the
 * `retryable`, `error` and `httpError` traits.
 *
 * @since 0.1.0
 */

import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { checks } from "../../internal/checks.ts"
import { exponential, type Failing, fullJitter, maxDelayMillis } from "../../internal/engine/delay.ts"
import type { Parts } from "../../internal/engine/parts.ts"
import * as Traits from "../../internal/facts/traits.ts"
import { faultOf } from "../../RetryInfo.ts"
import type { RetryQuota } from "../../RetryQuota.ts"
import { fromParts, RetryStrategy, type Service } from "../../RetryStrategy.ts"

/**
 * The trait `@retryable`: annotations for a `Schema.TaggedError` class whose errors are safe to retry.
 *
 * **Details**
 *
 * Traits combine by being spread. An error with them carries facts that every policy reads: with `retryable` it is safe
 * to retry; without it the fault of {@link error} decides, as in the guide: a server's is `"Maybe"` safe, a client's is
 * not, a modelled 429 included; without a fault the status of {@link httpError} decides, as it does for any HTTP error. A
 * `retryAfter` field of the error is the hint. `RetryInfo.annotation` on the same class takes precedence.
 *
 * **Example** (A modelled error)
 *
 * ```ts
 * class Throttled extends Schema.TaggedError<Throttled>()("Throttled", { table: Schema.String }, {
 *   ...SmithyGuide.retryable({ throttling: true }),
 *   ...SmithyGuide.error("client"),
 *   ...SmithyGuide.httpError(429)
 * }) {}
 * ```
 *
 * @category annotations
 * @since 0.1.0
 */
export const retryable = (options?: {
  /** The service asked for less traffic. Default `false`. */
  readonly throttling?: boolean | undefined
}): { readonly [Traits.retryableKey]: { readonly throttling: boolean } } => ({
  [Traits.retryableKey]: { throttling: options?.throttling === true }
})

/**
 * The trait `@error`: annotations that say whose fault the errors of a `Schema.TaggedError` class are. Throws
 * `InvalidOption` for anything but `"client"` and `"server"`. See {@link retryable}.
 *
 * @category annotations
 * @since 0.1.0
 */
export const error = (fault: "client" | "server"): { readonly [Traits.errorKey]: "client" | "server" } => ({
  [Traits.errorKey]: checks("SmithyGuide.error").oneOf("fault", fault, ["client", "server"])
})

/**
 * The trait `@httpError`: annotations with the HTTP status of the errors of a `Schema.TaggedError` class, a whole number
 * from 400 to 599. Throws `InvalidOption` for any other. See {@link retryable}.
 *
 * @category annotations
 * @since 0.1.0
 */
export const httpError = (status: number): { readonly [Traits.httpErrorKey]: number } => {
  const check = checks("SmithyGuide.httpError")
  if (!Number.isInteger(status)) check.reject("status", status, "a whole number from 400 to 599")
  return { [Traits.httpErrorKey]: check.between("status", status, 400, 599) }
}

/** The guide compares a counter that begins at 0 with 5, so there are six attempts. */
const maxAttempts = 6
const baseMillis = 50
const throttlingBaseMillis = 1000

const hintMillis = ({ info }: Failing): number =>
  info?.retryAfter === undefined ? 0 : Math.min(Duration.toMillis(info.retryAfter), maxDelayMillis)

/** The guide's example as a policy, with a refund rule of its own. */
const parts: Parts = {
  nodes: [["SmithyGuide.make"]],
  source: (failing) => {
    const ceiling = exponential(failing.info?.throttling ? throttlingBaseMillis : baseMillis, 2)(failing.attempt)
    return Math.max(fullJitter(ceiling, failing.random.nextDoubleUnsafe()), hintMillis(failing))
  },
  adjusts: [],
  maxAttempts,
  attemptsFirst: true,
  whileRetryable: ({ error, info }) =>
    info === undefined ? Option.getOrUndefined(faultOf(error)) === "server" : info.safety !== "No",
  deadlineMillis: Infinity,
  outermostOnly: false,
  quota: { cost: 14, timeoutCost: 14, throttlingCost: 5, longPolling: false },
  adaptive: false,
  refund: 1
}

/**
 * Makes the example strategy of the guide, on the `RetryQuota` of the context.
 *
 * **Details**
 *
 * Where it goes its own way, set beside retry behaviour 2.1 of AWS (`awsStandard2026`):
 *
 * | | the guide's example | AWS |
 * | --- | --- | --- |
 * | attempts | 6: a counter from 0 is compared with 5 | 3 |
 * | checked first | the attempts | whether the error is retryable |
 * | retried | all that is not known to be unsafe (`"Maybe"` too), and unknown failures of a server | what is safe |
 * | server's hint | `max(delay, hint)`, however long | followed within `[delay, delay + 5 seconds]` |
 * | a success | puts 1 in, after retries too, if that fits whole | gives back what its retry took, or puts 1 in |
 *
 * The rest is the same: a retry takes 14, after a throttle 5; the delay is `b * x * 2^(n - 1)`, `b` uniform in
 * `[0, 1)`, `x` 1 second after a throttle, else 50 milliseconds (the cap of 20 seconds is above the fifth ceiling, the
 * last); a long-polling call that the quota refuses is held back for its delay. Delays are rounded up to whole milliseconds (the guide cuts them); a retry that never
 * leaves gives its tokens back (the guide has no interruption); `"No"` is a veto also for a server's fault, as the
 * guide's comment has it (its code falls through).
 *
 * The `successIncrement`, `firstAttemptCost` and `whenExhausted` of the quota do not apply, nor does a limiter; only a
 * quota in Redis that waits has a retry wait.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make: Effect.Effect<Service, never, RetryQuota> = Effect.contextWith((
  context: Context.Context<RetryQuota>
) => Effect.sync(() => fromParts(parts, context as Context.Context<never>)))

/**
 * A layer with the example strategy of the guide: see {@link make}.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<RetryStrategy, never, RetryQuota> = Layer.effect(RetryStrategy, make)

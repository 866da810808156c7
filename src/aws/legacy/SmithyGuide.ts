/**
 * Smithy's retry guide: its example strategy, and the traits with which a model describes its errors.
 *
 * The example is a retry strategy like any other ({@link layer}), but it is neither the standard mode of AWS nor a
 * policy: {@link make} lists the differences. Run it with `RetryStrategy.run`.
 *
 * **Source**: Smithy documentation, "Retrying Requests" (client guidance) of February and of April 2026, and the
 * specification of the `retryable`, `error` and `httpError` traits.
 *
 * @since 0.1.0
 */

import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { type Compiled, free } from "../../engine/compiled.ts"
import { exponential, fullJitter } from "../../engine/delay.ts"
import { withServices } from "../../engine/policy/providedPolicy.ts"
import { checks, checksOf } from "../../internal/checks.ts"
import * as Traits from "../../internal/classification/smithyTraits.ts"
import { amount, count, flag, positiveDuration, validOptions } from "../../internal/options.ts"
import { faultOf } from "../../RetryInfo.ts"
import type { RetryQuota } from "../../RetryQuota.ts"
import { hintMillis } from "../internal/classifiers.ts"
import { type Service, Strategy } from "../internal/tokenStrategy.ts"
import { RetryStrategy } from "../RetryStrategy.ts"

/**
 * The trait `@retryable`: annotations for a `Schema.TaggedError` class whose errors are safe to retry.
 *
 * **Details**
 *
 * Combine traits by spreading them. An error with them carries facts that every policy reads: with `retryable` it is
 * safe to retry; without it the fault of {@link error} decides, as in the guide: a server error is `"Maybe"` safe, a
 * client error is not, including a modeled 429; without a fault the status of {@link httpError} decides, as for any
 * HTTP error. A `retryAfter` field of the error is the hint. `RetryInfo.annotation` on the same class takes precedence.
 *
 * **Example** (A modeled error)
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
export const retryable = (
  options: {
    /** The service asked for less traffic. Default `false`. */
    readonly throttling?: boolean | undefined
  } = {}
): { readonly [Traits.retryableKey]: { readonly throttling: boolean } } => ({
  [Traits.retryableKey]: validOptions(checksOf("SmithyGuide.retryable", options), { throttling: flag() }, options)
})

/**
 * The trait `@error`: annotations that say who is at fault for the errors of a `Schema.TaggedError` class. Throws
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

/**
 * Options of the example strategy. Defaults are those of {@link april2026}.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Tokens that a retry takes: a finite number of at least 0. */
  readonly retryCost?: number | undefined
  /** Tokens that a retry takes after a timeout. */
  readonly timeoutCost?: number | undefined
  /** Tokens that a retry takes after a throttle, even if it was also a timeout. */
  readonly throttlingCost?: number | undefined
  /** Tokens that any success adds, if they fit completely: a finite number of at least 0. */
  readonly successRefund?: number | undefined
  /** Attempts, the first included: a whole number of at least 1, or `Infinity`. */
  readonly maxAttempts?: number | undefined
  /** The bound on `2^(n - 1)` seconds: a finite duration above 0. */
  readonly maxBackoff?: Duration.Input | undefined
  /** The factor of the ceiling unless the failure is a throttle: a finite number of at least 0. */
  readonly scale?: number | undefined
}

/**
 * The example of the first edition of the guide, of February 2026: a timeout costs more, and a throttle is a failure
 * like any other.
 *
 * **Source**: smithy-lang/smithy 3e6cf641a6, `docs/source-2.0/guides/client-guidance/retries.md`. It compares a counter
 * starting at 0 with 5, so there are six attempts.
 *
 * @category constants
 * @since 0.1.0
 */
export const february2026 = {
  retryCost: 5,
  timeoutCost: 10,
  throttlingCost: 5,
  successRefund: 1,
  maxAttempts: 6,
  maxBackoff: "20 seconds",
  scale: 1
} as const satisfies Options

/**
 * The example of the edition of April 2026, with the costs and delays of retry behavior 2.1.
 *
 * **Source**: smithy-lang/smithy 524ebb79de, the same file.
 *
 * @category constants
 * @since 0.1.0
 */
export const april2026 = {
  ...february2026,
  retryCost: 14,
  timeoutCost: 14,
  scale: 0.05
} as const satisfies Options

const optionRecord = {
  retryCost: amount(april2026.retryCost),
  timeoutCost: amount(april2026.timeoutCost),
  throttlingCost: amount(april2026.throttlingCost),
  successRefund: amount(april2026.successRefund),
  maxAttempts: count(1, april2026.maxAttempts),
  maxBackoff: positiveDuration(20_000),
  scale: amount(april2026.scale)
}

/** The guide's example as a policy, with its own refund rule. */
const compiledOf = (options: Options): Compiled => {
  const check = checksOf("SmithyGuide.make", options)
  const { maxAttempts, maxBackoffMillis, scale, ...valid } = validOptions(check, optionRecord, options)
  const { retryCost: cost, successRefund: refund, throttlingCost, timeoutCost } = valid
  const seconds = exponential(1000, 2)
  return {
    ...free,
    nodes: [["SmithyGuide.make", check.input]],
    source: (failing) => {
      const ceiling = Math.min(seconds(failing.attempt), maxBackoffMillis)
      const scaled = failing.info?.throttling ? ceiling : ceiling * scale
      return Math.max(fullJitter(scaled, failing.random.nextDoubleUnsafe()), hintMillis(failing))
    },
    maxAttempts,
    attemptsFirst: true,
    whileRetryable: ({ error, info }) =>
      info === undefined ? Option.getOrUndefined(faultOf(error)) === "server" : info.safety !== "No",
    quota: { cost, timeoutCost, throttlingCost, longPolling: false },
    refund
  }
}

/**
 * Makes the example strategy of the guide, using the `RetryQuota` of the context. Throws `InvalidOption` when an option
 * is impossible.
 *
 * **Details**
 *
 * The guide has had two examples, and says of both that their values should ideally be configurable. Compared with
 * retry behavior 2.1 of AWS (`awsStandard2026`):
 *
 * | | {@link february2026} | {@link april2026}, the default | AWS 2.1 |
 * | --- | --- | --- | --- |
 * | a retry takes | 5, after a timeout 10 | 14, after a throttle 5 | 14, after a throttle 5 |
 * | a success returns | 1, after retries too, if it fits completely | the same | what its retry took, else 1 |
 * | delay before retry `n` | `b * min(2^(n - 1), 20)` s | the same, times 0.05 unless throttled | `b * min(x * 2^(n -
 * 1), 20 s)`, `x` 50 ms, throttled 1 s |
 * | attempts | 6: a counter from 0 is compared with 5 | 6 | 3 |
 * | checked first | the attempts | the attempts | whether the error is retryable |
 * | retried | everything not known to be unsafe (`"Maybe"` too), and unknown server failures | the same | what is safe
 * |
 * | server's hint | `max(delay, hint)`, however long | the same | followed within `[delay, delay + 5 seconds]` |
 * | long polls that the quota refuses | not in the guide: as given to `RetryStrategy.run` | held back for their delay |
 * held back for their delay |
 *
 * `b` is uniform in `[0, 1)`. Delays are rounded up to whole milliseconds (the guide rounds down); a retry that is
 * never sent returns its tokens (the guide has no interruption); `"No"` is a veto even for a server fault, as the
 * guide's comment says (its code falls through).
 *
 * The `successIncrement`, `firstAttemptCost` and `onExceeded` of the quota do not apply, nor does a limiter; a retry
 * waits only for a quota in Redis that waits.
 *
 * **Example** (The first edition, with a smaller cost)
 *
 * ```ts
 * const clientLayer = SmithyGuide.layer({ ...SmithyGuide.february2026, retryCost: 3 }).pipe(
 *   Layer.provideMerge(RetryQuota.layer())
 * )
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options = {}): Effect.Effect<Service, never, RetryQuota> =>
  withServices(compiledOf(options), (compiled, context) => new Strategy(compiled, context))

/**
 * A layer with the example strategy of the guide: see {@link make}.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<RetryStrategy, never, RetryQuota> =>
  Layer.effect(RetryStrategy, make(options))

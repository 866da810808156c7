/**
 * The contract of a gate: it holds back any send, first or retry.
 *
 * Before a send, each gate in the context is asked in the order of its `order`. It lets the send pass, makes it wait,
 * or refuses it: then nothing was sent. After the send, every gate it passed sees the outcome, once.
 * `AdaptiveRateLimiter` is such a gate; your own gate works exactly like it. Without gates in the context, a send pays
 * nothing for them.
 *
 * `SendGateSuite` of `effect-retry/testing` checks a gate against this contract.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Layer from "effect/Layer"
import { isRefusal, type Refusal, Refused } from "./internal/refused.ts"
import { Result } from "./internal/requiresEffect4.ts"
import { asGate } from "./internal/shared.ts"
import type { RetryInfo } from "./RetryInfo.ts"

/**
 * A send, as a gate sees it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Send {
  /** The number of the attempt: 1 for the first. */
  readonly attempt: number
  /**
   * The class of the failure that it retries, as `RetryObserver.failureClass` has it; `undefined` for a first send and
   * for a hedge, whose `attempt` is above 1, too.
   */
  readonly failureClass?: "throttling" | "timeout" | "transient" | "unknown" | undefined
  /**
   * When the gate was asked, in milliseconds of the monotonic clock; the same after the gate has made the send wait.
   * Reading it costs more than most gates do: read it only if you need it.
   */
  readonly nowMillis: number
  /** The services of the caller. */
  readonly context: Context.Context<never>
  /** Lets the send pass. From now on the library settles or cancels the pass in every case. */
  hold(pass: Pass): void
}

/**
 * How a send ended: with a success, with a failure, or without an outcome (a defect, an interruption).
 *
 * @category models
 * @since 0.1.0
 */
export interface Outcome {
  readonly _tag: "Success" | "Failure" | "Unknown"
  /** The value of a success; `undefined` otherwise, and where it is unknown, as in a retry strategy of the AWS SDK. */
  readonly value: unknown
  /** The error of a failure. */
  readonly error: unknown
  /** The facts of a failure, according to the classifier in force. Computed when first read. */
  readonly info: RetryInfo | undefined
  /** Milliseconds of the monotonic clock, read on first use. */
  readonly nowMillis: number
}

/**
 * A send that has passed. The library calls exactly one of the two, once. Neither should throw: the other gates are
 * notified all the same, and the call ends as it would, but the gate may have lost count. A gate without per-send state
 * can hand out the same pass to all.
 *
 * @category models
 * @since 0.1.0
 */
export interface Pass {
  /** The send was made, and ended like this. */
  readonly settle: (outcome: Outcome) => void
  /** The send was never made: undoes what the pass changed. */
  readonly cancel: () => void
}

/**
 * A number of a gate that metrics show: `RetryMetrics` has a gauge of it for each resource.
 *
 * @category models
 * @since 0.1.0
 */
export interface Gauge {
  /** Its name, as Prometheus has it: `"retry_concurrency_limit"`. */
  readonly name: string
  readonly description: string
  /** Its value at a moment of the monotonic clock. It answers within one step; where it throws, nothing is shown. */
  readonly read: (gate: any, nowMillis: number) => number
}

/**
 * A gate.
 *
 * @category models
 * @since 0.1.0
 */
export interface SendGate<out E = unknown> {
  /** Its name for observers: one of a few names, such as `"ConcurrencyLimiter"`. */
  readonly name?: string | undefined
  /** Its position among the gates: lower numbers are asked first. */
  readonly order: number
  /**
   * Asks to send. To let it pass, call `send.hold` with a pass: either immediately, returning nothing, or later, from
   * the returned effect, in the same step in which the pass is taken. An effect that fails refuses the send: a call whose
   * first send it is fails with its error, which {@link Refused} marks; a retry ends the call with its own error. An interrupted effect has taken nothing. It must not throw.
   */
  readonly enter: (send: Send) => void | Effect.Effect<void, E>
  /**
   * Whether the resource it guards is short of capacity at this moment of the monotonic clock. If so, optional sends
   * such as hedges are not made. It answers within one step; if it throws, it is not. Default: it never is.
   */
  readonly isStrained?: ((nowMillis: number) => boolean) | undefined
  /** What metrics show of it, read once for each gate. Default: nothing. */
  readonly gauges?: ReadonlyArray<Gauge> | undefined
}

/**
 * Declares the service of a gate, so that attempts find it in their context. Gates of different services merge in any
 * order.
 *
 * **Example** (Your own gate)
 *
 * ```ts
 * class Maintenance extends SendGate.Service<Maintenance>()("app/Maintenance") {}
 * const pass: SendGate.Pass = { settle: () => undefined, cancel: () => undefined }
 * const over = SendGate.layer(Maintenance, { order: 50, enter: (send) => send.hold(pass) })
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export const Service = <Self, E = never>() => <const Key extends string>(key: Key) =>
  asGate(Context.Service<Self, SendGate<E>>()(key), (gate) => gate)

/**
 * A layer with a gate.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <Self, E>(tag: Context.Key<Self, SendGate<E>>, gate: SendGate<E>): Layer.Layer<Self> =>
  Layer.succeed(tag, gate)

/**
 * Marks an error as the refusal of a gate: the send was never made, and no policy retries it.
 *
 * **Example** (The error of a gate)
 *
 * ```ts
 * class UnderMaintenance extends Data.TaggedError("UnderMaintenance")<{}> {
 *   readonly [SendGate.Refused] = true
 * }
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export { type Refusal, Refused }

/**
 * Catches the refusal of any gate and of the quota: also of those that are provided elsewhere, whose errors the type of
 * the call does not name. All other errors stay.
 *
 * **Example** (A fallback for a send that was not made)
 *
 * ```ts
 * const order = callDynamo.pipe(
 *   withRetry(awsStandard),
 *   SendGate.catchRefusal(({ retryAfter }) => Effect.succeed(`busy, try again in ${retryAfter ?? "a while"}`))
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const catchRefusal: {
  <A2, E2, R2>(
    f: (refusal: Refusal) => Effect.Effect<A2, E2, R2>
  ): <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A | A2, Exclude<E, Refusal> | E2, R | R2>
  <A, E, R, A2, E2, R2>(
    self: Effect.Effect<A, E, R>,
    f: (refusal: Refusal) => Effect.Effect<A2, E2, R2>
  ): Effect.Effect<A | A2, Exclude<E, Refusal> | E2, R | R2>
} = dual(
  2,
  (self: Effect.Effect<unknown, unknown, unknown>, f: (refusal: Refusal) => Effect.Effect<unknown, unknown, unknown>) =>
    Effect.catchFilter(self, (error) => isRefusal(error) ? Result.succeed<Refusal>(error) : Result.fail(error), f)
)

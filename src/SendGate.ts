/**
 * The contract of a gate: it holds back any send, first or retry.
 *
 * Before a send, each gate in the context is asked in the order of its `order`. It lets the send pass, makes it wait, or
 * refuses it: then nothing was sent. After the send, every gate that it passed sees the outcome, once.
 * `AdaptiveRateLimiter` is such a gate; a gate of your own works exactly like it. A send pays nothing for gates where
 * the context has none.
 *
 * `SendGateSuite` of `effect-retry/testing` checks a gate against this contract.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Refused } from "./internal/refused.ts"
import { shared } from "./internal/shared.ts"
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
  /** Milliseconds of the monotonic clock. Reading it costs more than most gates do: read it only if you need it. */
  readonly nowMillis: number
  /** The services of the caller. */
  readonly context: Context.Context<never>
  /** Lets the send pass. From now on the library settles or cancels the pass, whatever happens. */
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
  /** What a success gave; `undefined` otherwise, and where nobody knows it, as in a retry strategy of the AWS SDK. */
  readonly value: unknown
  /** The error of a failure. */
  readonly error: unknown
  /** The facts of a failure, as the classifier in force knows them. Worked out when it is first read. */
  readonly info: RetryInfo | undefined
  /** Milliseconds of the monotonic clock: read when it is first asked for. */
  readonly nowMillis: number
}

/**
 * A send has passed. The library calls exactly one of the two, once. A gate without state for each send can hand out the
 * same pass to all.
 *
 * @category models
 * @since 0.1.0
 */
export interface Pass {
  /** The send was made, and ended so. */
  readonly settle: (outcome: Outcome) => void
  /** The send was never made: undoes what passing has changed. */
  readonly cancel: () => void
}

/**
 * A gate.
 *
 * @category models
 * @since 0.1.0
 */
export interface SendGate<out E = unknown> {
  /** What observers know it by: one of a few names, such as `"ConcurrencyLimiter"`. */
  readonly name?: string | undefined
  /** Where it stands among the gates: those with a lower number are asked first. */
  readonly order: number
  /**
   * Asks to send. Lets it pass by calling `send.hold` with a pass: immediately, and returns nothing; or later, from the
   * effect that it returns, in the very step in which the pass is taken. An effect that fails refuses the send: mark its
   * error with {@link Refused}. An effect that is interrupted has taken nothing. It must not throw.
   */
  readonly enter: (send: Send) => void | Effect.Effect<void, E>
  /**
   * Whether what it guards is short of something at this moment of the monotonic clock. Then no send is made that its call
   * can do without, such as a hedge. It must not throw, and says so within one step. Default: it never is.
   */
  readonly isStrained?: ((nowMillis: number) => boolean) | undefined
}

/**
 * Declares the service of a gate, so that attempts find it in their context. Gates of different services merge in any
 * order.
 *
 * **Example** (A gate of your own)
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
export const Service = <Self, E = never>() => <const Key extends string>(key: Key) => {
  register(key, (gate) => gate)
  return Context.Service<Self, SendGate<E>>()(key)
}

/**
 * A layer with a gate.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <Self, E>(tag: Context.Key<Self, SendGate<E>>, gate: SendGate<E>): Layer.Layer<Self> =>
  Layer.succeed(tag, gate)

/**
 * Lets attempts find the gate of a service that is more than a gate.
 *
 * @internal
 */
export const register = (key: string, gateOf: (service: any) => SendGate | undefined): string => {
  if (shared.gates.every(({ tag }) => tag.key !== key)) {
    shared.gates.push({ tag: Context.Service<any, any>(key), gateOf })
  }
  return key
}

/**
 * Marks an error as the refusal of a gate: the send was never made. No policy retries it.
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
export { Refused }

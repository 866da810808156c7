/**
 * `RetryPropagation` for Effect RPC, over any protocol: HTTP, sockets, workers.
 *
 * Over HTTP, `RetryPropagation.server` and a client of `RetryHttp` do the same for all traffic.
 *
 * The package's index does not export this module: import `effect-retry/RetryPropagationRpc`.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as RpcClient from "effect/rpc/RpcClient"
import * as RpcMiddleware from "effect/rpc/RpcMiddleware"
import * as Schema from "effect/Schema"
import type { Criticality } from "../Criticality.ts"
import { headersIn } from "../internal/propagation.ts"
import * as RetryInfo from "../RetryInfo.ts"
import { serving } from "./internal/serverPropagation.ts"
import type { ServerOptions } from "./RetryPropagation.ts"

/**
 * The deadline of the caller has passed: it no longer waits. It is never retried.
 *
 * @category errors
 * @since 0.1.0
 */
export class RpcDeadlineExceeded extends Schema.TaggedError<RpcDeadlineExceeded>()("RpcDeadlineExceeded", {
  /** How long the work took until then, in milliseconds; 0 if the deadline had passed before it began. */
  afterMillis: Schema.Finite
}) {
  get [RetryInfo.TypeId](): RetryInfo.RetryInfo {
    return RetryInfo.notRetryable
  }
}

/**
 * The server has no slot for the procedure: it was not begun. A sheddable one is never retried.
 *
 * @category errors
 * @since 0.1.0
 */
export class RpcOverloaded extends Schema.TaggedError<RpcOverloaded>()("RpcOverloaded", {
  criticality: Schema.Literals(["sheddable", "normal", "critical"])
}) {
  get [RetryInfo.TypeId](): RetryInfo.RetryInfo {
    return this.criticality === "sheddable" ? RetryInfo.notRetryable : RetryInfo.transient
  }
  override get message(): string {
    return `the server has no slot for a ${this.criticality} call`
  }
}

/**
 * The middleware, for a group of procedures: `RpcGroup.make(...).middleware(Propagation)`. Its server is {@link layer};
 * a procedure whose deadline passes fails with {@link RpcDeadlineExceeded}, one that finds no slot with
 * {@link RpcOverloaded}.
 *
 * @category services
 * @since 0.1.0
 */
export class Propagation extends RpcMiddleware.Service<Propagation>()(
  "effect-retry/http/RetryPropagationRpc/Propagation",
  { error: Schema.Union([RpcDeadlineExceeded, RpcOverloaded]) }
) {}

/**
 * The server side: like `RetryPropagation.server`, using the headers of a procedure call. Throws `InvalidOption` for an
 * invalid header name, and for a limiter that is none.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: ServerOptions = {}): Layer.Layer<Propagation> => {
  const serve = serving("RetryPropagationRpc.layer", options)
  const answers = {
    shed: (criticality: Criticality) => Effect.fail(new RpcOverloaded({ criticality })),
    late: (afterMillis: number) => Effect.fail(new RpcDeadlineExceeded({ afterMillis }))
  }
  return Layer.succeed(Propagation, (effect, { headers }) => serve(effect, headers, answers) as typeof effect)
}

/**
 * The client side: a procedure call tells the server about its call. Apply it to the effect that is retried, under
 * `RetryPropagation.layer`.
 *
 * **Example** (A procedure that is retried)
 *
 * ```ts
 * const order = call.pipe(RetryPropagationRpc.withPropagation, withRetry(awsStandard))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const withPropagation = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.withFiber(({ context }) => {
    const headers = headersIn(context)
    return headers === undefined ? self : RpcClient.withHeaders(self, headers)
  })

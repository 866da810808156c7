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
import { headersIn } from "../internal/onward.ts"
import * as RetryInfo from "../RetryInfo.ts"
import { namesOf, working } from "./internal/journey.ts"
import type { HeaderNames } from "./RetryPropagation.ts"

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
 * The middleware, for a group of procedures: `RpcGroup.make(...).middleware(Propagation)`. Its server is {@link layer};
 * a procedure whose deadline passes fails with {@link RpcDeadlineExceeded}.
 *
 * @category services
 * @since 0.1.0
 */
export class Propagation extends RpcMiddleware.Service<Propagation>()(
  "effect-retry/http/RetryPropagationRpc/Propagation",
  { error: RpcDeadlineExceeded }
) {}

/**
 * The server side: like `RetryPropagation.server`, using the headers of a procedure call. Throws `InvalidOption` for an
 * invalid header name.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (headers: HeaderNames = {}): Layer.Layer<Propagation> => {
  const names = namesOf(headers, "RetryPropagationRpc.layer")
  return Layer.succeed(
    Propagation,
    (effect, { headers }) =>
      working(
        effect,
        headers,
        names,
        (afterMillis) => Effect.fail(new RpcDeadlineExceeded({ afterMillis }))
      ) as typeof effect
  )
}

/**
 * The client side: a procedure call tells the server about its call. Apply it to the effect that is retried, under
 * `RetryPropagation.layer`.
 *
 * **Example** (A procedure that is retried)
 *
 * ```ts
 * const order = call.pipe(RetryPropagationRpc.telling, withRetry(awsStandard))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const telling = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.withFiber(({ context }) => {
    const headers = headersIn(context)
    return headers === undefined ? self : RpcClient.withHeaders(self, headers)
  })

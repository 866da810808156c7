/**
 * The procedures of `rpc-errors.ts`: what client and server share, and
 * the server.
 */
import { type Effect, Schema } from "effect"
import { awsAdaptive, withRetry } from "effect-retry"
import * as Schemas from "effect-retry/schemas"
import { Rpc, RpcGroup } from "effect/rpc"

/** It may fail with the refusal of the server's limiter. */
export const Orders = RpcGroup.make(
  Rpc.make("Latest", {
    success: Schema.String,
    error: Schemas.RateLimitExceeded
  })
)

/** In the client, `Effect.catchTag` catches the refusal. */
export const handlers = (send: Effect.Effect<string>) =>
  Orders.toLayer({ Latest: () => send.pipe(withRetry(awsAdaptive)) })

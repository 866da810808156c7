import * as Effect from "effect/Effect"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Stream from "effect/Stream"
import { closeOf } from "./bufferedBody.ts"

/** A longer body is not read just to reuse its connection. */
const maxDrainedBytes = 65_536

const maxDrainedMillis = 1000

/** Reads the body to its end, so that the connection can be reused, unless it is too long for that. */
const drained = (response: HttpClientResponse): Effect.Effect<unknown, unknown> => {
  let bytes = 0
  const bounded = Stream.takeWhile(response.stream, (chunk) => (bytes += chunk.length) <= maxDrainedBytes)
  return Effect.timeoutOption(Stream.runDrain(bounded), maxDrainedMillis)
}

/** Opens the body and closes it unread, which ends the request. */
const aborted = (response: HttpClientResponse): Effect.Effect<unknown> =>
  Effect.ignoreCause(Effect.scoped(Effect.suspend(() => Stream.toPull(response.stream))))

/**
 * Discards a response that will not be read. This runs alongside the call and never delays it: a body that closes
 * slowly must not delay an interruption.
 */
export const discard = (response: HttpClientResponse, reuse: boolean): Effect.Effect<void> => {
  const close = closeOf(response)
  const closed = close ?? aborted(response)
  const gone = reuse && close === undefined
    ? Effect.catchCause(Effect.suspend(() => drained(response)), () => closed)
    : closed
  return Effect.asVoid(Effect.forkDetach(gone, { startImmediately: true, uninterruptible: true }))
}

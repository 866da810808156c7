import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import { CurrentSend } from "../../../Hedge.ts"
import * as RequestHeaders from "../../RequestHeaders.ts"
import type { Place } from "./once.ts"

/** A send, as the next one of its call has to know it. */
export interface Sent {
  readonly operation: Function
  readonly call: RequestHeaders.Call
  readonly attempt: number
  readonly delayMillis: number
}

/** The sends that errors came of: the retry of a send finds its error in the metadata of its schedule. */
const sends = new WeakMap<object, Sent>()

/** Remembers the send that an error came of. */
export const remember = (error: unknown, sent: Sent): void => {
  if (typeof error === "object" && error !== null) sends.set(error, sent)
}

const previousOf = ({ input }: Schedule.Metadata, operation: Function): Sent | undefined => {
  const sent = typeof input === "object" && input !== null ? sends.get(input) : undefined
  return sent?.operation === operation ? sent : undefined
}

const fresh = RequestHeaders.withInvocation(RequestHeaders.Invocation)

/** Which send of which call this is: the retry that runs, or the first of a call. */
export const current = (operation: Function): Effect.Effect<Sent> =>
  Effect.gen(function*() {
    const metadata = yield* Schedule.CurrentMetadata
    const enclosing = Option.getOrUndefined(yield* Effect.serviceOption(RequestHeaders.Invocation))
    const previous = previousOf(metadata, operation)
    const call = enclosing ?? previous?.call ?? (yield* fresh)
    const hedge = (yield* CurrentSend) ?? 0
    const counted = enclosing === undefined || metadata === enclosing.around ? 1 : metadata.attempt + 1
    return {
      operation,
      call,
      attempt: (previous === undefined ? counted : previous.attempt + 1) + hedge,
      delayMillis: previous === undefined ? 0 : previous.delayMillis + Duration.toMillis(metadata.duration)
    }
  })

/** What the send says of its place in the call. */
export const placeOf = (
  { attempt, call, delayMillis }: Sent,
  maxAttempts: RequestHeaders.Options["maxAttempts"]
): Effect.Effect<Place> =>
  Effect.map(
    Effect.provideService(RequestHeaders.headers({ maxAttempts, attempt }), RequestHeaders.Invocation, call),
    (headers) => ({ headers: { ...headers }, attempts: attempt, totalRetryDelay: delayMillis })
  )

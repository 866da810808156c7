import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import { CurrentSend } from "../../../hedge/Hedge.ts"
import { headerIn } from "../../../internal/classification/wire.ts"
import { get } from "../../../internal/tryGet.ts"
import * as RequestHeaders from "../../RequestHeaders.ts"
import type { SdkError } from "./errorTypes.ts"
import type { Place } from "./sendOnce.ts"

/** What the next send of a call has to know about this one. */
export interface Sent {
  readonly operation: Function
  readonly call: RequestHeaders.Call
  readonly attempt: number
  readonly delayMillis: number
}

/** The sends that caused errors: the retry of a send finds its error in the metadata of its schedule. */
const sends = new WeakMap<object, Sent>()

/** Remembers the send that caused an error, and the server's time, if the error has it. */
export const remember = (error: SdkError, sent: Sent, nowMillis: number): void => {
  sends.set(error, sent)
  const headers = get(get(error, "$response"), "headers")
  if (typeof headers === "object" && headers !== null) {
    RequestHeaders.noteDate(sent.call, headerIn(headers)("date"), nowMillis)
  }
}

/** The number of the last send of the hedged call that failed with this error: a retry counts on from it. */
export const countedTo = (error: SdkError, attempt: number): void => {
  const sent = sends.get(error)
  if (sent !== undefined) sends.set(error, { ...sent, attempt })
}

const previousOf = ({ input }: Schedule.Metadata, operation: Function): Sent | undefined => {
  const sent = typeof input === "object" && input !== null ? sends.get(input) : undefined
  return sent?.operation === operation ? sent : undefined
}

const fresh = RequestHeaders.withInvocation(RequestHeaders.Invocation)

/** Which send of which call this is: the current retry, or the first of a call. */
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

/** The place of the send in its call. */
export const placeOf = (
  { attempt, call, delayMillis }: Sent,
  maxAttempts: RequestHeaders.Options["maxAttempts"]
): Effect.Effect<Place> =>
  Effect.map(
    Effect.provideService(RequestHeaders.headers({ maxAttempts, attempt }), RequestHeaders.Invocation, call),
    (headers) => ({ headers: { ...headers }, attempts: attempt, totalRetryDelay: delayMillis })
  )

import * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import { Refused } from "../../internal/refused.ts"
import { get } from "../../internal/tryGet.ts"
import { Stop, stopReasons } from "../../RetryDecision.ts"
import * as RetryInfo from "../../RetryInfo.ts"

/** A send that was never made, in a form that can be stored. */
export class NotSent extends Schema.TaggedError<NotSent>("effect-retry/RetryWorkflow/NotSent")("NotSent", {
  /** The tag of the refusal, such as `"RateLimitExceeded"`. */
  refusal: Schema.String,
  /** When to come back, if the refusal says so. */
  retryAfter: Schema.optionalKey(Schema.Duration),
  message: Schema.String
}) {
  readonly [Refused] = true
  get [RetryInfo.TypeId](): RetryInfo.RetryInfo {
    return RetryInfo.notRetryable
  }
}

/** A refusal in its stored form. */
export const notSent = (refusal: unknown): NotSent => {
  const tag = get(refusal, "_tag")
  const retryAfter = get(refusal, "retryAfter")
  return new NotSent({
    refusal: typeof tag === "string" ? tag : "refused",
    message: String(get(refusal, "message") ?? "the send was refused"),
    ...(Duration.isDuration(retryAfter) ? { retryAfter } : {})
  })
}

const Facts = Schema.Struct({
  safety: Schema.Literals(["Yes", "No", "Maybe"]),
  throttling: Schema.Boolean,
  timeout: Schema.Boolean,
  fault: Schema.Literals(["client", "server", "other"]),
  retryAfterMillis: Schema.optionalKey(Schema.Finite)
})

type Facts = typeof Facts.Type

/** The end of retrying, as stored. */
const StoredStop = Schema.Struct({
  reason: Schema.Literals(stopReasons),
  attempts: Schema.Int,
  gate: Schema.optionalKey(Schema.String),
  info: Schema.optionalKey(Facts)
})

type StoredStop = typeof StoredStop.Type

/** The outcome of a send and the decision about it: one value, so that nothing can come between the two. */
export const Sent = <Success extends Schema.Constraint, Error extends Schema.Constraint>(
  success: Success,
  error: Error
) =>
  Schema.Union([
    Schema.TaggedStruct("Succeeded", { value: success }),
    Schema.TaggedStruct("Retried", {
      error,
      /** When it failed, in milliseconds since 1970. */
      atMillis: Schema.Finite,
      delayMillis: Schema.Finite,
      cost: Schema.Finite,
      info: Schema.optionalKey(Facts),
      /** The state of the backoff after it. */
      step: Schema.Int,
      previousMillis: Schema.Finite
    }),
    Schema.TaggedStruct("Stopped", { error, stop: StoredStop }),
    Schema.TaggedStruct("Refused", { error: NotSent, stop: StoredStop })
  ])

/** {@link Sent} of any activity. */
export type AnySent = ReturnType<typeof Sent<Schema.Unknown, Schema.Unknown>>["Type"]

/** A send that failed and is retried. */
export type Retried = Extract<AnySent, { readonly _tag: "Retried" }>

/** The stored form of facts. */
export const storedInfo = ({ fault, retryAfter, safety, throttling, timeout }: RetryInfo.RetryInfo): Facts => {
  const facts = { safety, throttling, timeout, fault }
  return retryAfter === undefined ? facts : { ...facts, retryAfterMillis: Duration.toMillis(retryAfter) }
}

/** The facts, restored. */
export const infoOf = (facts: Facts | undefined): RetryInfo.RetryInfo | undefined =>
  facts && RetryInfo.make({ ...facts, retryAfter: facts.retryAfterMillis })

/** The stored form of the end of retrying. */
export const storedStopOf = ({ attempts, gate, info, reason }: Stop): StoredStop => ({
  reason,
  attempts,
  ...(gate && { gate }),
  ...(info && { info: storedInfo(info) })
})

/** The end of retrying, restored. */
export const stopOf = ({ attempts, gate, info, reason }: StoredStop): Stop =>
  new Stop({ attempt: attempts, gate, info: infoOf(info) }, reason)

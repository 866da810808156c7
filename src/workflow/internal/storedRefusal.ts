import * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import { Refused } from "../../internal/refused.ts"
import { get } from "../../internal/tryGet.ts"
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

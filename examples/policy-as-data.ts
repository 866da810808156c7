/**
 * A policy as data: printed, compared, kept as JSON, read from configuration.
 *
 * A policy knows the steps that it is made of. Its text is the code that makes it, its JSON says the same in the same
 * words, and so do the scenarios of the simulator and the command line. Reading JSON and schemas are modules of their
 * own, so that they are only in the bundle of an app that uses them.
 */
import { Config, Effect, Equal, Schema } from "effect"
import { awsStandard, Backoff, RetryPolicy } from "effect-retry"
import * as RetryPolicyJson from "effect-retry/RetryPolicyJson"
import * as RetryPolicySchema from "effect-retry/RetryPolicySchema"

export const policy = Backoff.exponential({ base: "100 millis" }).pipe(
  RetryPolicy.capped("5 seconds"),
  RetryPolicy.jittered("full"),
  RetryPolicy.maxAttempts(4),
  RetryPolicy.whileRetryable
)

/** The code that makes it: for a log line, or a test that pins what a release retries with. */
export const text = String(policy)

/** The same as JSON. */
export const json = JSON.stringify(policy)

/** Policies are equal when they are made of the same steps, however their options are spelled. */
export const isStandard = (policy: unknown) => Equal.equals(policy, awsStandard)

/** A policy of a file. What is wrong in it is told with its path, such as `steps[1].capped`. */
export const fromFile = Effect.fn("fromFile")(function*(text: string) {
  const json = yield* Schema.decodeEffect(Schema.fromJsonString(Schema.Unknown))(text)
  return yield* RetryPolicyJson.fromJson(json)
})

/** A function has no JSON. It shows as its name, by which it is found again. */
const patience = ({ attempt }: RetryPolicy.Failure) => attempt * 100

export const ownDelays = RetryPolicy.fromDelay(patience).pipe(RetryPolicy.maxAttempts(3))

export const again = RetryPolicyJson.fromJson(ownDelays.toJSON(), { functions: { patience } })

/** A policy among other settings of a program. */
const Settings = Schema.fromJsonString(Schema.Struct({
  url: Schema.String,
  retry: RetryPolicySchema.RetryPolicyFromJson
}))

export const settings = Config.schema(Settings, "ORDERS")

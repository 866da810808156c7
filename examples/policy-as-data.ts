/**
 * A policy as data: printed, compared, stored as JSON, read from
 * configuration.
 *
 * A policy knows the steps it is made of. Its text is the code that
 * makes it, its JSON says the same in the same words, and so do the
 * scenarios of the simulator and the command line. Reading JSON and
 * schemas are separate modules, so only apps that use them bundle them.
 */
import { Config, Effect, Equal, Schema } from "effect"
import { awsStandard, Backoff, RetryPolicy } from "effect-retry"
import * as RetryPolicyJson from "effect-retry/RetryPolicyJson"
import * as RetryPolicySchema from "effect-retry/RetryPolicySchema"
import { main, print } from "./support/program.ts"

export const policy = Backoff.exponential("100 millis").pipe(
  RetryPolicy.capped("5 seconds"),
  RetryPolicy.jittered("full"),
  RetryPolicy.maxAttempts(4),
  RetryPolicy.whileRetryable
)

/**
 * The code that makes it: for a log line, or a test that pins the
 * retries of a release.
 */
export const text = String(policy)

/** The same as JSON. */
export const json = JSON.stringify(policy)

/**
 * Policies are equal if they are made of the same steps, however their
 * options are spelled.
 */
export const isStandard = (policy: unknown) =>
  Equal.equals(policy, awsStandard)

/**
 * A policy from a file. An error names the path of the problem, such as
 * `steps[1].capped`.
 */
export const fromFile = Effect.fn("fromFile")(function*(text: string) {
  const json = yield* Schema.decodeEffect(
    Schema.fromJsonString(Schema.Unknown)
  )(text)
  return yield* RetryPolicyJson.fromJson(json)
})

/**
 * A function has no JSON. It shows as its name, by which it is found
 * again.
 */
const patience = ({ attempt }: RetryPolicy.Failure) => attempt * 100

export const ownDelays = RetryPolicy.fromDelay(patience).pipe(
  RetryPolicy.maxAttempts(3)
)

export const again = RetryPolicyJson.fromJson(ownDelays.toJSON(), {
  functions: { patience }
})

/** A policy among other settings of a program. */
const Settings = Schema.fromJsonString(Schema.Struct({
  url: Schema.String,
  retry: RetryPolicySchema.RetryPolicyFromJson
}))

export const settings = Config.schema(Settings, "ORDERS")

main(
  import.meta.url,
  print(text),
  print(json),
  print(
    `Is it the standard mode of AWS? ${
      isStandard(policy) ? "yes" : "no"
    }`
  ),
  print(ownDelays),
  Effect.flatMap(
    fromFile(json),
    (read) =>
      print(`read from JSON, equal: ${Equal.equals(read, policy)}`)
  ),
  Effect.flatMap(
    Effect.flip(fromFile(json.replace("5 seconds", "5 parsecs"))),
    print
  )
)

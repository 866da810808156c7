/**
 * Schemas of policies: for settings with `Config.schema`, for requests, for the JSON Schema of an editor.
 *
 * The package's index does not export this module: import `effect-retry/RetryPolicySchema`. `effect-retry/RetryPolicyJson`
 * reads the same JSON without a Schema.
 *
 * **Example** (A policy among other settings)
 *
 * ```ts
 * const Settings = Schema.Struct({ url: Schema.String, retry: RetryPolicySchema.RetryPolicyFromJson })
 *
 * const settings = Schema.decodeUnknownEffect(Settings)({
 *   url: "https://orders",
 *   retry: { steps: [{ fixed: { delay: "1 second" } }, { maxAttempts: 4 }, "whileRetryable"] }
 * })
 * ```
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { Refusal } from "../internal/invalidField.ts"
import { isRetryPolicy, type Json as LooseJson } from "../RetryPolicy.ts"
import { read } from "./internal/policyReader.ts"
import * as Fields from "./internal/schemaFields.ts"
import type { Policy } from "./RetryPolicyJson.ts"

/**
 * A duration of a policy: milliseconds, or a string such as `"250ms"` or `"20 seconds"`.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Time = Fields.Time

const Jitter = Schema.Union([
  Schema.Literals(["none", "full", "equal"]),
  Schema.Struct({ proportional: Fields.described(Fields.Share, "The share by which a delay varies to either side.") })
]).annotate({ identifier: "Jitter", title: "How a delay is randomized" })

const spreading = {
  cap: Fields.maybe(Time, "The longest delay, not below the base. Default: none."),
  jitter: Fields.maybe(Jitter, "How the delay is randomized. Default \"none\".")
}

const base = Fields.described(Time, "The first delay.")

const JavaBackoff = Schema.Struct({
  baseDelay: Fields.described(Time, "The first ceiling."),
  maxBackoff: Fields.described(Time, "The highest ceiling.")
})

/** An object with one of the keys. */
const oneKey = <S extends Schema.Struct.Fields>(fields: S, what: string) =>
  Schema.Struct(fields).check(
    Schema.isMinProperties(1, Fields.expecting(`one ${what}`)),
    Schema.isMaxProperties(1, Fields.expecting(`one ${what}`))
  )

/** Another policy. */
const Another = Schema.suspend((): Schema.Codec<LooseJson> => Json as any)

const Several = Schema.NonEmptyArray(Another)

const Source = Schema.Union([
  Schema.Literals(["immediate", "never"]),
  oneKey({
    exponential: Fields.nested("base * factor^(n - 1) before retry n.", {
      base,
      factor: Fields.maybe(Fields.Factor, "The growth factor of the delay. Default 2."),
      ...spreading
    }),
    linear: Fields.nested("base + increment * (n - 1) before retry n.", {
      base,
      increment: Fields.maybe(Time, "How much longer each further delay is. Default: the base."),
      ...spreading
    }),
    fibonacci: Fields.nested("1, 1, 2, 3, 5, ... times the base.", { base, ...spreading }),
    fixed: Fields.nested("The same delay before every retry.", {
      delay: Fields.described(Time, "The delay."),
      jitter: spreading.jitter
    }),
    decorrelated: Fields.nested("Between the base and three times the previous delay.", {
      base: Fields.described(Time, "The least delay."),
      cap: Fields.described(Time, "The longest delay, not below the base."),
      additive: Fields.maybe(Schema.Boolean, "Adds the random part to the base. Default false.")
    }),
    "JavaV1.exponentialBackoff": Fields.maybe(JavaBackoff, "The delays of the AWS SDK for Java 1.x, without jitter."),
    "JavaV1.fullJitterBackoff": Fields.maybe(
      JavaBackoff,
      "The delays of the AWS SDK for Java 1.x after ordinary failures."
    ),
    "JavaV1.equalJitterBackoff": Fields.maybe(JavaBackoff, "The delays of the AWS SDK for Java 1.x after throttles."),
    "JavaScriptV2.backoff": Fields.nested("The delays of the AWS SDK for JavaScript 2.x.", {
      base: Fields.maybe(Time, "The first ceiling. Default 100 milliseconds."),
      addRetryAfter: Fields.maybe(Schema.Boolean, "Whether a server's hint is added to the delay. Default false."),
      maxRetryAfter: Fields.maybe(Time, "The longest hint to add. Default 20 seconds.")
    }),
    "Kotlin.exponentialBackoffWithJitter": Fields.nested("The delays of the AWS SDK for Kotlin.", {
      initialDelay: Fields.maybe(Time, "The first ceiling. Default 10 milliseconds, in retry behavior 2.1 50."),
      scaleFactor: Fields.maybe(
        Fields.Factor,
        "The growth factor of the ceiling. Default 1.5, in retry behavior 2.1 2."
      ),
      jitter: Fields.maybe(Fields.Share, "The share of the ceiling that randomness may remove. Default 1."),
      maxBackoff: Fields.maybe(
        Schema.Union([Schema.Literal("Infinity"), Time]),
        "The highest ceiling. Default 20 seconds."
      ),
      throttlingBaseDelay: Fields.maybe(Time, "The first ceiling after a throttle. Default 1 second."),
      retryAfterMaxOvershoot: Fields.maybe(
        Time,
        "In retry behavior 2.1, how far a server's hint may lengthen the delay. Default 5 seconds."
      ),
      useNewRetries: Fields.maybe(Schema.Boolean, "The defaults of retry behavior 2.1. Default false.")
    }),
    max: Fields.maybe(Several, "Retries while all would: the longest delay, the dearest cost."),
    min: Fields.maybe(Several, "Retries while any would: the shortest delay, the cheapest cost.")
  }, "source of delays")
]).annotate({ identifier: "PolicySource", title: "Where the delays of a policy come from" })

const named = Schema.Literals([
  "honorRetryAfter",
  "outermostOnly",
  "whileMaybeRetryable",
  "whileRetryable",
  "withMaybeRetryable",
  "withoutDeadline",
  "RetryGrpc.honorPushback"
])

const Price = Schema.Struct({
  cost: Fields.maybe(Fields.Amount, "Tokens that a retry takes. Default 5."),
  timeoutCost: Fields.maybe(Fields.Amount, "Tokens that a retry after a timeout takes. Default: the cost."),
  throttlingCost: Fields.maybe(Fields.Amount, "Tokens that a retry after a throttle takes. Default: the cost."),
  longPolling: Fields.maybe(
    Schema.Boolean,
    "Whether a call that the quota refuses to retry is held for its delay before it fails. Default false."
  )
}).annotate({ identifier: "PolicyPrice", title: "What a retry takes from the quota" })

const beyond = Schema.Literals(["clamp", "stop"])

const Combinator = Schema.Union([
  named,
  oneKey({
    capped: Fields.maybe(Time, "The longest delay, after all previous steps."),
    jittered: Fields.maybe(Jitter, "Randomizes every delay."),
    honorRetryAfter: Fields.nested("Waits at least as long as the server asked.", {
      atMost: Fields.maybe(Time, "The longest hint to follow. Default: no such bound."),
      overshoot: Fields.maybe(Time, "How far a hint may lengthen the delay. Default 5 seconds, or none with atMost."),
      beyond: Fields.maybe(beyond, "Whether a longer hint is cut or ends retrying. Default \"clamp\".")
    }),
    whenThrottled: Fields.maybe(Another, "The policy that applies after a throttle."),
    concat: Fields.maybe(Another, "The policy that follows when this one stops."),
    maxAttempts: Fields.maybe(Fields.count(1), "Attempts of a call, the first included."),
    withMaxAttempts: Fields.maybe(Fields.count(1), "The same, in place of earlier limits."),
    deadline: Fields.maybe(Time, "How long after the start of its call a retry may still begin."),
    withDeadline: Fields.maybe(Time, "The same, in place of earlier limits."),
    quotaGated: Fields.maybe(Price, "Pays for every retry from the quota."),
    withQuota: Fields.maybe(Price, "The same, in place of earlier costs."),
    requires: Fields.maybe(Schema.Literal("AdaptiveRateLimiter"), "Requires a gate, which holds back every send."),
    "RetryGrpc.honorPushback": Fields.nested("Waits exactly as long as a gRPC server says.", {
      atMost: Fields.maybe(Time, "The longest pushback to follow. Default 1 minute."),
      beyond: Fields.maybe(beyond, "Whether a longer pushback is cut or ends retrying. Default \"stop\".")
    })
  }, "combinator")
]).annotate({ identifier: "PolicyStep", title: "A combinator: its name, or its name and argument" })

/**
 * The steps of a policy: a source of delays, then combinators in order.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Steps = Schema.TupleWithRest(Schema.Tuple([Source]), [Combinator]).annotate({
  identifier: "PolicySteps",
  title: "The steps of a policy: a source of delays, then combinators in order"
})

/**
 * The JSON form of a policy, typed and described key by key: `Schema.toJsonSchemaDocument` passes this on to an editor.
 *
 * **Gotchas**
 *
 * It checks only the structure. {@link RetryPolicyFromJson} checks whether values fit together, such as a cap and its
 * base.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Json = Schema.Struct({
  steps: Fields.described(Steps, "A source of delays, then combinators in order.")
}).annotate({ identifier: "Policy", title: "A policy by its steps" })

/**
 * The type of {@link Json}.
 *
 * @category models
 * @since 0.1.0
 */
export type Json = typeof Json.Type

const issueOf = ({ expected, path, value }: Refusal): SchemaIssue.Issue =>
  new SchemaIssue.Pointer(path, new SchemaIssue.InvalidValue({ expected }, value))

const made = (json: unknown): Effect.Effect<Policy, SchemaIssue.Issue> => {
  const found = read(json, {})
  return found instanceof Refusal ? Effect.fail(issueOf(found)) : Effect.succeed(found)
}

/** A function has a name in JSON too, but it could not be read back. */
const transformation = SchemaTransformation.transformEffect<Policy, Json>({
  decode: made,
  encode: (policy) => {
    const json = policy.toJSON() as unknown as Json
    return Effect.as(made(json), json)
  }
})

/**
 * A policy. As JSON, with `Schema.toCodecJson`, it has the form of {@link Json}.
 *
 * @category schemas
 * @since 0.1.0
 */
export const RetryPolicy: Schema.declare<Policy> = Schema.declare(
  (u): u is Policy => isRetryPolicy(u),
  {
    expected: "a RetryPolicy",
    toCodecJson: () => Schema.link<Policy>()(Json, transformation),
    toEquivalence: () => Equal.asEquivalence(),
    toFormatter: () => String
  }
)

/**
 * A policy from its JSON form.
 *
 * **Details**
 *
 * Decoding errors name the path of the problem, such as `["steps"][2]["capped"]`. Encoding fails for a policy with a
 * function or a schedule, which have no JSON.
 *
 * @category schemas
 * @since 0.1.0
 */
export const RetryPolicyFromJson: Schema.decodeTo<Schema.declare<Policy>, typeof Json> = Json.pipe(
  Schema.decodeTo(RetryPolicy, transformation)
)

/**
 * The JSON Schema, draft 2020-12, of the encoded form of a schema, in the way editors show best: the description of a
 * key is next to its type. Unknown keys are errors.
 *
 * **Example** (The schema of a settings file with a policy)
 *
 * ```ts
 * const schema = RetryPolicySchema.toJsonSchema(Schema.Struct({ retry: RetryPolicySchema.Json }))
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const toJsonSchema = (schema: Schema.Constraint): unknown => Fields.documentOf(schema)

/**
 * The form of a document of `RetryConfig`, as a Schema and as the JSON Schema that an editor reads:
 * `effect-retry/retry-config.schema.json` is the latter as a file.
 *
 * The package's index does not export this module: import `effect-retry/RetryConfigSchema`.
 *
 * @since 0.1.0
 */

import * as Schema from "effect/Schema"
import * as RetryPolicySchema from "./RetryPolicySchema.ts"

const maybe = <S extends Schema.Constraint>(schema: S, description: string) =>
  Schema.optionalKey(schema).annotateKey({ description })

const Time = RetryPolicySchema.Time

const expecting = (expected: string) => ({ expected })

const Amount = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0, expecting("a finite number of at least 0")))

const Above = Schema.Finite.check(Schema.isGreaterThan(0, expecting("a finite number above 0")))

const Share = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }, expecting("a number from 0 to 1")))

const count = (minimum: number) =>
  Schema.Union([
    Schema.Finite.check(
      Schema.isInt(),
      Schema.isGreaterThanOrEqualTo(minimum, expecting(`a whole number of at least ${minimum}`))
    ),
    Schema.Literal("Infinity")
  ])

const maxWaiters = (otherwise: string) => maybe(count(0), `How many may wait. Default ${otherwise}.`)

const Switch = Schema.Literals(["on", "off"])

const Preset = Schema.Literals(["awsStandard", "awsStandard2026", "awsDynamoDB2026", "awsAdaptive"])

const Short = Schema.Struct({
  base: maybe(Time, "The first delay, before jitter. Default 100 milliseconds."),
  factor: maybe(
    Schema.Finite.check(Schema.isGreaterThanOrEqualTo(1, expecting("a number of at least 1"))),
    "By what the delay grows. Default 2."
  ),
  cap: maybe(Time, "The longest delay. Default 20 seconds."),
  jitter: maybe(
    Schema.Union([Schema.Literals(["none", "full", "equal"]), Schema.Struct({ proportional: Share })]),
    "How randomness spreads the delay. Default \"full\"."
  ),
  maxAttempts: maybe(count(1), "Attempts of a call, the first included. Default 3."),
  deadline: maybe(Time, "How long after the start of its call a retry may still begin. Default: none."),
  cost: maybe(Amount, "Tokens that a retry takes of the quota. Default 5."),
  timeoutCost: maybe(Amount, "Tokens that a retry after a time-out takes. Default: the cost."),
  throttlingCost: maybe(Amount, "Tokens that a retry after a throttle takes. Default: the cost."),
  idempotent: maybe(
    Schema.Boolean,
    "The operation may be carried out twice: what is only maybe safe to retry is retried. Default false."
  ),
  outermostOnly: maybe(Schema.Boolean, "Retries only where no call around it does. Default false.")
}).annotate({ identifier: "ShortPolicy", title: "A policy in short" })

const Policy = Schema.Union([Preset, RetryPolicySchema.Json, Short]).annotate({
  identifier: "AnyPolicy",
  title: "A policy: its name, its steps, or short keys"
})

const Quota = Schema.Struct({
  capacity: maybe(Above, "The most tokens there can be. Default 500."),
  initial: maybe(Amount, "The tokens at the start. Default: the capacity."),
  refillPerSecond: maybe(Amount, "Tokens that flow in per second. Default 0."),
  successIncrement: maybe(Amount, "Tokens that a call which succeeds without a retry puts in. Default 1."),
  firstAttemptCost: maybe(Amount, "Tokens that a first attempt takes. Default 0."),
  whenExhausted: maybe(
    Schema.Literals(["stop", "wait"]),
    "What a retry does for which there are too few tokens. Default \"stop\"."
  ),
  maxWaiters: maxWaiters("100,000")
}).annotate({ identifier: "Quota", title: "The retry quota of the resource" })

const Limiter = Schema.Struct({
  beta: maybe(Share, "The share of the rate that is left after a throttle. Default 0.7."),
  minFillRate: maybe(Above, "The least rate, per second. Default 0.5."),
  minCapacity: maybe(Above, "The least capacity of the bucket. Default 1."),
  scaleConstant: maybe(Above, "How steep the CUBIC curve is. Default 0.4."),
  smoothing: maybe(Share, "The weight of the latest measurement. Default 0.8."),
  measurementBucketDuration: maybe(Time, "How long one measurement of the send rate lasts. Default half a second."),
  whenExceeded: maybe(
    Schema.Literals(["wait", "fail"]),
    "What a send does for which there is no token. Default \"wait\"."
  ),
  maxWaiters: maxWaiters("100,000")
}).annotate({ identifier: "Limiter", title: "The adaptive rate limiter of the resource" })

const Concurrency = Schema.Struct({
  limit: maybe(count(1), "How many sends may be in flight, for a limit that is fixed: without the keys of a rule."),
  initial: maybe(Above, "The adaptive limit at the start. Default 20."),
  minimum: maybe(Above, "The lowest limit. Default 0.1."),
  maximum: maybe(Above, "The highest limit. Default 1000."),
  increase: maybe(Above, "What a success adds while at least half of the limit is used. Default 0.25."),
  decrease: maybe(Share, "The share of what is in flight that a drop leaves. Default 0.7."),
  slowerThan: maybe(Time, "A success that takes longer counts as a drop. Default: none does."),
  whenFull: maybe(Schema.Literals(["wait", "fail"]), "What a send does for which there is no slot. Default \"wait\"."),
  maxWait: maybe(Time, "How long a send waits for a slot. Default 250 milliseconds."),
  maxWaiters: maxWaiters("10,000"),
  order: maybe(Schema.Literals(["fifo", "lifo"]), "Who is served first among those who wait. Default \"fifo\".")
}).annotate({ identifier: "Concurrency", title: "How many sends to the resource may be in flight" })

const CoolDown = Schema.Struct({
  atMost: maybe(Time, "The longest hint that is followed. Default 1 minute."),
  spread: maybe(Share, "How far callers are spread after the hint, as a share of it. Default 0.2."),
  maxWait: maybe(Time, "For how much longer the resource may be closed for a send to wait. Default 2 seconds."),
  maxWaiters: maxWaiters("10,000")
}).annotate({ identifier: "CoolDown", title: "What a server's hint means for all callers of the resource" })

const Resource = Schema.Struct({
  retries: maybe(Switch, "\"off\" sends every call once. Default \"on\"."),
  policy: maybe(Policy, "How calls are retried. Default: three attempts, see the short keys."),
  quota: maybe(Quota, "Default: 500 tokens, refilled by successes."),
  limiter: maybe(Limiter, "Default: none, unless the policy asks for one."),
  concurrency: maybe(Concurrency, "Default: as many as there are."),
  coolDown: maybe(CoolDown, "Default: a hint is heeded by the call that got it alone.")
}).annotate({ identifier: "Resource", title: "A resource" })

/**
 * A document, typed and described key by key.
 *
 * **Gotchas**
 *
 * It knows the form only. Whether values go together, such as a cost and the capacity of its quota, says
 * `RetryConfig.check`.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Document = Schema.Struct({
  $schema: maybe(Schema.String, "Where an editor finds the schema of this file."),
  retries: maybe(Switch, "\"off\" sends every call of every resource once. Default \"on\"."),
  default: maybe(Resource, "What holds for resources that are not named."),
  resources: maybe(Schema.Record(Schema.String, Resource), "The resources, by name.")
}).annotate({ identifier: "RetryConfig", title: "Retries by resource" })

/**
 * The type of {@link Document}.
 *
 * @category models
 * @since 0.1.0
 */
export type Document = typeof Document.Type

/**
 * The JSON Schema of a document, draft 2020-12.
 *
 * @category getters
 * @since 0.1.0
 */
export const jsonSchema = (): unknown => RetryPolicySchema.toJsonSchema(Document)

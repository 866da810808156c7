/**
 * The structure of a document of `RetryConfig`, as a Schema and as the JSON Schema that an editor reads:
 * `effect-retry/retry-config.schema.json` is the latter as a file.
 *
 * The package's index does not export this module: import `effect-retry/RetryConfigSchema`.
 *
 * @since 0.1.0
 */

import * as Schema from "effect/Schema"
import { limiterOptions } from "../gates/internal/adaptiveGate.ts"
import { concurrencyOptions } from "../gates/internal/concurrencyGate.ts"
import { ruleOptions } from "../gates/internal/concurrencyRule.ts"
import { coolDownOptions } from "../gates/internal/coolDownGate.ts"
import { throttleOptions } from "../gates/internal/throttleGate.ts"
import { hedgeOptions, homeOptions, quantileOptions } from "../hedge/internal/race.ts"
import { grpcOptions } from "../quota/internal/grpcBudget.ts"
import { inFlightOptions } from "../quota/internal/inFlightBudget.ts"
import { shareOptions } from "../quota/internal/shareBudget.ts"
import { fallbackOptions, fleetOptions, fleetOptionsOf, quotaOptions } from "./internal/fleetStores.ts"
import { Amount, count, expecting, Factor, fieldsOf, maybe, sectionOf, Share, Time } from "./internal/schemaFields.ts"
import * as RetryPolicySchema from "./RetryPolicySchema.ts"

const Switch = Schema.Literals(["on", "off"])

const Preset = Schema.Literals(["awsStandard", "awsStandard2026", "awsDynamoDB2026", "awsAdaptive"])

const Short = Schema.Struct({
  base: maybe(Time, "The first delay, before jitter. Default 100 milliseconds."),
  factor: maybe(Factor, "The growth factor of the delay. Default 2."),
  cap: maybe(Time, "The longest delay. Default 20 seconds."),
  jitter: maybe(
    Schema.Union([Schema.Literals(["none", "full", "equal"]), Schema.Struct({ proportional: Share })]),
    "How the delay is randomized. Default \"full\"."
  ),
  maxAttempts: maybe(count(1), "Attempts of a call, the first included. Default 3."),
  deadline: maybe(Time, "How long after the start of its call a retry may still begin. Default: none."),
  cost: maybe(Amount, "Tokens that a retry takes from the quota. Default 5."),
  timeoutCost: maybe(Amount, "Tokens that a retry after a timeout takes. Default: the cost."),
  throttlingCost: maybe(Amount, "Tokens that a retry after a throttle takes. Default: the cost."),
  idempotent: maybe(
    Schema.Boolean,
    "Whether the operation can run twice: failures that are only maybe safe to retry are retried. Default false."
  ),
  outermostOnly: maybe(Schema.Boolean, "Retries only if no call around it does. Default false.")
}).annotate({ identifier: "ShortPolicy", title: "A policy in short form" })

const Policy = Schema.Union([Preset, RetryPolicySchema.Json, Short]).annotate({
  identifier: "AnyPolicy",
  title: "A policy: its name, its steps, or short keys"
})

/** How a section is shared through Redis: what is the same for all. */
const inRedis = (prefix: string) => ({
  name: maybe(
    Schema.String.check(Schema.isMinLength(1, expecting("a non-empty string"))),
    "What the processes that share it have in common. Default: the name of the resource. Not in the default."
  ),
  prefix: maybe(Schema.String, `What the key in Redis begins with. Default "${prefix}".`),
  ...fieldsOf(fleetOptions, {
    timeout: "How long Redis has to respond.",
    fallbackTime: "How long the process decides alone before Redis is tried again."
  })
})

const lookInterval = "How often a process that sends asks Redis."

const maxWaiters = "How many may wait."

const shared = "Shares it with other processes. Default: each process has its own."

const QuotaRedis = Schema.Struct({
  ...inRedis("retry-quota:"),
  ...fieldsOf(fleetOptionsOf.quota, {
    leaseTime: "How long a retry can hold tokens before Redis takes them back.",
    idleTimeToLive: "How long Redis keeps an unused quota. Default 1 hour.",
    flushInterval: "How long returned tokens are buffered."
  }),
  fallback: sectionOf("The quota of the process while Redis does not respond.", fallbackOptions, {
    capacity: "The maximum number of tokens. Default that of the quota.",
    initial: "The initial number of tokens. Default: the tokens that Redis last reported.",
    refillPerSecond: "Tokens added per second. Default that of the quota."
  })
}).annotate({ identifier: "QuotaRedis", title: "Shares the quota with all processes, through Redis" })

const LimiterRedis = Schema.Struct({
  ...inRedis("rate-limit:"),
  ...fieldsOf(fleetOptionsOf.limiter, {
    lookInterval,
    idleTimeToLive: "How long Redis keeps the rate while no process sends."
  })
}).annotate({ identifier: "LimiterRedis", title: "Shares the rate with all processes, through Redis" })

const CoolDownRedis = Schema.Struct({
  ...inRedis("cool-down:"),
  ...fieldsOf(fleetOptionsOf.coolDown, { lookInterval })
}).annotate({ identifier: "CoolDownRedis", title: "Shares the cool-down with all processes, through Redis" })

const Quota = Schema.Struct({
  ...fieldsOf(quotaOptions, {
    capacity: "The maximum number of tokens.",
    initial: "The initial number of tokens. Default: the capacity.",
    refillPerSecond: "Tokens added per second.",
    successIncrement: "Tokens added by a call that succeeds without a retry.",
    firstAttemptCost: "Tokens that a first attempt takes.",
    onExceeded: "What a retry does if there are too few tokens.",
    maxWaiters
  }),
  redis: maybe(QuotaRedis, shared)
}).annotate({ identifier: "Quota", title: "The retry quota of the resource" })

const Limiter = Schema.Struct({
  ...fieldsOf(limiterOptions, {
    beta: "The share of the rate that remains after a throttle.",
    minFillRate: "The least rate, per second.",
    minCapacity: "The least capacity of the bucket.",
    scaleConstant: "How steep the CUBIC curve is.",
    smoothing: "The weight of the latest measurement.",
    measurementBucketDuration: "How long one measurement of the send rate lasts.",
    onExceeded: "What a send does if there is no token.",
    maxWaiters
  }),
  redis: maybe(LimiterRedis, shared)
}).annotate({ identifier: "Limiter", title: "The adaptive rate limiter of the resource" })

const Concurrency = Schema.Struct({
  limit: maybe(count(1), "A fixed limit on sends in flight, in place of the keys of the adaptive rule."),
  ...fieldsOf(ruleOptions, {
    initial: "The initial adaptive limit.",
    minimum: "The lowest limit; below 1, sends are paced.",
    maximum: "The highest limit.",
    increase: "What a success adds while at least half of the limit is used.",
    decrease: "The share of the sends in flight that a drop cuts the limit to.",
    slowerThan: "A success slower than this counts as a drop. Default: none does."
  }),
  ...fieldsOf(concurrencyOptions, {
    onExceeded: "What a send does if there is no slot.",
    maxWait: "How long a send waits for a slot. Default 250 milliseconds, or a quarter of the last timeout seen.",
    maxWaiters,
    order: "Which waiting send goes first."
  })
}).annotate({ identifier: "Concurrency", title: "How many sends to the resource may be in flight" })

const CoolDown = Schema.Struct({
  ...fieldsOf(coolDownOptions, {
    atMost: "The longest hint to follow.",
    spread: "How far callers are spread out after the hint, as a share of it.",
    maxWait: "How much longer the resource may stay closed for a send to wait.",
    maxWaiters,
    probeTime: "How long a send that opens the resource holds back others, and other processes."
  }),
  redis: maybe(CoolDownRedis, shared)
}).annotate({ identifier: "CoolDown", title: "What a server's hint means for all callers of the resource" })

const Throttle = Schema.Struct(fieldsOf(throttleOptions, {
  k: "How many requests are let through for each one accepted.",
  window: "How long a request counts.",
  maxRejection: "The largest share of sends to reject.",
  counts: "When a request counts: once its outcome is known, or when it is sent."
})).annotate({ identifier: "Throttle", title: "Rejects as many sends as the service rejects" })

const Budgets = Schema.Struct({
  share: sectionOf("Limits retries to a share of the calls.", shareOptions, {
    share: "Retries that one call pays for.",
    minPerSecond: "Retries per second on top of that.",
    window: "How long a call pays."
  }),
  inFlight: sectionOf("Limits retries in progress to a share of the sends in progress.", inFlightOptions, {
    share: "Retries in progress, as a share of all sends in progress.",
    atLeast: "How many may be in progress in any case."
  }),
  grpc: sectionOf("gRPC's retryThrottling: retries pass while there are more than half of the tokens.", grpcOptions, {
    maxTokens: "The initial and maximum number of tokens.",
    tokenRatio: "What a success adds."
  })
}).annotate({ identifier: "Budgets", title: "What a retry needs in addition to the tokens of the quota" })

const Hedge = Schema.Struct({
  after: maybe(
    Schema.Union([
      Time,
      Schema.Struct({
        quantile: maybe(Share, "The share of sends that take no longer. Default: what the share of hedges allows."),
        ...fieldsOf(quantileOptions, {
          warmUp: "How many latencies must be known. Default: 1 / (1 - quantile).",
          atLeast: "The shortest delay.",
          first: "The delay until warmUp latencies are known. Default: no hedge until then."
        })
      })
    ]),
    "How long a send may take before the next is made. Default: a quantile of the latencies."
  ),
  ...fieldsOf(hedgeOptions, {
    atMost: "How many hedges a call may have.",
    cost: "What a hedge takes from the share: 1 is a whole send."
  }),
  ...fieldsOf(homeOptions, {
    share: "The most hedges allowed, as a share of the calls.",
    shareWindow: "How long a call pays for hedges.",
    latencyWindow: "The window in which latencies are measured."
  })
}).annotate({ identifier: "Hedge", title: "How calls that ask for it are hedged" })

/**
 * What a document says about a resource, and about those that it does not name.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Resource = Schema.Struct({
  retries: maybe(Switch, "\"off\" sends every call once. Default \"on\"."),
  policy: maybe(Policy, "How calls are retried. Default: three attempts, see the short keys."),
  quota: maybe(Quota, "Default: 500 tokens, refilled by successes."),
  budgets: maybe(Budgets, "Default: the tokens of the quota are enough."),
  limiter: maybe(Limiter, "Default: none, unless the policy requires one."),
  concurrency: maybe(Concurrency, "Default: no limit."),
  throttle: maybe(Throttle, "Default: none."),
  coolDown: maybe(CoolDown, "Default: only the call that got a hint follows it."),
  hedge: maybe(Hedge, "For calls by RetryConfig.hedged. Default: they are not hedged.")
}).annotate({ identifier: "Resource", title: "A resource" })

/**
 * A document, typed and described key by key.
 *
 * **Gotchas**
 *
 * It checks only the structure. Whether values fit together, such as a cost and the capacity of its quota, is checked
 * by `RetryConfig.check`.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Document = Schema.Struct({
  $schema: maybe(Schema.String, "Where an editor finds the schema of this file."),
  retries: maybe(Switch, "\"off\" sends every call of every resource once. Default \"on\"."),
  default: maybe(Resource, "What applies to resources that are not named."),
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

/**
 * The structure of a document of `RetryConfig`, as a Schema and as the JSON Schema that an editor reads:
 * `effect-retry/retry-config.schema.json` is the latter as a file.
 *
 * The package's index does not export this module: import `effect-retry/RetryConfigSchema`.
 *
 * @since 0.1.0
 */

import * as Schema from "effect/Schema"
import { Above, Amount, count, expecting, Factor, maybe, Share } from "./internal/schemaFields.ts"
import * as RetryPolicySchema from "./RetryPolicySchema.ts"

const Time = RetryPolicySchema.Time

const maxWaiters = (otherwise: string) => maybe(count(0), `How many may wait. Default ${otherwise}.`)

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
  timeout: maybe(Time, "How long Redis has to respond. Default 50 milliseconds."),
  fallbackTime: maybe(Time, "How long the process decides alone before Redis is tried again. Default 1 second.")
})

const lookInterval = maybe(Time, "How often a process that sends asks Redis. Default 250 milliseconds.")

const QuotaRedis = Schema.Struct({
  ...inRedis("retry-quota:"),
  leaseTime: maybe(Time, "How long a retry can hold tokens before Redis takes them back. Default 2 minutes."),
  idleTimeToLive: maybe(Time, "How long Redis keeps an unused quota. Default 1 hour."),
  flushInterval: maybe(Time, "How long returned tokens are buffered. Default 100 milliseconds."),
  fallback: maybe(
    Schema.Struct({
      capacity: maybe(Above, "The maximum number of tokens. Default that of the quota."),
      initial: maybe(Amount, "The initial number of tokens. Default: the tokens that Redis last reported."),
      refillPerSecond: maybe(Amount, "Tokens added per second. Default that of the quota.")
    }),
    "The quota of the process while Redis does not respond."
  )
}).annotate({ identifier: "QuotaRedis", title: "Shares the quota with all processes, through Redis" })

const LimiterRedis = Schema.Struct({
  ...inRedis("rate-limit:"),
  lookInterval,
  idleTimeToLive: maybe(Time, "How long Redis keeps the rate while no process sends. Default 10 minutes.")
}).annotate({ identifier: "LimiterRedis", title: "Shares the rate with all processes, through Redis" })

const CoolDownRedis = Schema.Struct({
  ...inRedis("cool-down:"),
  lookInterval
}).annotate({ identifier: "CoolDownRedis", title: "Shares the cool-down with all processes, through Redis" })

const Quota = Schema.Struct({
  capacity: maybe(Above, "The maximum number of tokens. Default 500."),
  initial: maybe(Amount, "The initial number of tokens. Default: the capacity."),
  refillPerSecond: maybe(Amount, "Tokens added per second. Default 0."),
  successIncrement: maybe(Amount, "Tokens added by a call that succeeds without a retry. Default 1."),
  firstAttemptCost: maybe(Amount, "Tokens that a first attempt takes. Default 0."),
  onExceeded: maybe(
    Schema.Literals(["stop", "wait"]),
    "What a retry does if there are too few tokens. Default \"stop\"."
  ),
  maxWaiters: maxWaiters("100,000"),
  redis: maybe(QuotaRedis, "Shares it with other processes. Default: each process has its own.")
}).annotate({ identifier: "Quota", title: "The retry quota of the resource" })

const Limiter = Schema.Struct({
  beta: maybe(Share, "The share of the rate that remains after a throttle. Default 0.7."),
  minFillRate: maybe(Above, "The least rate, per second. Default 0.5."),
  minCapacity: maybe(Above, "The least capacity of the bucket. Default 1."),
  scaleConstant: maybe(Above, "How steep the CUBIC curve is. Default 0.4."),
  smoothing: maybe(Share, "The weight of the latest measurement. Default 0.8."),
  measurementBucketDuration: maybe(Time, "How long one measurement of the send rate lasts. Default half a second."),
  onExceeded: maybe(
    Schema.Literals(["wait", "fail"]),
    "What a send does if there is no token. Default \"wait\"."
  ),
  maxWaiters: maxWaiters("100,000"),
  redis: maybe(LimiterRedis, "Shares it with other processes. Default: each process has its own.")
}).annotate({ identifier: "Limiter", title: "The adaptive rate limiter of the resource" })

const Concurrency = Schema.Struct({
  limit: maybe(count(1), "A fixed limit on sends in flight, in place of the keys of the adaptive rule."),
  initial: maybe(Above, "The initial adaptive limit. Default 20."),
  minimum: maybe(Above, "The lowest limit. Default 0.1."),
  maximum: maybe(Above, "The highest limit. Default 1000."),
  increase: maybe(Above, "What a success adds while at least half of the limit is used. Default 0.25."),
  decrease: maybe(Share, "The share of the sends in flight that a drop cuts the limit to. Default 0.7."),
  slowerThan: maybe(Time, "A success slower than this counts as a drop. Default: none does."),
  onExceeded: maybe(Schema.Literals(["wait", "fail"]), "What a send does if there is no slot. Default \"wait\"."),
  maxWait: maybe(
    Time,
    "How long a send waits for a slot. Default 250 milliseconds, or a quarter of the last timeout seen."
  ),
  maxWaiters: maxWaiters("10,000"),
  order: maybe(Schema.Literals(["fifo", "lifo"]), "Which waiting send goes first. Default \"fifo\".")
}).annotate({ identifier: "Concurrency", title: "How many sends to the resource may be in flight" })

const CoolDown = Schema.Struct({
  atMost: maybe(Time, "The longest hint to follow. Default 1 minute."),
  spread: maybe(Share, "How far callers are spread out after the hint, as a share of it. Default 0.2."),
  maxWait: maybe(Time, "How much longer the resource may stay closed for a send to wait. Default 2 seconds."),
  maxWaiters: maxWaiters("10,000"),
  probeTime: maybe(
    Time,
    "How long a send that opens the resource holds back others, and other processes. Default 10 seconds."
  ),
  redis: maybe(CoolDownRedis, "Shares it with other processes. Default: each process has its own.")
}).annotate({ identifier: "CoolDown", title: "What a server's hint means for all callers of the resource" })

const Throttle = Schema.Struct({
  k: maybe(Factor, "How many requests are let through for each one accepted. Default 2."),
  window: maybe(Time, "How long a request counts. Default 10 seconds."),
  maxRejection: maybe(Share, "The largest share of sends to reject. Default 0.9."),
  counts: maybe(
    Schema.Literals(["settled", "sent"]),
    "When a request counts: once its outcome is known, or when it is sent. Default \"settled\"."
  )
}).annotate({ identifier: "Throttle", title: "Rejects as many sends as the service rejects" })

const Budgets = Schema.Struct({
  share: maybe(
    Schema.Struct({
      share: maybe(Share, "Retries that one call pays for. Default 0.2."),
      minPerSecond: maybe(Amount, "Retries per second on top of that. Default 10."),
      window: maybe(Time, "How long a call pays. Default 10 seconds.")
    }),
    "Limits retries to a share of the calls."
  ),
  inFlight: maybe(
    Schema.Struct({
      share: maybe(Share, "Retries in progress, as a share of all sends in progress. Default 0.2."),
      atLeast: maybe(count(0), "How many may be in progress in any case. Default 3.")
    }),
    "Limits retries in progress to a share of the sends in progress."
  ),
  grpc: maybe(
    Schema.Struct({
      maxTokens: maybe(
        Schema.Finite.check(
          Schema.isInt(),
          Schema.isBetween({ minimum: 1, maximum: 1000 }, expecting("a whole number from 1 to 1000"))
        ),
        "The initial and maximum number of tokens. Default 10."
      ),
      tokenRatio: maybe(Above, "What a success adds. Default 0.1.")
    }),
    "gRPC's retryThrottling: retries pass while there are more than half of the tokens."
  )
}).annotate({ identifier: "Budgets", title: "What a retry needs in addition to the tokens of the quota" })

const Hedge = Schema.Struct({
  after: maybe(
    Schema.Union([
      Time,
      Schema.Struct({
        quantile: maybe(Share, "The share of sends that take no longer. Default: what the share of hedges allows."),
        warmUp: maybe(count(1), "How many latencies must be known. Default: 1 / (1 - quantile)."),
        atLeast: maybe(Time, "The shortest delay. Default 1 millisecond."),
        first: maybe(Time, "The delay until warmUp latencies are known. Default: no hedge until then.")
      })
    ]),
    "How long a send may take before the next is made. Default: a quantile of the latencies."
  ),
  atMost: maybe(
    Schema.Finite.check(
      Schema.isInt(),
      Schema.isBetween({ minimum: 0, maximum: 10 }, expecting("a whole number from 0 to 10"))
    ),
    "How many hedges a call may have. Default 1."
  ),
  cost: maybe(Above, "What a hedge takes from the share. Default 1, a whole send."),
  share: maybe(
    Schema.Finite.check(
      Schema.isGreaterThan(0, expecting("a finite number above 0")),
      Schema.isLessThanOrEqualTo(1, expecting("a number from 0 to 1"))
    ),
    "The most hedges allowed, as a share of the calls. Default 0.02."
  ),
  shareWindow: maybe(Time, "How long a call pays for hedges. Default 10 seconds."),
  latencyWindow: maybe(Time, "The window in which latencies are measured. Default 30 seconds.")
}).annotate({ identifier: "Hedge", title: "How calls that ask for it are hedged" })

const Resource = Schema.Struct({
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

import { Resource } from "effect-retry/RetryConfigSchema"
import { Steps } from "effect-retry/RetryPolicySchema"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { Amount, filled, maybe, Name, Positive, required, Share, Time, Whole, withDefault } from "./fields.ts"
import { policyNames } from "./policyNames.ts"

const { concurrency, coolDown, hedge, limiter, quota, throttle } = Resource.fields

const { capacity, initial, onExceeded, refillPerSecond, successIncrement } = quota.schema.fields

const Quota = Schema.Struct({
  capacity: filled(capacity),
  initial,
  successIncrement,
  refillPerSecond: filled(refillPerSecond),
  onExceeded: filled(onExceeded)
}).annotate({ identifier: "Quota", title: "A RetryQuota of the library, one for each process" })

const Limiter = limiter.schema.mapFields(Struct.omit(["measurementBucketDuration", "maxWaiters", "redis"])).annotate({
  identifier: "Limiter",
  title: "An AdaptiveRateLimiter of the library, one for each process"
})

const Concurrency = Schema.Struct({
  ...concurrency.schema.fields,
  published: maybe(
    Schema.Literals(["aimd", "vegas", "gradient2"]),
    "A Netflix limit with its defaults, for comparison: each fails at some fleet size."
  )
}).annotate({ identifier: "Concurrency", title: "A ConcurrencyLimiter of the library, one for each process" })

const CoolDown = coolDown.schema.mapFields(Struct.omit(["redis"])).annotate({
  identifier: "CoolDown",
  title: "A CoolDown of the library, one for each process"
})

const Throttle = throttle.schema.annotate({
  identifier: "Throttle",
  title:
    "A ClientThrottle of the library, one for each process. As published: 2 minutes, rejects all, counts what is sent"
})

const [, { fields: { first, quantile } }] = hedge.schema.fields.after.schema.members

const Hedge = Schema.Struct({
  ...Struct.pick(hedge.schema.fields, ["atMost", "share", "shareWindow"]),
  after: maybe(Time, "How long a send takes before it is hedged. Default: until the quantile."),
  quantile,
  first
}).annotate({
  identifier: "Hedge",
  title: "The Hedge of the library, one for each process: late sends are sent again"
})

const Budget = Schema.Union([
  Schema.Struct({
    kind: Schema.Literal("bucket"),
    capacity: withDefault(Positive, 5, "The most retries it holds. It starts full."),
    perCall: withDefault(Amount, 0, "What a call adds."),
    perSuccess: withDefault(Amount, 0.1, "What a success adds."),
    above: withDefault(Amount, 0, "A retry is allowed only while more than this is left.")
  }),
  Schema.Struct({
    kind: Schema.Literal("finagle"),
    ttl: withDefault(Time, "10 seconds", "How long a call counts."),
    minPerSecond: withDefault(Amount, 10, "Retries per second that are always allowed."),
    share: withDefault(Amount, 0.2, "The share of the calls that may be retried.")
  }),
  Schema.Struct({
    kind: Schema.Literal("ratio"),
    share: withDefault(
      Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0), Schema.isLessThan(1)),
      0.1,
      "The share of retries."
    ),
    of: withDefault(Schema.Literals(["calls", "attempts"]), "calls", "What it is a share of."),
    window: withDefault(Time, "2 minutes", "How long a call or a retry counts.")
  }),
  Schema.Struct({
    kind: Schema.Literal("grpc"),
    maxTokens: withDefault(Positive, 10, "The most tokens; a failure takes 1, a retry is allowed above half."),
    tokenRatio: withDefault(Positive, 0.1, "What a success adds.")
  }),
  Schema.Struct({
    kind: Schema.Literal("envoy"),
    share: withDefault(Share, 0.2, "Concurrent retries, as a share of the attempts in progress."),
    minConcurrency: withDefault(Whole, 3, "Concurrent retries that are always allowed.")
  }),
  Schema.Struct({
    kind: Schema.Literal("breaker"),
    threshold: withDefault(
      Share,
      0.1,
      "No retries while there have been more failed attempts than this share of the calls."
    )
  })
]).annotate({
  identifier: "Budget",
  title: "A retry budget, one for each process: a retry is allowed if quota and budget grant it"
})

/** A policy by its steps. */
export const PolicySettings = Schema.Struct({
  label: maybe(Name, "The policy's name in results. Default: its steps."),
  steps: required(
    Steps,
    "The policy in the library's JSON form: a source of delays, then combinators in order."
  ),
  quota: maybe(Quota, "The retry quota of each process, if a step is quotaGated. Default: the library's."),
  limiter: maybe(
    Limiter,
    "The adaptive rate limiter of each process, if a step requires it. Default: the library's."
  ),
  concurrency: maybe(
    Concurrency,
    "The concurrency limiter of each process, which holds back every send. Default: none."
  ),
  coolDown: maybe(CoolDown, "The cool-down of each process, which honors the service's hints. Default: none."),
  throttle: maybe(
    Throttle,
    "Which requests each process drops itself, like Google SRE's adaptive throttling. Default: none."
  ),
  budget: maybe(Budget, "The retry budget of each process. Default: none."),
  hedge: maybe(Hedge, "How late sends are hedged, and what pays for it in each process. Default: no hedging.")
}).annotate({ identifier: "PolicySettings", title: "A policy by its steps" })

/** A policy by name or by its steps. */
export const Policy = Schema.Union([Schema.Literals(policyNames), PolicySettings]).annotate({
  identifier: "NamedPolicy",
  title: "A policy: a built-in name, or steps"
})

export type Policy = typeof Policy.Type
export type PolicySettings = typeof PolicySettings.Type
export type Concurrency = typeof Concurrency.Type
export type CoolDownSettings = typeof CoolDown.Type
export type Throttle = typeof Throttle.Type
export type HedgeSettings = typeof Hedge.Type

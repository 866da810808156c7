import { Steps } from "effect-retry/RetryPolicySchema"
import * as Schema from "effect/Schema"
import { Amount, Count, maybe, Name, Positive, required, Share, Time, unlessSaid, Whole } from "./fields.ts"
import { policyNames } from "./policyNames.ts"

const Quota = Schema.Struct({
  capacity: unlessSaid(Positive, 500, "The most tokens there can be."),
  initial: maybe(Amount, "The tokens at the start. Default: the capacity."),
  successIncrement: maybe(Amount, "Tokens that a call without retries adds. Default 1, at most the capacity."),
  refillPerSecond: unlessSaid(Amount, 0, "Tokens added per second."),
  onExceeded: unlessSaid(
    Schema.Literals(["stop", "wait"]),
    "stop",
    "What happens to a retry when there are not enough tokens."
  )
}).annotate({ identifier: "Quota", title: "A RetryQuota of the library, one for each process" })

const Limiter = Schema.Struct({
  beta: maybe(Share, "The share of the rate kept after a throttle. Default 0.7."),
  minFillRate: maybe(Positive, "The least fill rate, per second. Default 0.5."),
  minCapacity: maybe(Positive, "The least capacity. Default 1."),
  scaleConstant: maybe(Positive, "How steep the curve is. Default 0.4."),
  smoothing: maybe(Share, "The weight of the latest measurement. Default 0.8."),
  onExceeded: maybe(Schema.Literals(["wait", "fail"]), "What a send does when there is no token. Default wait.")
}).annotate({ identifier: "Limiter", title: "An AdaptiveRateLimiter of the library, one for each process" })

const Concurrency = Schema.Struct({
  limit: maybe(Count, "A limit that never changes. Default: the adaptive limit of the library, set by the keys below."),
  published: maybe(
    Schema.Literals(["aimd", "vegas", "gradient2"]),
    "A Netflix limit with its defaults, for comparison: each fails at some fleet size."
  ),
  initial: maybe(Positive, "The limit at the start. Default 20."),
  minimum: maybe(Positive, "The lowest limit; below 1, sends are paced. Default 0.1."),
  maximum: maybe(Positive, "The highest limit. Default 1000."),
  increase: maybe(Positive, "What a success adds while half of the limit is in use. Default 0.25."),
  decrease: maybe(Share, "The limit after a drop, as a share of what is in flight. Default 0.7."),
  slowerThan: maybe(Time, "A success that takes longer counts as a drop. Default: none does."),
  onExceeded: maybe(Schema.Literals(["wait", "fail"]), "What a send does when there is no slot. Default wait."),
  maxWait: maybe(Time, "How long it waits. Default 250 milliseconds, or a quarter of the last timeout seen."),
  maxWaiters: maybe(Count, "How many may wait. Default 10000."),
  order: maybe(Schema.Literals(["fifo", "lifo"]), "Who is served first. Default fifo.")
}).annotate({ identifier: "Concurrency", title: "A ConcurrencyLimiter of the library, one for each process" })

const CoolDown = Schema.Struct({
  atMost: maybe(Time, "The longest hint that is followed. Default 1 minute."),
  spread: maybe(Share, "How far sends are spread after the hint, as a share of it. Default 0.2."),
  maxWait: maybe(Time, "The longest remaining closure that a send waits for. Default 2 seconds."),
  maxWaiters: maybe(Count, "How many may wait. Default 10000."),
  probeTime: maybe(
    Time,
    "How long a send that opens the resource holds back others if it does not end. Default 10 seconds."
  )
}).annotate({ identifier: "CoolDown", title: "A CoolDown of the library, one for each process" })

const Throttle = Schema.Struct({
  k: maybe(Positive, "Requests sent for each accepted one. Default 2."),
  window: maybe(Time, "How long a request counts. Default 10 seconds; 2 minutes as published."),
  maxRejection: maybe(Share, "The largest share that is dropped. Default 0.9; 1 as published."),
  counts: maybe(
    Schema.Literals(["settled", "sent"]),
    "When a request counts. Default settled; sent as published."
  )
}).annotate({ identifier: "Throttle", title: "A ClientThrottle of the library, one for each process" })

const Hedge = Schema.Struct({
  after: maybe(Time, "How long a send takes before it is hedged. Default: until the quantile."),
  quantile: maybe(Share, "The share of sends that are not late. Default: one minus the share of hedges."),
  first: maybe(Time, "The delay until enough latencies are known. Default: no hedges until then."),
  atMost: maybe(Count, "The most hedges of one call, up to 10. Default 1."),
  share: maybe(Share, "The most hedges, as a share of the calls. Default 0.02."),
  shareWindow: maybe(Time, "For how long a call pays for hedges. Default 10 seconds.")
}).annotate({
  identifier: "Hedge",
  title: "The Hedge of the library, one for each process: late sends are sent again"
})

const Budget = Schema.Union([
  Schema.Struct({
    kind: Schema.Literal("bucket"),
    capacity: unlessSaid(Positive, 5, "The most retries it holds. It starts full."),
    perCall: unlessSaid(Amount, 0, "What a call adds."),
    perSuccess: unlessSaid(Amount, 0.1, "What a success adds."),
    above: unlessSaid(Amount, 0, "A retry is allowed only while more than this is left.")
  }),
  Schema.Struct({
    kind: Schema.Literal("finagle"),
    ttl: unlessSaid(Time, "10 seconds", "How long a call counts."),
    minPerSecond: unlessSaid(Amount, 10, "Retries per second that are always allowed."),
    share: unlessSaid(Amount, 0.2, "The share of the calls that may be retried.")
  }),
  Schema.Struct({
    kind: Schema.Literal("ratio"),
    share: unlessSaid(
      Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0), Schema.isLessThan(1)),
      0.1,
      "The share of retries."
    ),
    of: unlessSaid(Schema.Literals(["calls", "attempts"]), "calls", "What it is a share of."),
    window: unlessSaid(Time, "2 minutes", "How long a call or a retry counts.")
  }),
  Schema.Struct({
    kind: Schema.Literal("grpc"),
    maxTokens: unlessSaid(Positive, 10, "The most tokens; a failure takes 1, a retry is allowed above half."),
    tokenRatio: unlessSaid(Positive, 0.1, "What a success adds.")
  }),
  Schema.Struct({
    kind: Schema.Literal("envoy"),
    share: unlessSaid(Share, 0.2, "Concurrent retries, as a share of the attempts in progress."),
    minConcurrency: unlessSaid(Whole, 3, "Concurrent retries that are always allowed.")
  }),
  Schema.Struct({
    kind: Schema.Literal("breaker"),
    threshold: unlessSaid(
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

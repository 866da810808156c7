import { Steps } from "effect-retry/RetryPolicySchema"
import * as Schema from "effect/Schema"
import { Amount, Count, maybe, Name, Positive, required, Share, Time, unlessSaid, Whole } from "./fields.ts"
import { policyNames } from "./policyNames.ts"

const Quota = Schema.Struct({
  capacity: unlessSaid(Positive, 500, "The most tokens there can be."),
  initial: maybe(Amount, "The tokens at the start. Default: the capacity."),
  successIncrement: maybe(Amount, "Tokens that a call which needed no retry puts in. Default 1, at most the capacity."),
  refillPerSecond: unlessSaid(Amount, 0, "Tokens that flow in per second."),
  whenExhausted: unlessSaid(
    Schema.Literals(["stop", "wait"]),
    "stop",
    "What happens to a retry for which there are not enough tokens."
  )
}).annotate({ identifier: "Quota", title: "A RetryQuota of the library, one for each process" })

const Limiter = Schema.Struct({
  beta: maybe(Share, "The share of the rate that is left after a throttle. Default 0.7."),
  minFillRate: maybe(Positive, "The least fill rate, per second. Default 0.5."),
  minCapacity: maybe(Positive, "The least capacity. Default 1."),
  scaleConstant: maybe(Positive, "How steep the curve is. Default 0.4."),
  smoothing: maybe(Share, "The weight of the latest measurement. Default 0.8."),
  whenExceeded: maybe(Schema.Literals(["wait", "fail"]), "What a send does for which there is no token. Default wait.")
}).annotate({ identifier: "Limiter", title: "An AdaptiveRateLimiter of the library, one for each process" })

const Concurrency = Schema.Struct({
  limit: maybe(Count, "A limit that never changes. Default: the adaptive limit of the library, set by the keys below."),
  published: maybe(
    Schema.Literals(["aimd", "vegas", "gradient2"]),
    "A limit of Netflix with its defaults, for comparison: each fails in fleets of some size."
  ),
  initial: maybe(Positive, "The limit at the start. Default 20."),
  minimum: maybe(Positive, "The lowest limit; below 1, sends are paced. Default 0.1."),
  maximum: maybe(Positive, "The highest limit. Default 1000."),
  increase: maybe(Positive, "What a success adds while half of the limit is used. Default 0.25."),
  decrease: maybe(Share, "The share of what is in flight that a drop leaves. Default 0.7."),
  slowerThan: maybe(Time, "A success that takes longer counts as a drop. Default: none does."),
  whenFull: maybe(Schema.Literals(["wait", "fail"]), "What a send does for which there is no slot. Default wait."),
  maxWait: maybe(Time, "How long it waits. Default 250 milliseconds."),
  maxWaiters: maybe(Count, "How many wait. Default 10000."),
  order: maybe(Schema.Literals(["fifo", "lifo"]), "Who is served first. Default fifo.")
}).annotate({ identifier: "Concurrency", title: "A ConcurrencyLimiter of the library, one for each process" })

const CoolDown = Schema.Struct({
  atMost: maybe(Time, "The longest hint that is followed. Default 1 minute."),
  spread: maybe(Share, "How far sends are spread after the hint, as a share of it. Default 0.2."),
  maxWait: maybe(Time, "For how much longer the service may be closed for a send to wait. Default 2 seconds."),
  maxWaiters: maybe(Count, "How many wait. Default 10000.")
}).annotate({ identifier: "CoolDown", title: "A CoolDown of the library, one for each process" })

const Throttle = Schema.Struct({
  k: maybe(Positive, "Requests that are sent for each that is accepted. Default 2."),
  window: maybe(Time, "How long a request counts. Default 10 seconds; 2 minutes as published."),
  maxRejection: maybe(Share, "The largest share that is dropped. Default 0.9; 1 as published."),
  counts: maybe(
    Schema.Literals(["settled", "sent"]),
    "When a request counts. Default settled; sent as published."
  )
}).annotate({ identifier: "Throttle", title: "A ClientThrottle of the library, one for each process" })

const Budget = Schema.Union([
  Schema.Struct({
    kind: Schema.Literal("bucket"),
    capacity: unlessSaid(Positive, 5, "The most retries it holds; it starts full."),
    perCall: unlessSaid(Amount, 0, "What a call puts in."),
    perSuccess: unlessSaid(Amount, 0.1, "What a success puts in."),
    above: unlessSaid(Amount, 0, "A retry passes only while more than this is left.")
  }),
  Schema.Struct({
    kind: Schema.Literal("finagle"),
    ttl: unlessSaid(Time, "10 seconds", "How long a call counts."),
    minPerSecond: unlessSaid(Amount, 10, "Retries per second that always pass."),
    share: unlessSaid(Amount, 0.2, "The share of the calls that may be retried.")
  }),
  Schema.Struct({
    kind: Schema.Literal("ratio"),
    share: unlessSaid(
      Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0), Schema.isLessThan(1)),
      0.1,
      "The share of retries."
    ),
    of: unlessSaid(Schema.Literals(["calls", "attempts"]), "calls", "The share of what."),
    window: unlessSaid(Time, "2 minutes", "How long a call or a retry counts.")
  }),
  Schema.Struct({
    kind: Schema.Literal("grpc"),
    maxTokens: unlessSaid(Positive, 10, "The most tokens; a failure takes 1, a retry passes above one half."),
    tokenRatio: unlessSaid(Positive, 0.1, "What a success puts in.")
  }),
  Schema.Struct({
    kind: Schema.Literal("envoy"),
    share: unlessSaid(Share, 0.2, "Retries at one time, as a share of the attempts under way."),
    minConcurrency: unlessSaid(Whole, 3, "Retries at one time that always pass.")
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
  title: "A retry budget, one for each process: a retry passes where quota and budget grant it"
})

/** A policy by its steps. */
export const PolicySettings = Schema.Struct({
  label: maybe(Name, "What the policy is called in results. Default: its steps."),
  steps: required(
    Steps,
    "The policy, as the library has it in JSON: a source of delays, then combinators in their order."
  ),
  quota: maybe(Quota, "The retry quota of each process, where a step is quotaGated. Default: that of the library."),
  limiter: maybe(
    Limiter,
    "The adaptive rate limiter of each process, where a step requires it. Default: the library's."
  ),
  concurrency: maybe(
    Concurrency,
    "The concurrency limiter of each process, which holds back every send. Default: none."
  ),
  coolDown: maybe(CoolDown, "The cool-down of each process, which heeds the hints of the service. Default: none."),
  throttle: maybe(
    Throttle,
    "What each process drops itself, as the adaptive throttling of Google SRE does. Default: nothing."
  ),
  budget: maybe(Budget, "The retry budget of each process. Default: none.")
}).annotate({ identifier: "PolicySettings", title: "A policy by its steps" })

/** A policy by name or by its steps. */
export const Policy = Schema.Union([Schema.Literals(policyNames), PolicySettings]).annotate({
  identifier: "NamedPolicy",
  title: "A policy: the name of one of the library's, or steps"
})

export type Policy = typeof Policy.Type
export type PolicySettings = typeof PolicySettings.Type
export type Concurrency = typeof Concurrency.Type
export type CoolDownSettings = typeof CoolDown.Type
export type Throttle = typeof Throttle.Type

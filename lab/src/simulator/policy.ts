import type * as Limiter from "effect-retry/AdaptiveRateLimiter"
import * as Modes from "effect-retry/aws/AwsModes"
import * as GeneralReference from "effect-retry/aws/legacy/GeneralReference"
import * as JavaScriptV2 from "effect-retry/aws/legacy/JavaScriptV2"
import * as JavaV1 from "effect-retry/aws/legacy/JavaV1"
import * as Backoff from "effect-retry/Backoff"
import type * as ClientThrottle from "effect-retry/ClientThrottle"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import type * as CoolDown from "effect-retry/CoolDown"
import * as Hedge from "effect-retry/Hedge"
import * as RetryPolicy from "effect-retry/RetryPolicy"
import { fromJson } from "effect-retry/RetryPolicyJson"
import type * as RetryQuota from "effect-retry/RetryQuota"
import * as Effect from "effect/Effect"
import type { BudgetOptions } from "./budget.ts"
import type { Time } from "./fields.ts"
import * as Netflix from "./netflix.ts"
import type { PolicyName } from "./policyNames.ts"
import type { Concurrency, CoolDownSettings, HedgeSettings, Policy, PolicySettings, Throttle } from "./policySchema.ts"
import { millis } from "./units.ts"

/** Services that policies may need. */
export type Needs = RetryQuota.RetryQuota | Limiter.AdaptiveRateLimiter

/** A policy of the library, for any error. */
export type AnyPolicy = RetryPolicy.RetryPolicy<any, unknown, Needs>

/** The policy of a fleet's clients, and the quotas and gates that each process has. */
export interface Retrying {
  readonly label: string
  /** `undefined`: no retries. */
  readonly policy: AnyPolicy | undefined
  readonly quota: RetryQuota.Options | undefined
  readonly limiter: Limiter.Options | undefined
  readonly concurrency: ConcurrencyLimiter.Options | undefined
  readonly coolDown: CoolDown.Options | undefined
  readonly throttle: ClientThrottle.Options | undefined
  readonly budget: BudgetOptions | undefined
  readonly hedge: HedgeOptions | undefined
}

/** The hedging of a process: its budget, and its settings. */
export interface HedgeOptions {
  readonly process: Hedge.Options
  readonly call: Hedge.CallOptions
}

/** What a name stands for. */
interface Named extends Pick<Retrying, "policy" | "quota" | "limiter" | "budget"> {
  readonly concurrency?: Concurrency
}

const nothing: Named = {
  policy: undefined,
  quota: undefined,
  limiter: undefined,
  budget: undefined
}

const thrice = (policy: AnyPolicy): AnyPolicy => policy.pipe(RetryPolicy.maxAttempts(3), RetryPolicy.whileRetryable)

const jittered = thrice(Backoff.exponential("100 millis", 2, { cap: "20 seconds", jitter: "full" }))

const named: { readonly [Name in PolicyName]: Named } = {
  none: nothing,
  naive: { ...nothing, policy: thrice(Backoff.fixed(0)) },
  backoff: { ...nothing, policy: thrice(Backoff.exponential("100 millis", 2, { cap: "20 seconds" })) },
  jitter: { ...nothing, policy: jittered },
  awsStandard: { ...nothing, policy: Modes.awsStandard, quota: {} },
  awsStandard2026: { ...nothing, policy: Modes.awsStandard2026, quota: {} },
  awsDynamoDB2026: { ...nothing, policy: Modes.awsDynamoDB2026, quota: {} },
  awsAdaptive: { ...nothing, policy: Modes.awsAdaptive, quota: {}, limiter: {} },
  limited: { ...nothing, policy: Modes.awsStandard, quota: {}, concurrency: {} },
  awsJavaV1: {
    ...nothing,
    policy: RetryPolicy.quotaGated({ cost: 5, throttlingCost: 0 })(JavaV1.defaultPolicy),
    quota: {}
  },
  awsJavaScriptV2: { ...nothing, policy: JavaScriptV2.defaultPolicy },
  awsGeneralReference: { ...nothing, policy: GeneralReference.policy() },
  grpc: { ...nothing, policy: jittered, budget: { kind: "grpc", maxTokens: 10, tokenRatio: 0.1 } },
  finagle: {
    ...nothing,
    policy: jittered,
    budget: { kind: "finagle", ttlMillis: 10_000, minPerSecond: 10, share: 0.2 }
  },
  envoy: { ...nothing, policy: jittered, budget: { kind: "envoy", share: 0.2, minConcurrency: 3 } },
  sre: { ...nothing, policy: jittered, budget: { kind: "ratio", share: 0.1, of: "attempts", windowMillis: 120_000 } },
  tokenBucket: {
    ...nothing,
    policy: jittered,
    budget: { kind: "bucket", capacity: 10, perCall: 0, perSuccess: 0.1, above: 0 }
  }
}

/** The options of a budget. */
export const budgetOf = (budget: NonNullable<PolicySettings["budget"]>): BudgetOptions => {
  switch (budget.kind) {
    case "finagle":
      return { ...budget, ttlMillis: millis(budget.ttl) }
    case "ratio":
      return { ...budget, windowMillis: millis(budget.window) }
    default:
      return budget
  }
}

/** A number of a document, which has a word for no limit. */
const counted = (count: number | "Infinity" | undefined): number | undefined =>
  count === undefined ? count : Number(count)

const maybeMillis = (time: Time | undefined): number | undefined => time === undefined ? undefined : millis(time)

type RuleSettings = Omit<Concurrency, "maxWait" | "maxWaiters" | "order" | "onExceeded">

const ruleOf = ({ limit, published, slowerThan, ...adaptive }: RuleSettings): ConcurrencyLimiter.Rule => {
  if (limit !== undefined) return ConcurrencyLimiter.fixed(Number(limit))
  return published === undefined
    ? ConcurrencyLimiter.adaptive({ ...adaptive, slowerThan: maybeMillis(slowerThan) })
    : Netflix.published[published]()
}

/** The options of a concurrency limiter. Throws `InvalidOption` when they do not go together. */
export const concurrencyOf = (
  { maxWait, maxWaiters, order, onExceeded, ...rule }: Concurrency
): ConcurrencyLimiter.Options => ({
  rule: ruleOf(rule),
  isDrop: rule.published === undefined ? undefined : Netflix.isDrop,
  onExceeded,
  maxWait: maybeMillis(maxWait),
  maxWaiters: counted(maxWaiters),
  order
})

/** The options of a cool-down. */
export const coolDownOf = (
  { atMost, maxWait, maxWaiters, probeTime, ...rest }: CoolDownSettings
): CoolDown.Options => ({
  ...rest,
  atMost: maybeMillis(atMost),
  maxWait: maybeMillis(maxWait),
  maxWaiters: counted(maxWaiters),
  probeTime: maybeMillis(probeTime)
})

/** The options of a throttle. */
export const throttleOf = ({ window, ...rest }: Throttle): ClientThrottle.Options => ({
  ...rest,
  window: maybeMillis(window)
})

/** The options of hedging. Throws `InvalidOption` when they do not go together. */
export const hedgeOf = ({ after, atMost, first, quantile, share, shareWindow }: HedgeSettings): HedgeOptions => ({
  process: { share, shareWindow: maybeMillis(shareWindow) },
  call: { atMost, after: after === undefined ? Hedge.quantile(quantile, { first: maybeMillis(first) }) : millis(after) }
})

/** The first value that a step is given, if it is a plain one. */
const firstOf = (setting: unknown): string => {
  const [value] = typeof setting === "object" && setting !== null ? Object.values(setting) : [setting]
  return value === undefined || typeof value === "object" ? "" : ` ${value}`
}

/** `exponential 100 millis, maxAttempts 3, whileRetryable, quotaGated 5, grpc budget`. */
const describe = ({ budget, concurrency, coolDown, hedge, steps, throttle }: PolicySettings): string =>
  [
    ...steps.map((step) => {
      if (typeof step === "string") return step
      const [[name, setting] = []] = Object.entries(step)
      return `${name}${firstOf(setting)}`
    }),
    ...coolDown === undefined ? [] : ["cool-down"],
    ...throttle === undefined ? [] : ["throttle"],
    ...concurrency === undefined ? [] : [`concurrency limit${firstOf(concurrency.published ?? concurrency.limit)}`],
    ...budget === undefined ? [] : [`${budget.kind} budget`],
    ...hedge === undefined ? [] : ["hedges"]
  ].join(", ")

/** The gates that steps do not ask for, and the hedging. */
const around = (
  { concurrency, coolDown, hedge, throttle }: Pick<PolicySettings, "concurrency" | "coolDown" | "hedge" | "throttle">
) => ({
  concurrency: concurrency && concurrencyOf(concurrency),
  coolDown: coolDown && coolDownOf(coolDown),
  throttle: throttle && throttleOf(throttle),
  hedge: hedge && hedgeOf(hedge)
})

/** The policy of a scenario, and the quotas and gates of each process. Throws `InvalidOption` when its steps do not go together. */
export const resolve = (policy: Policy): Retrying => {
  if (typeof policy === "string") return { label: policy, ...named[policy], ...around(named[policy]) }
  const { budget, label, limiter, quota, steps } = policy
  const made = Effect.runSync(fromJson({ steps }))
  const limits = RetryPolicy.limits(made)
  return {
    label: label ?? describe(policy),
    policy: made,
    quota: quota ?? (limits.quota && {}),
    limiter: limiter ?? (limits.gates.includes("effect-retry/AdaptiveRateLimiter") ? {} : undefined),
    budget: budget && budgetOf(budget),
    ...around(policy)
  }
}

/** The settings of the concurrency limiter of each process, as written or as the name has them. */
export const concurrencyIn = (policy: Policy): Concurrency | undefined =>
  (typeof policy === "string" ? named[policy] : policy).concurrency

/** The policy, whose retries are paid for: by its own step, or one at a time where it has none. */
export const paying = (policy: AnyPolicy): AnyPolicy =>
  RetryPolicy.limits(policy).quota === undefined ? RetryPolicy.quotaGated(policy, { cost: 1 }) : policy

const budgetSettings = (budget: BudgetOptions): unknown => {
  switch (budget.kind) {
    case "finagle": {
      const { ttlMillis, ...rest } = budget
      return { ...rest, ttl: ttlMillis }
    }
    case "ratio": {
      const { windowMillis, ...rest } = budget
      return { ...rest, window: windowMillis }
    }
    default:
      return budget
  }
}

/** The settings that a name stands for, to copy and change. `undefined` if it stands for no retries. */
export const settingsOf = (name: PolicyName): unknown => {
  const { budget, concurrency, limiter, policy, quota } = named[name]
  return policy && {
    label: name,
    ...policy.toJSON(),
    ...quota && { quota },
    ...limiter && { limiter },
    ...concurrency && { concurrency },
    ...budget && { budget: budgetSettings(budget) }
  }
}

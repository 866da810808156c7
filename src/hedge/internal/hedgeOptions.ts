import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type Checks, checks, checksOf, inside } from "../../internal/checks.ts"
import { withMillis } from "../../internal/clock.ts"
import { type Inputs, type Valid, validOptions } from "../../internal/options.ts"
import { isRefusal } from "../../internal/refused.ts"
import { shared } from "../../internal/shared.ts"
import { get } from "../../internal/tryGet.ts"
import type { RetryQuotaStore } from "../../RetryQuotaStore.ts"
import { HedgeBudget } from "./hedgeBudget.ts"
import { Latencies } from "./latencyWindow.ts"
import { type HedgeOptions, hedgeOptions, type Home, homeOptions, quantileOptions } from "./race.ts"

/** A delay taken from the latencies; without a quantile, at that of what the calls share. */
export const quantileOf = (quantile?: number, options: Inputs<typeof quantileOptions> = {}) => {
  const check = checksOf("Hedge.quantile", options)
  return {
    ...validOptions(check, quantileOptions, options),
    _tag: "Quantile" as const,
    quantile: quantile === undefined ? undefined : inside(checks(check.tag), "quantile", quantile)
  }
}

type Quantile = ReturnType<typeof quantileOf>

/** Options with their defaults, checked. */
export const validHome = (options: Inputs<typeof homeOptions>) => {
  const check = checksOf("Hedge.make", options)
  const budget: RetryQuotaStore | undefined = options.budget
  if (budget !== undefined && typeof get(budget, "reserve") !== "function") {
    check.reject("budget", budget, "a RetryQuotaStore")
  }
  return { ...validOptions(check, homeOptions, options), budget }
}

/** What the calls of a resource share. Calls that begin from now on check whether they are hedged. */
export const homeOf = (valid: ReturnType<typeof validHome>, scope: Scope.Scope): Home => {
  shared.marking = true
  return {
    budget: valid.budget ?? new HedgeBudget(valid.share, valid.shareWindowMillis),
    latencies: new Latencies(valid.latencyWindowMillis),
    // With a share of everything, half are late enough. Source: Finagle's percentile, 1 - maxExtraLoad.
    quantile: Math.max(0.5, 1 - valid.share),
    scope
  }
}

/** The service over what the calls share. */
export const serviceOf = (home: Home) => ({
  home,
  budget: home.budget,
  latency: (quantile: number) =>
    withMillis((nowMillis) =>
      home.latencies.quantile(inside(checks("Hedge.latency"), "quantile", quantile), 1, nowMillis)
    ),
  state: Effect.clockWith((clock) =>
    withMillis((nowMillis) => ({ balance: home.budget.balance(clock), latencies: home.latencies.count(nowMillis) }))
  )
})

/** The longest a hedge waits for a server that asks for time. */
const maxHintMillis = 60_000

const reactTo = (isRetryable: Valid<typeof hedgeOptions>["isRetryable"]): HedgeOptions["react"] => (error, info) => {
  if (isRefusal(error) || info?.vetoed === true) return "stop"
  if (!isRetryable(error, info)) return "final"
  const millis = info?.retryAfter === undefined ? 0 : Duration.toMillis(info.retryAfter)
  if (millis > maxHintMillis) return "stop"
  return millis === 0 ? "next" : millis
}

const isQuantile = (after: unknown): after is Quantile => get(after, "_tag") === "Quantile"

/** A duration of at least 0, or infinity, in milliseconds. */
export const delayOf = (check: Checks, field: string, delay: Duration.Input): number =>
  delay === Infinity || get(get(delay, "value"), "_tag") === "Infinity" ? Infinity : check.duration(field, delay)

/** Checks options, for the combinators of the adapters. */
export const validCall = (check: Checks, options: Inputs<typeof hedgeOptions>): HedgeOptions => {
  const { after = quantileOf() } = options
  const { isRetryable, ...valid } = validOptions(check, hedgeOptions, options)
  return {
    ...valid,
    after: isQuantile(after) ? after : delayOf(check, "after", after),
    react: reactTo(isRetryable)
  }
}

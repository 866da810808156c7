import { constUndefined, identity } from "effect/Function"
import { type Checks, checksOf } from "../../internal/checks.ts"
import * as Concurrency from "../../internal/math/concurrencyLimit.ts"
import { fraction, type Inputs, positive, positiveDuration, validOptions } from "../../internal/options.ts"
import { guarded } from "../../internal/tryGet.ts"

/** What changes a limit. */
export interface ConcurrencyRule<State> {
  readonly initial: State
  readonly initialLimit: number
  /** How many sends may be in flight. Below 1, at most one, with a pause after it. `undefined`: it cannot say. */
  readonly limit: (state: State) => number | undefined
  readonly next: (state: State, sample: Concurrency.ConcurrencySample) => State
  /** Whether sends made now are timed. */
  readonly isTimed: (state: State) => boolean
  readonly pauseMillis: (state: State, random: number) => number
  /** The state after a final failure that is no drop. */
  readonly answered: (state: State) => State
  /** Whether retries are sent now. */
  readonly admitsRetries: (state: State, sinceDropMillis: number) => boolean
}

/** The options of an adaptive limit. */
export const ruleOptions = {
  initial: positive(20),
  minimum: positive(0.1),
  maximum: positive(1000),
  increase: positive(0.25),
  decrease: fraction(0.7),
  slowerThan: positiveDuration(Infinity)
}

/** Below this limit, a first drop can lead below 1, where sends are paced by how long they take. */
const timedBelow = 4

/** The recommended limit: see `ConcurrencyLimiter.adaptive`. */
export const adaptiveRule = (options: Inputs<typeof ruleOptions> = {}) => {
  const check = checksOf("ConcurrencyLimiter.adaptive", options)
  const { slowerThanMillis, ...valid } = validOptions(check, ruleOptions, options)
  const { initial, maximum, minimum } = valid
  const usual = Math.min(Math.max(initial, minimum), maximum)
  const config: Concurrency.ConcurrencyConfig = {
    ...valid,
    maximum: check.between("maximum", maximum, minimum, Number.MAX_SAFE_INTEGER),
    initial: check.between("initial", options.initial === undefined ? usual : initial, minimum, maximum),
    usedShare: 0.5,
    minPauseMillis: 20,
    maxPauseMillis: 1000
  }
  return {
    initial: Concurrency.initial(config),
    limit: ({ limit }: Concurrency.Concurrency) => limit,
    next: (state: Concurrency.Concurrency, sample: Concurrency.ConcurrencySample) =>
      Concurrency.next(
        state,
        config,
        sample.outcome === "success" && (sample.rttMillis ?? 0) > slowerThanMillis
          ? { ...sample, outcome: "refusal" }
          : sample
      ),
    isTimed: ({ limit, timeoutMillis }: Concurrency.Concurrency) =>
      limit < timedBelow || timeoutMillis > 0 || slowerThanMillis < Infinity,
    pauseMillis: (state: Concurrency.Concurrency, random: number) => Concurrency.pauseMillis(state, config, random),
    maxWaitMillis: Concurrency.maxWaitMillis,
    admitsRetries: Concurrency.admitsRetries,
    answered: Concurrency.answered
  }
}

const always = () => true

/** What a rule computes, if it is a number. */
const number = (value: number | undefined): number | undefined => value! >= -Infinity ? value : undefined

/** A rule as it is passed: `ConcurrencyLimiter.Rule`. */
type RuleInput =
  & Pick<ConcurrencyRule<any>, "initial" | "limit" | "next">
  & { readonly [K in "admitsRetries" | "answered" | "isTimed" | "pauseMillis"]?: ConcurrencyRule<any>[K] | undefined }
  & { readonly maxWaitMillis?: ((state: any) => number) | undefined }

/** A rule with its defaults, checked. Where a function of it throws, the default answers. */
export const ruleOf = (check: Checks, rule: RuleInput) => {
  if (typeof rule?.next !== "function" || typeof rule.limit !== "function" || !("initial" in rule)) {
    check.reject("rule", rule, "a rule: adaptive(), fixed(n), or an object with initial, limit and next")
  }
  const optional = <F extends (...args: any) => unknown>(name: keyof RuleInput, member: F | undefined, usual: F): F =>
    typeof (member ?? usual) === "function"
      ? guarded(member ?? usual, usual)
      : check.reject("rule", rule, `a rule whose ${name}, if any, is a function`)
  const { initial, next } = rule
  const limit = guarded((state: unknown) => number(rule.limit(state)), constUndefined)
  const pauseMillis = optional("pauseMillis", rule.pauseMillis, () => 1000)
  const maxWaitMillis = optional("maxWaitMillis", rule.maxWaitMillis, () => 250)
  return {
    initial,
    initialLimit: limit(initial) ?? check.reject("rule", rule, "a rule whose limit is a number"),
    limit,
    next: guarded(next, identity<unknown>),
    isTimed: optional("isTimed", rule.isTimed, always),
    pauseMillis: (state: unknown, random: number) => number(pauseMillis(state, random)) ?? 1000,
    maxWaitMillis: (state: unknown) => number(maxWaitMillis(state)) ?? 250,
    admitsRetries: optional("admitsRetries", rule.admitsRetries, always),
    answered: optional("answered", rule.answered, identity<unknown>)
  }
}

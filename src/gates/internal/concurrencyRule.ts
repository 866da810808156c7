import { constUndefined, identity } from "effect/Function"
import { type Checks, checksOf } from "../../internal/checks.ts"
import * as Concurrency from "../../internal/math/concurrencyLimit.ts"
import { fraction, type Inputs, positive, positiveDuration, validOptions } from "../../internal/options.ts"
import { guarded } from "../../internal/tryGet.ts"

/**
 * How a send ended, as seen by a rule.
 *
 * @category models
 * @since 0.1.0
 */
export interface Sample {
  /**
   * A success, or a drop: `"timeout"` without an answer in time (also at a gateway: 504), `"refusal"` for any other.
   * Other failures change no limit: see `answered` of {@link Rule}.
   */
  readonly outcome: "success" | "timeout" | "refusal"
  /** Sends in flight when it ended, including this one: at least 1. */
  readonly inFlight: number
  /** Whether the limit was lowered while it was in flight: a burst of drops is one sign, not many. */
  readonly overtaken: boolean
  /** How long it took, in milliseconds; `undefined` if the rule did not want it timed. */
  readonly rttMillis: number | undefined
}

/**
 * What the limit is and how it changes: pure functions of a state. Where one throws, or gives no number, the limit stays
 * as it is, or the default applies.
 *
 * @category models
 * @since 0.1.0
 */
export interface Rule<State = any> {
  /** The initial state. */
  readonly initial: State
  /** How many sends may be in flight, rounded down. Below 1, one at a time with a pause after it. */
  readonly limit: (state: State) => number
  /** The state after a send ends. */
  readonly next: (state: State, sample: Sample) => State
  /** Whether sends made now are timed, which costs two clock reads. Default: they are. */
  readonly isTimed?: ((state: State) => boolean) | undefined
  /**
   * While the limit is below 1, how long to pause after a send, in milliseconds, given a random number from 0 to 1.
   * Default: one second.
   */
  readonly pauseMillis?: ((state: State, random: number) => number) | undefined
  /**
   * How long a send that begins to wait for a slot waits, in milliseconds, where no `maxWait` is given. Those ahead of it
   * give up first, even if they wait longer. Default: 250.
   */
  readonly maxWaitMillis?: ((state: State) => number) | undefined
  /**
   * Whether retries may be sent this long after the last drop, in milliseconds, `Infinity` if there was none; otherwise
   * they are refused as `"timing-out"`. Default: they may.
   */
  readonly admitsRetries?: ((state: State, sinceDropMillis: number) => boolean) | undefined
  /**
   * The state after a failure that is neither a drop nor retryable, such as a 404. The limit stays. Default: the same
   * state.
   */
  readonly answered?: ((state: State) => State) | undefined
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
export const adaptiveRule = (options: Inputs<typeof ruleOptions> = {}): Rule<Concurrency.Concurrency> => {
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
    limit: ({ limit }) => limit,
    next: (state, sample) => {
      const isSlow = sample.outcome === "success" && (sample.rttMillis ?? 0) > slowerThanMillis
      return Concurrency.next(state, config, isSlow ? { ...sample, outcome: "refusal" } : sample)
    },
    isTimed: ({ limit, timeoutMillis }) => limit < timedBelow || timeoutMillis > 0 || slowerThanMillis < Infinity,
    pauseMillis: (state, random) => Concurrency.pauseMillis(state, config, random),
    maxWaitMillis: Concurrency.maxWaitMillis,
    admitsRetries: Concurrency.admitsRetries,
    answered: Concurrency.answered
  }
}

const always = () => true

/** What a rule computes, if it is a number. */
const number = (value: number | undefined): number | undefined => value! >= -Infinity ? value : undefined

/** A rule with its defaults, checked. Where a function of it throws, the default answers. */
export const ruleOf = (check: Checks, rule: Rule) => {
  if (typeof rule?.next !== "function" || typeof rule.limit !== "function" || !("initial" in rule)) {
    check.reject("rule", rule, "a rule: adaptive(), fixed(n), or an object with initial, limit and next")
  }
  const optional = <F extends (...args: any) => unknown>(name: keyof Rule, member: F | undefined, usual: F): F =>
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

/** What changes a limit: a rule with its defaults. */
export type ConcurrencyRule = ReturnType<typeof ruleOf>

import type * as CoolDown from "effect-retry/CoolDown"
import * as Hedge from "effect-retry/Hedge"
import * as RetryInfo from "effect-retry/RetryInfo"
import type * as RetryQuota from "effect-retry/RetryQuota"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { between, millis, whole } from "./refusal.ts"

/**
 * The options of an explanation. All are optional.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** A title. Default: none. */
  readonly name?: string | undefined
  /**
   * The facts of the failures, such as `RetryInfo.throttled("2 seconds")` or `{ timeout: true }`. Default
   * `RetryInfo.transient`.
   */
  readonly failure?: RetryInfo.Facts | undefined
  /** The error itself, for a policy that looks at more than facts; its facts come from the default classifier. */
  readonly error?: unknown
  /** How long an attempt takes to fail: its timeout, at worst. Default 0. */
  readonly attempt?: Duration.Input | undefined
  /** A deadline of the call; the policy's own still holds if it is earlier. Default: none but the policy's. */
  readonly deadline?: Duration.Input | undefined
  /** The quota of the call, not shared with others. Default: that of `RetryQuota.layer()`. */
  readonly quota?: RetryQuota.Options | undefined
  /** A `CoolDown` in front of every send: what a hint closes for all is closed for this call too. Default: none. */
  readonly coolDown?: CoolDown.Options | undefined
  /** Hedges of the calls: up to their share is added to the load. Default: none. */
  readonly hedge?: Hedge.Options | undefined
  /**
   * How many retries to look at: a whole number from 1 to 1000. Default 100 where the policy limits its attempts or has a
   * deadline, otherwise 10.
   */
  readonly retries?: number | undefined
  /**
   * How many calls to sample: a whole number from 1 to 100,000, raised to 20 if lower. Default 1000 where
   * the percentiles of all delays are exact without samples, otherwise 5000.
   */
  readonly samples?: number | undefined
  /** What determines the samples. Default 1. */
  readonly seed?: string | number | undefined
  /** The failure rates to compute the load for: numbers from 0 to 1. Default: nine from 0 to 1. */
  readonly failureRates?: ReadonlyArray<number> | undefined
}

/**
 * The options, valid and with their defaults.
 *
 * @internal
 */
export interface Asked {
  readonly name: string | null
  readonly error: unknown
  readonly attemptMillis: number
  readonly deadlineMillis: number
  readonly quota: RetryQuota.Options | undefined
  readonly coolDown: CoolDown.Options | undefined
  /** The most hedges for each call. */
  readonly hedges: number
  readonly retries: number | undefined
  /** `undefined`: as many as needed. */
  readonly samples: number | undefined
  readonly seed: string | number
  readonly failureRates: ReadonlyArray<number>
}

/** Fewer samples do not show whether a delay depends on more than its own draw. */
const fewest = 20

const defaultRates = [0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1]

/**
 * An error with these facts, and nothing else.
 *
 * @internal
 */
export const errorOf = (facts: RetryInfo.Facts): unknown => ({ [RetryInfo.TypeId]: RetryInfo.make(facts) })

/** The library's default for the share. */
const usualShare = 0.02

/** The most hedges for each call. The options are those of the library, which refuses impossible ones. */
const hedgesOf = (hedge: Hedge.Options | undefined): number => {
  if (hedge === undefined) return 0
  Effect.runSync(Effect.scoped(Hedge.make(hedge)))
  return hedge.budget === undefined ? hedge.share ?? usualShare : hedge.budget.successIncrement
}

const optional = <A, B>(value: A | undefined, valid: (value: A) => B, absent: B): B =>
  value === undefined ? absent : valid(value)

/**
 * Refuses impossible options.
 *
 * @internal
 */
export const validated = (options: Options): Asked => ({
  name: options.name ?? null,
  error: "error" in options && options.error !== undefined
    ? options.error
    : errorOf(options.failure ?? RetryInfo.transient),
  attemptMillis: optional(options.attempt, (attempt) => millis("attempt", attempt, 0), 0),
  deadlineMillis: optional(options.deadline, (deadline) => millis("deadline", deadline, 1e-6), Infinity),
  quota: options.quota,
  coolDown: options.coolDown,
  hedges: hedgesOf(options.hedge),
  retries: optional<number, number | undefined>(options.retries, (n) => whole("retries", n, 1000), undefined),
  samples: optional<number, number | undefined>(
    options.samples,
    (n) => Math.max(fewest, whole("samples", n, 100_000)),
    undefined
  ),
  seed: options.seed ?? 1,
  failureRates: (options.failureRates ?? defaultRates).map((rate) => between("failureRates", rate, 0, 1))
})

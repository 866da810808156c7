/**
 * Assertions about policies, for unit tests: {@link expectLoad} checks that a policy cannot multiply the load beyond a bound.
 *
 * It is in the lab, not in `effect-retry/testing`, because it uses `Explain`. It needs no test framework: an
 * assertion that fails throws an error with `actual` and `expected`, whose difference test runners show.
 *
 * @since 0.1.0
 */

import type { AdaptiveRateLimiter } from "effect-retry/AdaptiveRateLimiter"
import { InvalidOption } from "effect-retry/InvalidOption"
import * as RetryPolicy from "effect-retry/RetryPolicy"
import type * as RetryQuota from "effect-retry/RetryQuota"
import * as Data from "effect/Data"
import type * as Schedule from "effect/Schedule"
import type { Options } from "./Explain.ts"
import { loadsOf } from "./explain/explained.ts"

/**
 * A load that is not below its bound. Test runners show the difference between `actual` and `expected`.
 *
 * @category errors
 * @since 0.1.0
 */
export class LoadTooHigh extends Data.TaggedError("LoadTooHigh")<{
  /** The policy: its name if it was given one, otherwise its steps. */
  readonly policy: string
  /** Sends per call. */
  readonly load: number
  /** The share of the attempts that fail at that load: from 0 to 1. */
  readonly failureRate: number
  readonly bound: number
  readonly actual: string
  readonly expected: string
}> {
  override get message(): string {
    return `${this.policy} sends too much\n  expected: ${this.expected}\n  actual:   ${this.actual}`
  }
}

/**
 * The highest load that a policy can cause, to be compared with a bound.
 *
 * @category models
 * @since 0.1.0
 */
export interface ExpectedLoad {
  /** Sends per call, in the long run; `Infinity` where nothing bounds them. */
  readonly load: number
  /** The share of the attempts that fail at that load: from 0 to 1. */
  readonly failureRate: number
  /** Throws `LoadTooHigh` unless the load is below this many sends per call: a number above 1. */
  readonly below: (bound: number) => void
}

const rounded = (value: number): string => `${Number(value.toFixed(4))}`

const inWords = (load: number, failureRate: number): string =>
  `${load === Infinity ? "any number of" : rounded(load)} sends per call, while ${
    Number((failureRate * 100).toFixed(1))
  } % of the attempts fail`

const refuse = (value: unknown): never => {
  throw new InvalidOption({
    constructorName: "Expect.expectLoad.below",
    field: "bound",
    value,
    expected: "a number above 1: each call is sent once"
  })
}

/**
 * Works out the highest load that a policy can cause in the long run, whatever share of the attempts fails: an assertion
 * that fails when a change to the policy raises it.
 *
 * **Details**
 *
 * - Attempts fail independently, each with the same probability: see `Explain.explain`, whose options these are. With
 *  `failureRates` the load is the highest at those alone.
 * - Without a quota the load is highest when all attempts fail. A quota pays for retries with what successes put in, so the
 *  load rises up to the failure rate at which the quota drains (`quota.bitesAt`), and falls from there on.
 * - In the long run: at the start of an outage a full quota also pays for `quota.retriesInOutage` retries.
 *
 * Throws `InvalidOption` as `explain` does.
 *
 * **Example** (In a unit test)
 *
 * ```ts
 * Expect.expectLoad(awsStandard2026).below(1.3)
 * Expect.expectLoad(awsStandard2026).load // 1.261
 * ```
 *
 * @category assertions
 * @since 0.1.0
 */
export const expectLoad = (
  policy: Schedule.Schedule<unknown, any, unknown, RetryQuota.RetryQuota | AdaptiveRateLimiter>,
  options?: Options
): ExpectedLoad => {
  const loads = loadsOf(policy, options ?? {}).map(({ attempts, failureRate }) => ({
    load: attempts ?? Infinity,
    failureRate
  }))
  const { failureRate, load } = loads.reduce(
    (most, one) => one.load > most.load ? one : most,
    { load: 1, failureRate: 0 }
  )
  return {
    load,
    failureRate,
    below: (bound) => {
      if (typeof bound !== "number" || !(bound > 1)) refuse(bound)
      if (load < bound) return
      throw new LoadTooHigh({
        policy: options?.name ?? (RetryPolicy.isRetryPolicy(policy) ? String(policy) : "the schedule"),
        load,
        failureRate,
        bound,
        actual: inWords(load, failureRate),
        expected: `fewer than ${rounded(bound)} sends per call`
      })
    }
  }
}

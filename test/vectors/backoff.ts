import { conformance } from "../utils/conformance.ts"

/**
 * Delays before retry `from`, `from + 1`, ... (1 where nothing is said), in milliseconds. `random` is every random value,
 * `cap` and `base` are in milliseconds too. `mode` is the retry behavior, 2.0 or 2.1.
 */
export interface ModeVector {
  readonly name: string
  readonly mode: "2.0" | "2.1"
  readonly base?: number
  readonly cap?: number
  readonly random: number
  readonly throttled?: true
  readonly from?: number
  readonly delays: ReadonlyArray<number>
  /** The balance of the quota after each failure, from 500. */
  readonly quota?: ReadonlyArray<number>
}

export interface ExponentialVector {
  readonly name: string
  readonly base: number
  readonly cap?: number
  readonly jitter: "none" | "full" | "equal"
  readonly random: number
  readonly from?: number
  readonly delays: ReadonlyArray<number>
}

const tables = conformance("delays")

export const modes: ReadonlyArray<ModeVector> = tables.modes

/** smithy-typescript floors to milliseconds, ours rounds up: these rows are whole. */
export const exponentials: ReadonlyArray<ExponentialVector> = tables.exponentials

/** A base above the cap, which a backoff refuses: `RetryPolicy.capped`, then jitter, says what is meant. */
export const baseAboveCap: ReadonlyArray<ExponentialVector & { readonly cap: number }> = tables.baseAboveCap

/** Kotlin, errors that throttle. */
export const kotlinThrottling: {
  readonly base: number
  readonly throttlingBase: number
  readonly delays: ReadonlyArray<number>
} = tables.kotlinThrottling

/** Kotlin, jitter 0.6: `delay * (1 - random from 0 to 0.6)`, so from 0.4 to 1 times the delay. */
export const kotlinRanges: {
  readonly base: number
  readonly jitter: number
  readonly ranges: ReadonlyArray<readonly [number, number]>
} = tables.kotlinRanges

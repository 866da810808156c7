import type * as Duration from "effect/Duration"
import type { Checks } from "../../internal/checks.ts"

/** When an outage begins and ends. Strings are durations such as `"10 seconds"`. */
export interface Window {
  /** A finite duration of at least 0. Default 0. */
  readonly from?: Duration.Input | string | undefined
  /** A duration longer than `from`. Sends at this moment are not hit. Default: forever. */
  readonly to?: Duration.Input | string | undefined
}

/**
 * A valid window, in milliseconds.
 *
 * @internal
 */
export interface Times {
  readonly fromMillis: number
  readonly toMillis: number
}

/**
 * Invalid strings are rejected with the other invalid durations.
 *
 * @internal
 */
export const durationOf = (time: Duration.Input | string | undefined) => time as Duration.Input | undefined

/**
 * Rejects a window that ends before it begins.
 *
 * @internal
 */
export const timesOf = (check: Checks, field: string, { from, to }: Window): Times => {
  const fromMillis = check.duration(`${field}from`, durationOf(from), 0)
  const toMillis = check.positiveDuration(`${field}to`, durationOf(to), Infinity)
  if (toMillis <= fromMillis) check.reject(`${field}to`, to, "later than from")
  return { fromMillis, toMillis }
}

/**
 * Whether a moment is in the window.
 *
 * @internal
 */
export const isDuring = ({ fromMillis, toMillis }: Times, nowMillis: number): boolean =>
  nowMillis >= fromMillis && nowMillis < toMillis

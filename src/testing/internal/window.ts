import type * as Duration from "effect/Duration"
import type { Checks } from "../../internal/checks.ts"
import * as Options from "../../internal/options.ts"

/** When an outage begins and ends. Strings are durations such as `"10 seconds"`. */
export interface Window {
  /** A finite duration of at least 0. Default 0. */
  readonly from?: Duration.Input | string | undefined
  /** A duration longer than `from`. Sends at this moment are not hit. Default: forever. */
  readonly to?: Duration.Input | string | undefined
}

const windowOptions = { from: Options.duration(0), to: Options.positiveDuration(Infinity) }

/**
 * A valid window, in milliseconds.
 *
 * @internal
 */
export type Times = Options.Valid<typeof windowOptions>

/**
 * Checks an outage: its window, and the other options. Invalid strings are rejected with the other invalid durations.
 *
 * @internal
 */
export const validOutage = <Others extends Options.OptionRecord>(
  check: Checks,
  others: Others,
  outage: Window
): Times & Options.Valid<Others> => {
  const valid: any = Options.validOptions(check, { ...windowOptions, ...others }, outage as object)
  if (valid.toMillis <= valid.fromMillis) check.reject("to", outage.to, "later than from")
  return valid
}

/**
 * Whether a moment is in the window.
 *
 * @internal
 */
export const isDuring = ({ fromMillis, toMillis }: Times, nowMillis: number): boolean =>
  nowMillis >= fromMillis && nowMillis < toMillis

import * as Duration from "effect/Duration"
import type * as Random from "effect/Random"
import { power } from "../internal/math/portableMath.ts"
import type { RetryInfo } from "../RetryInfo.ts"

/** Returned in place of a delay: there are no more delays. */
export const noDelay = -1

/** Returned in place of a delay: the server asks for a longer one than the policy allows. */
export const hintTooLong = -2

/** A failed attempt, as passed to the library's own combinators. It is read, never kept. */
export interface Failing {
  readonly error: unknown
  /** The facts of the error; `undefined` if the classifier does not know it. */
  readonly info: RetryInfo | undefined
  /** The attempts made so far, which is also the number of the retry to decide on. */
  readonly attempt: number
  /** The number of the retry since the backoff began: `attempt`, unless the backoff was reset. */
  readonly step: number
  /** The backoff of the previous retry, in milliseconds; 0 before the first. */
  previousMillis: number
  readonly random: Random.Random
  /** Resets the backoff from the next failure on. */
  readonly restart: () => void
}

/** The delay before the retry of a failure, in milliseconds, or one of the two values above. */
export type Delay = (failing: Failing) => number

/** Changes a delay, or returns one of the two values above. */
export type Adjust = (delayMillis: number, failing: Failing) => number

/**
 * The longest delay the arithmetic gives: uncapped growth saturates here, so that no product is `Infinity` or `NaN`.
 */
export const maxDelayMillis = Number.MAX_SAFE_INTEGER

/** `base * factor^(retry - 1)`, saturating. */
export const exponential = (baseMillis: number, factor: number) => (retry: number): number =>
  baseMillis === 0 ? 0 : Math.min(baseMillis * power(factor, retry - 1), maxDelayMillis)

/** `base + increment * (retry - 1)`, saturating. */
export const linear = (baseMillis: number, incrementMillis: number) => (retry: number): number =>
  Math.min(baseMillis + incrementMillis * (retry - 1), maxDelayMillis)

/** `base * fibonacci(retry)` with `fibonacci(1) = fibonacci(2) = 1`, saturating. */
export const fibonacci = (baseMillis: number) => (retry: number): number => {
  if (baseMillis === 0) return 0
  let current = baseMillis
  let next = baseMillis
  for (let n = 1; n < retry && current < maxDelayMillis; n++) {
    const sum = current + next
    current = next
    next = sum
  }
  return Math.min(current, maxDelayMillis)
}

/** `delay * random`. */
export const fullJitter = (delayMillis: number, random: number): number => delayMillis * random

/** A float product such as `50.00000000000001` is 50, not 51. */
const floatNoise = 1e-6

/** Whole milliseconds, rounded up: a timer rounds down, and a wait must never end early. */
export const wholeMillis = (delayMillis: number): number => Math.max(0, Math.ceil(delayMillis - floatNoise))

/** How a delay is randomized. */
export type Jitter = "none" | "full" | "equal" | { readonly proportional: number }

const spreads = {
  none: (delayMillis) => delayMillis,
  full: (delayMillis, { random }) => fullJitter(delayMillis, random.nextDoubleUnsafe()),
  /** `delay / 2 + delay / 2 * random`. */
  equal: (delayMillis, { random }) => delayMillis * (0.5 + 0.5 * random.nextDoubleUnsafe())
} satisfies { readonly [name: string]: Adjust }

/** The jitter as a step. A share gives `delay * (1 + share * (2 * random - 1))`. */
export const spread = (jitter: Jitter): Adjust => {
  if (typeof jitter === "string") return spreads[jitter]
  const { proportional: share } = jitter
  return (delayMillis, { random }) => delayMillis * (1 + share * (2 * random.nextDoubleUnsafe() - 1))
}

/**
 * A ceiling that grows with the retry number, capped, randomized, and capped again, which only proportional jitter
 * needs.
 */
export const growing = (ceiling: (retry: number) => number, jitter: Jitter, capMillis: number): Delay => {
  const spreading = spread(jitter)
  return (failing) => Math.min(capMillis, spreading(Math.min(capMillis, ceiling(failing.step)), failing))
}

/**
 * `base + (3 * previous - base) * random`: uniform from `base` to three times the previous delay. Additive, as in
 * smithy-python: `base + 3 * previous * random`.
 */
export const decorrelated =
  (baseMillis: number, capMillis: number, additive: boolean): Delay => ({ previousMillis, random, step }) => {
    const most = 3 * (step === 1 ? baseMillis : previousMillis)
    const range = additive ? most : most - baseMillis
    return Math.min(capMillis, baseMillis + range * random.nextDoubleUnsafe(), maxDelayMillis)
  }

export const capping = (capMillis: number): Adjust => (delayMillis) => Math.min(delayMillis, capMillis)

/** At least what the server asked for, bounded; a longer hint is cut, or ends the delays if `stops`. */
export const honoring =
  (atMostMillis: number, overshootMillis: number, stops: boolean): Adjust => (delayMillis, { info }) => {
    if (info?.retryAfter === undefined) return delayMillis
    const hint = Duration.toMillis(info.retryAfter)
    const bound = Math.min(atMostMillis, delayMillis + overshootMillis)
    return stops && hint > bound ? hintTooLong : Math.max(delayMillis, Math.min(hint, bound))
  }

/** The delay after all steps, as long as there is one. */
export const adjusted = (adjusts: ReadonlyArray<Adjust>, delayMillis: number, failing: Failing): number => {
  let delay = delayMillis
  for (let step = 0; step < adjusts.length && delay >= 0; step++) delay = adjusts[step]!(delay, failing)
  return delay
}

/** The delay before the retry of a failure, in whole milliseconds, or why there is none. Records the backoff. */
export const delayOf = (source: Delay, adjusts: ReadonlyArray<Adjust>, failing: Failing): number => {
  const backOff = Math.min(source(failing), maxDelayMillis)
  failing.previousMillis = Math.max(0, backOff)
  const delay = adjusted(adjusts, backOff, failing)
  return delay < 0 ? delay : wholeMillis(delay)
}

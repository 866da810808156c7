/** The longest delay the arithmetic gives: uncapped growth saturates here, so that no product is `Infinity` or `NaN`. */
export const maxDelayMillis = Number.MAX_SAFE_INTEGER

/** `base * factor^(retry - 1)`, saturating. */
export const exponential = (baseMillis: number, factor: number, retry: number): number =>
  baseMillis === 0 ? 0 : Math.min(baseMillis * factor ** (retry - 1), maxDelayMillis)

/** `base + increment * (retry - 1)`, saturating. */
export const linear = (baseMillis: number, incrementMillis: number, retry: number): number =>
  Math.min(baseMillis + incrementMillis * (retry - 1), maxDelayMillis)

/** `base * fibonacci(retry)` with `fibonacci(1) = fibonacci(2) = 1`, saturating. */
export const fibonacci = (baseMillis: number, retry: number): number => {
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

/** `delay / 2 + delay / 2 * random`. */
export const equalJitter = (delayMillis: number, random: number): number => delayMillis * (0.5 + 0.5 * random)

/** `delay * (1 + share * (2 * random - 1))`: from `1 - share` to `1 + share` times the delay. */
export const proportionalJitter = (delayMillis: number, share: number, random: number): number =>
  delayMillis * (1 + share * (2 * random - 1))

/** `base + (3 * previous - base) * random`: uniform from `base` to three times the previous delay. */
export const decorrelatedJitter = (baseMillis: number, previousMillis: number, random: number): number =>
  Math.min(baseMillis + (3 * previousMillis - baseMillis) * random, maxDelayMillis)

/** `base + 3 * previous * random`: the form of smithy-python. */
export const additiveDecorrelatedJitter = (baseMillis: number, previousMillis: number, random: number): number =>
  Math.min(baseMillis + 3 * previousMillis * random, maxDelayMillis)

/** A float product such as `50.00000000000001` is 50, not 51. */
const floatNoise = 1e-6

/** Whole milliseconds, rounded up: a timer rounds down, and a wait must never end early. */
export const wholeMillis = (delayMillis: number): number => Math.max(0, Math.ceil(delayMillis - floatNoise))

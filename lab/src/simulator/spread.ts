/**
 * One figure over several runs.
 *
 * @category models
 * @since 0.1.0
 */
export interface Spread {
  readonly mean: number
  /** The 5th percentile, between the two nearest runs. */
  readonly low: number
  readonly median: number
  /** The 95th percentile. */
  readonly high: number
  /** How many runs have a value. */
  readonly of: number
}

/** A percentile of sorted values, linear between the two nearest. Source: Hyndman and Fan, 1996, type 7. */
const between = (sorted: ReadonlyArray<number>, share: number): number => {
  const place = share * (sorted.length - 1)
  const below = sorted[Math.floor(place)]!
  return below + (sorted[Math.ceil(place)]! - below) * (place - Math.floor(place))
}

/** The spread of values; `undefined` of none. */
export const spreadOf = (values: Iterable<number | null | undefined>): Spread | undefined => {
  const sorted = [...values].filter((value) => value !== null && value !== undefined).sort((a, b) => a - b)
  if (sorted.length === 0) return undefined
  return {
    mean: sorted.reduce((sum, value) => sum + value, 0) / sorted.length,
    low: between(sorted, 0.05),
    median: between(sorted, 0.5),
    high: between(sorted, 0.95),
    of: sorted.length
  }
}

import type { Histogram } from "../simulator/histogram.ts"

/** A figure, and between what it lies with 95 % confidence. */
export interface Estimate {
  readonly value: number
  readonly low: number
  readonly high: number
}

/** Two standard errors, nearly: 95 % of a normal distribution. */
const z = 1.96

/** How often something happens by chance that has happened so often: Poisson's spread. */
export const perSecond = (count: number, seconds: number): Estimate => {
  const half = z * Math.sqrt(count)
  return { value: count / seconds, low: Math.max(0, count - half) / seconds, high: (count + half) / seconds }
}

/** A share of so many. Source: Wilson, 1927, the score interval. */
export const shareOf = (count: number, of: number): Estimate => {
  const share = count / of
  const center = (share + z * z / (2 * of)) / (1 + z * z / of)
  const half = z / (1 + z * z / of) * Math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
  return {
    value: share,
    low: Math.min(share, Math.max(0, center - half)),
    high: Math.max(share, Math.min(1, center + half))
  }
}

/** The mean of figures that are given with their sum and the sum of their squares. */
export const meanOf = (count: number, sum: number, squares: number): Estimate => {
  const value = sum / count
  const deviation = count < 2 ? value : Math.sqrt(Math.max(0, squares / count - value * value) * count / (count - 1))
  const half = z * deviation / Math.sqrt(count)
  return { value, low: Math.max(0, value - half), high: value + half }
}

/** A bin of the histogram reaches so far from its middle. */
const halfBin = 1.011

/** A quantile between those of the ranks that chance may have put in its place: the binomial spread of a rank. */
export const quantileOf = (histogram: Histogram, share: number): Estimate => {
  const spread = z * Math.sqrt(share * (1 - share) / histogram.count)
  const at = (rank: number) => histogram.percentile(Math.min(1, Math.max(0, rank))) ?? 0
  return { value: at(share), low: at(share - spread) / halfBin, high: at(share + spread) * halfBin }
}

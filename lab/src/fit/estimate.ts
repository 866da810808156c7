import type { Histogram } from "../simulator/histogram.ts"

/** A figure with its 95 % confidence interval. */
export interface Estimate {
  readonly value: number
  readonly low: number
  readonly high: number
}

/** Seconds that show something: fewer may be chance. */
export const fewest = 3

/** Two standard errors, nearly: 95 % of a normal distribution. */
const z = 1.96

/** The interval of a count: that of a Poisson distribution. */
export const perSecond = (count: number, seconds: number): Estimate => {
  const half = z * Math.sqrt(count)
  return { value: count / seconds, low: Math.max(0, count - half) / seconds, high: (count + half) / seconds }
}

/** The interval of a share. Source: Wilson, 1927, the score interval. */
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

/** The mean of figures, given their sum and the sum of their squares. */
export const meanOf = (count: number, sum: number, squares: number): Estimate => {
  const value = sum / count
  const deviation = count < 2 ? value : Math.sqrt(Math.max(0, squares / count - value * value) * count / (count - 1))
  const half = z * deviation / Math.sqrt(count)
  return { value, low: Math.max(0, value - half), high: value + half }
}

/** Half the width of a histogram's bin. */
const halfBin = 1.011

/** The interval of a quantile, from the binomial distribution of its rank. */
export const quantileOf = (histogram: Histogram, share: number): Estimate => {
  const spread = z * Math.sqrt(share * (1 - share) / histogram.count)
  const at = (rank: number) => histogram.percentile(Math.min(1, Math.max(0, rank))) ?? 0
  return { value: at(share), low: at(share - spread) / halfBin, high: at(share + spread) * halfBin }
}

/** Mean and mean square of a distribution that is linear between its quantiles, and constant beyond them. */
export const momentsOf = (
  quantiles: ReadonlyArray<{ readonly share: number; readonly value: number }>
): { readonly mean: number; readonly square: number } => {
  const [first, last] = [quantiles[0], quantiles.at(-1)]
  if (first === undefined || last === undefined) return { mean: 0, square: 0 }
  let mean = first.share * first.value + (1 - last.share) * last.value
  let square = first.share * first.value * first.value + (1 - last.share) * last.value * last.value
  quantiles.slice(1).forEach(({ share, value }, index) => {
    const from = quantiles[index]!
    mean += (share - from.share) * (from.value + value) / 2
    square += (share - from.share) * (from.value * from.value + from.value * value + value * value) / 3
  })
  return { mean, square }
}

import type { Sampler } from "./chance.ts"
import { type Distribution, millis, type Time } from "./fields.ts"
import { exp, log } from "./portable.ts"

export { millis }

const exponentially = (mean: number): Sampler => (chance) => mean * chance.exponential()

const normally = (mean: number, deviation: number): Sampler => (chance) => Math.abs(mean + deviation * chance.normal())

const lognormally = (median: number, sigma: number): Sampler => (chance) => median * exp(sigma * chance.normal())

const uniformly = (from: number, to: number): Sampler => (chance) => from + (to - from) * chance.nextDoubleUnsafe()

/** The 99th percentile of the standard normal distribution. */
const z99 = 2.3263478740408408

/** Linear between the quantiles; constant beyond the ends. */
const measured = (quantiles: ReadonlyArray<readonly [share: number, time: Time]>): Sampler => {
  const points = quantiles.map(([share, time]) => ({ share, at: millis(time) }))
  const last = points.at(-1)!
  return (chance) => {
    const share = chance.nextDoubleUnsafe()
    const above = points.findIndex((point) => share < point.share)
    const to = above < 0 ? last : points[above]!
    const from = points[above - 1] ?? to
    return from === to ? to.at : from.at + (to.at - from.at) * (share - from.share) / (to.share - from.share)
  }
}

/** Draws the durations of a distribution; `undefined` when they are always 0. */
export const sampler = (distribution: Distribution): Sampler | undefined => {
  if (typeof distribution !== "object") {
    const fixed = millis(distribution)
    return fixed === 0 ? undefined : () => fixed
  }
  const { exponential, lognormal, normal, p50, p99, quantiles, uniform } = distribution
  if (exponential !== undefined) return exponentially(millis(exponential))
  if (normal !== undefined) return normally(millis(normal.mean), millis(normal.deviation))
  if (uniform !== undefined) return uniformly(millis(uniform.from), millis(uniform.to))
  if (lognormal !== undefined) return lognormally(millis(lognormal.median), lognormal.sigma)
  if (quantiles !== undefined) return measured(quantiles)
  return p50 === undefined || p99 === undefined
    ? undefined
    : lognormally(millis(p50), log(millis(p99) / millis(p50)) / z99)
}

/** A distribution with every duration this many times as long. */
export const scaled = (distribution: Distribution, times: number): Distribution => {
  const time = (value: Time) => millis(value) * times
  if (typeof distribution !== "object") return time(distribution)
  const { exponential, lognormal, normal, p50, p99, quantiles, uniform } = distribution
  if (exponential !== undefined) return { exponential: time(exponential) }
  if (normal !== undefined) return { normal: { mean: time(normal.mean), deviation: time(normal.deviation) } }
  if (uniform !== undefined) return { uniform: { from: time(uniform.from), to: time(uniform.to) } }
  if (lognormal !== undefined) return { lognormal: { ...lognormal, median: time(lognormal.median) } }
  if (quantiles !== undefined) {
    const [first, ...others] = quantiles.map(([share, value]) => [share, time(value)] as const)
    return { quantiles: [first!, ...others] }
  }
  return { p50: time(p50!), p99: time(p99!) }
}

import * as Duration from "effect/Duration"
import type { Chance, Sampler } from "./chance.ts"
import type { Distribution, Time } from "./fields.ts"

/** A duration of a scenario in milliseconds. */
export const millis = (time: Time): number => Duration.toMillis(Duration.fromInputUnsafe(time as Duration.Input))

const normal = (mean: number, deviation: number): Sampler => (chance) => Math.abs(mean + deviation * chance.normal())

const lognormal = (median: number, sigma: number): Sampler => (chance) => median * Math.exp(sigma * chance.normal())

const uniform = (from: number, to: number): Sampler => (chance) => from + (to - from) * chance.nextDoubleUnsafe()

/** What draws the durations of a distribution; `undefined` when they are always 0. */
export const sampler = (distribution: Distribution): Sampler | undefined => {
  if (typeof distribution !== "object") {
    const fixed = millis(distribution)
    return fixed === 0 ? undefined : () => fixed
  }
  if ("exponential" in distribution) {
    const mean = millis(distribution.exponential)
    return (chance: Chance) => mean * chance.exponential()
  }
  if ("normal" in distribution) return normal(millis(distribution.normal.mean), millis(distribution.normal.deviation))
  if ("uniform" in distribution) return uniform(millis(distribution.uniform.from), millis(distribution.uniform.to))
  return lognormal(millis(distribution.lognormal.median), distribution.lognormal.sigma)
}

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import { checks } from "../../internal/checks.ts"

const intOf = (share: number): number =>
  Math.floor(share * (Number.MAX_SAFE_INTEGER - Number.MIN_SAFE_INTEGER)) + Number.MIN_SAFE_INTEGER

/**
 * Randomness that returns these numbers in turn, then the last of them forever: numbers of at least 0 and below 1.
 * Throws `InvalidOption` for other numbers, and for none.
 *
 * **Example** (Jitter in the middle: full jitter halves the ceiling)
 *
 * ```ts
 * program.pipe(Effect.provide(fixedRandom(0.5)))
 * ```
 *
 * @see {@link seededRandom} for numbers that differ
 * @category layers
 * @since 0.1.0
 */
export const fixedRandom = (...values: readonly [number, ...Array<number>]): Layer.Layer<never> => {
  const check = checks("fixedRandom")
  if (values.length === 0) check.reject("values", "none", "one number or more")
  for (const value of values) {
    if (check.between("values", value, 0, 1) === 1) check.reject("values", value, "a number below 1")
  }
  return Layer.sync(Random.Random, () => {
    let drawn = 0
    const next = (): number => values[Math.min(drawn++, values.length - 1)]!
    return { nextDoubleUnsafe: next, nextIntUnsafe: () => intOf(next()) }
  })
}

/**
 * Randomness determined by a seed: the same numbers whenever the layer is built.
 *
 * **Example** (The same delays in every run)
 *
 * ```ts
 * program.pipe(Effect.provide(seededRandom("a call")))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const seededRandom = (seed: string | number): Layer.Layer<never> =>
  Layer.effect(Random.Random, Random.withSeed(Random.Random.use(Effect.succeed), seed))

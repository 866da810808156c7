/** Bins of durations, each 1.1 % wider than the one below: exact to half of that. */
const binsPerOctave = 64

/** Shorter durations count as this: a sixteenth of a millisecond. */
const shortestMillis = 1 / 16

/** The bin that a duration falls into. */
export const binOf = (millis: number): number => Math.round(Math.log2(Math.max(shortestMillis, millis)) * binsPerOctave)

/** Bins with the count in them and below, from the shortest duration up. */
export type Cumulated = ReadonlyArray<readonly [bin: number, count: number]>

/** Adds up the counts in bins. */
export const cumulated = (slices: ReadonlyArray<ReadonlyMap<number, number>>): Cumulated => {
  const counts = new Map<number, number>()
  for (const slice of slices) {
    for (const [bin, count] of slice) counts.set(bin, (counts.get(bin) ?? 0) + count)
  }
  let below = 0
  return [...counts].sort(([a], [b]) => a - b).map(([bin, count]) => [bin, below += count])
}

/**
 * The duration that this share of the samples does not exceed, in milliseconds; `undefined` if there are no samples.
 */
export const quantileOf = (bins: Cumulated, quantile: number): number | undefined => {
  // The share of the count, rounded up; a rounding error above a whole number is ignored.
  const rank = Math.max(1, Math.ceil(quantile * (bins.at(-1)?.[1] ?? 0) - 1e-9))
  const found = bins.find(([, count]) => count >= rank)
  // The middle of its bin.
  return found === undefined ? undefined : 2 ** (found[0] / binsPerOctave)
}

/** Bins of times, each 1.1 % wider than the one below it: what is in a bin is known to half of that. */
const binsPerOctave = 64

/** Shorter times count as this: a sixteenth of a millisecond. */
const shortestMillis = 1 / 16

/** The number of the bin that a time falls into. */
export const binOf = (millis: number): number => Math.round(Math.log2(Math.max(shortestMillis, millis)) * binsPerOctave)

/** The time in the middle of a bin, in milliseconds. */
const millisOf = (bin: number): number => 2 ** (bin / binsPerOctave)

/** Bins with what is in them and below, from the shortest time on. */
export type Cumulated = ReadonlyArray<readonly [bin: number, count: number]>

/** Adds up what is in bins. */
export const cumulated = (slices: ReadonlyArray<ReadonlyMap<number, number>>): Cumulated => {
  const counts = new Map<number, number>()
  for (const slice of slices) {
    for (const [bin, count] of slice) counts.set(bin, (counts.get(bin) ?? 0) + count)
  }
  let below = 0
  return [...counts].sort(([a], [b]) => a - b).map(([bin, count]) => [bin, below += count])
}

/** A share of that many, rounded up; what is above a whole number by a rounding error only is that number. */
const rankOf = (quantile: number, count: number): number => Math.max(1, Math.ceil(quantile * count - 1e-9))

/** The time that a share of what is in the bins does not exceed, in milliseconds; `undefined` where nothing is in them. */
export const quantileOf = (bins: Cumulated, quantile: number): number | undefined => {
  const rank = rankOf(quantile, bins.at(-1)?.[1] ?? 0)
  const found = bins.find(([, count]) => count >= rank)
  return found === undefined ? undefined : millisOf(found[0])
}

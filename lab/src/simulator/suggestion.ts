/** How many letters must be changed, removed, added or swapped to turn one word into the other. */
const distance = (a: string, b: string): number => {
  let previous: ReadonlyArray<number> = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = a[i - 1] === b[j - 1] ? 0 : 1
      row.push(Math.min(previous[j]! + 1, row[j - 1]! + 1, previous[j - 1]! + change))
    }
    previous = row
  }
  return previous[b.length]!
}

/** The names that may have been meant, the nearest first. */
export const nearest = (name: string, names: ReadonlyArray<string>): ReadonlyArray<string> => {
  const wanted = name.slice(0, 100).toLowerCase()
  return names
    .map((candidate) => {
      const lower = candidate.toLowerCase()
      const begins = wanted.length > 2 && (lower.startsWith(wanted) || wanted.startsWith(lower))
      const apart = distance(wanted, lower)
      return { candidate, apart, far: begins ? 1 : apart }
    })
    .filter(({ far }) => far <= Math.max(2, Math.floor(wanted.length / 3)))
    .sort((a, b) => a.far - b.far || a.apart - b.apart)
    .slice(0, 3)
    .map(({ candidate }) => candidate)
}

/** A hint for an unknown name: what may have been meant, otherwise all there are. */
export const suggestion = (name: string, names: ReadonlyArray<string>): string => {
  const near = nearest(name, names)
  return near.length === 0 ? `use one of ${names.join(", ")}` : `did you mean ${near.join(" or ")}?`
}

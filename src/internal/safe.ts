/**
 * What looking into a value finds, `undefined` where it throws. For busy paths: an engine remembers where it found a
 * property that is written out, but not one that {@link get} is told by name.
 */
export const look = <A>(into: () => A): A | undefined => {
  try {
    return into()
  } catch {
    return undefined
  }
}

/** The property of any value, `undefined` where there is none or where reading it throws. */
export const get = (value: unknown, key: PropertyKey): unknown => {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return undefined
  try {
    return (value as Record<PropertyKey, unknown>)[key]
  } catch {
    return undefined
  }
}

/**
 * The result of looking into a value, `undefined` if that throws. For hot paths: an engine caches where it found a
 * property written in code, but not one whose name is passed to {@link get}.
 */
export const look = <A>(into: () => A): A | undefined => {
  try {
    return into()
  } catch {
    return undefined
  }
}

/** What is first found in one of these. */
export const firstFound = <A, B>(all: Iterable<A>, find: (one: A) => B | undefined): B | undefined => {
  for (const one of all) {
    const found = find(one)
    if (found !== undefined) return found
  }
  return undefined
}

/**
 * The beginning of a text from outside, "" for any other value: what a pattern may see. So no text takes long, whatever
 * the pattern, and `test/patterns.test.ts` holds every pattern to it.
 */
export const short = (value: unknown, most = 256): string => typeof value === "string" ? value.slice(0, most) : ""

/** A function of the user's whose mistakes must not end a call: where it throws, the other one answers. */
export const guarded = <F extends (a: any, b: any) => unknown>(f: F, otherwise: F): F =>
  f === otherwise ? f : ((a, b) => {
    try {
      return f(a, b)
    } catch {
      return otherwise(a, b)
    }
  }) as F

/** The property of any value, `undefined` if it is missing or reading it throws. */
export const get = (value: unknown, key: PropertyKey): unknown => {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return undefined
  try {
    return (value as Record<PropertyKey, unknown>)[key]
  } catch {
    return undefined
  }
}

/** The property of any value, `undefined` where there is none or where reading it throws. */
export const get = (value: unknown, key: PropertyKey): unknown => {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return undefined
  try {
    return (value as Record<PropertyKey, unknown>)[key]
  } catch {
    return undefined
  }
}

/** The property when it is a string. */
export const getString = (value: unknown, key: PropertyKey): string | undefined => {
  const property = get(value, key)
  return typeof property === "string" ? property : undefined
}

/** The property when it is a number. */
export const getNumber = (value: unknown, key: PropertyKey): number | undefined => {
  const property = get(value, key)
  return typeof property === "number" ? property : undefined
}

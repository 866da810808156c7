/** The property of any value, `undefined` where there is none or where reading it throws. */
export const get = (value: unknown, key: PropertyKey): unknown => {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return undefined
  try {
    return (value as Record<PropertyKey, unknown>)[key]
  } catch {
    return undefined
  }
}

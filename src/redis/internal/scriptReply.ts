/** A number in an answer of Redis; NaN for anything else. */
export const numberOf = (value: unknown): number =>
  typeof value === "number" || (typeof value === "string" && value !== "") ? Number(value) : NaN

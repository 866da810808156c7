/** A header longer than this is not read. */
const maxHeaderLength = 256

const digits = /^\d+$/

/** A count of whole units, without sign, fraction, exponent or other digits: `undefined` for anything else. */
const count = (header: unknown): number | undefined => {
  if (typeof header !== "string" || header.length > maxHeaderLength) return undefined
  const trimmed = header.trim()
  return digits.test(trimmed) ? Math.min(Number(trimmed), Number.MAX_SAFE_INTEGER) : undefined
}

/**
 * What a server asks to wait, in milliseconds: `x-amz-retry-after` (milliseconds) before `retry-after` in seconds. The
 * date form of `retry-after` needs a clock and is read by the HTTP adapter.
 */
export const retryAfterMillis = (headers: { readonly [name: string]: unknown }): number | undefined => {
  const amazon = count(headers["x-amz-retry-after"])
  if (amazon !== undefined) return amazon
  const seconds = count(headers["retry-after"])
  return seconds === undefined ? undefined : Math.min(seconds * 1000, Number.MAX_SAFE_INTEGER)
}

/** A header longer than this is not read. */
const maxHeaderLength = 256

const digits = /^\d+$/

/** A count of whole units, without sign, fraction, exponent or other digits: `undefined` for anything else. */
const count = (header: unknown): number | undefined => {
  if (typeof header !== "string" || header.length > maxHeaderLength) return undefined
  const trimmed = header.trim()
  return digits.test(trimmed) ? Math.min(Number(trimmed), Number.MAX_SAFE_INTEGER) : undefined
}

interface Headers {
  readonly [name: string]: unknown
}

/** A header of a plain record, in lower case or as HTTP writes it, or of a `Headers` object. */
export const header = (headers: Headers, name: string): unknown => {
  const value = headers[name] ?? headers[name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase())]
  return value === undefined && typeof headers.get === "function" ? headers.get(name) : value
}

/**
 * What the response in an error asks to wait, in milliseconds: `x-amz-retry-after` (milliseconds) before `retry-after` in
 * seconds. The date form of `retry-after` needs a clock and is read by the HTTP adapter.
 */
export const retryAfterMillis = (error: any): number | undefined => {
  const headers = error.$response?.headers ?? error.response?.headers ?? error.headers
  if (typeof headers !== "object" || headers === null) return undefined
  const amazon = count(header(headers, "x-amz-retry-after"))
  if (amazon !== undefined) return amazon
  const seconds = count(header(headers, "retry-after"))
  return seconds === undefined ? undefined : Math.min(seconds * 1000, Number.MAX_SAFE_INTEGER)
}

import type { Reader } from "./entry.ts"
import { numberOf, statusOf, textsOf, timeOf, upstreamOf } from "./parts.ts"

/** Bytes received, bytes sent, duration. Istio has three words before them: details, details of the end, a reason. */
const countsAt = (words: ReadonlyArray<string>): number => {
  for (const at of [3, 6]) {
    if (words.slice(at, at + 3).every((word) => /^\d+$/.test(word)) && words.length > at + 3) return at
  }
  return -1
}

/**
 * Envoy's default format, and Istio's. Its time is when the request began; its duration is in milliseconds.
 * Source: Envoy, "Access logging", default format string.
 */
export const envoy: Reader = {
  read: (line, sink) => {
    const close = line.indexOf("] \"")
    if (line[0] !== "[" || close < 0) return false
    const startMillis = timeOf(line.slice(1, close))
    const words = startMillis === undefined ? undefined : textsOf(line, close + 2)
    if (startMillis === undefined || words === undefined) return false
    const status = statusOf(words[1])
    const at = countsAt(words)
    if (status === undefined || at < 0) return false
    const durationMillis = numberOf(words[at + 2])!
    const id = words[at + 6]
    sink({
      endMillis: startMillis + durationMillis,
      // Fractions of a millisecond were cut off: half of one on average.
      durationMillis: durationMillis + 0.5,
      status,
      attempt: undefined,
      call: id === undefined || id === "-" ? undefined : `${id} ${words[0]}`,
      upstream: upstreamOf(words[at + 8])
    })
    return true
  }
}

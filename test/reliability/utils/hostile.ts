import type { Chance } from "./random.ts"

const pieces = [
  "0",
  "1",
  "12",
  "007",
  "9".repeat(20),
  "-",
  "+",
  ".",
  "e",
  "x",
  " ",
  "\t",
  "\r\n",
  "\n",
  "\u0000",
  ",",
  ";",
  ":",
  "=",
  "#",
  "[",
  "]",
  "{",
  "}",
  "\"",
  "'",
  "\\",
  "GMT",
  "Fri, ",
  "20 Nov 2026 12:00:00",
  "20-Nov-26",
  "Nov 20 12:00:00 2026",
  "profile ",
  "default",
  "max_attempts",
  "retry_mode",
  "adaptive",
  "__proto__",
  "constructor",
  "true",
  "null",
  "NaN",
  "Infinity",
  "１２",
  "١٢",
  "\u{1F602}",
  "\uFEFF",
  "\ud800",
  "\u00a0"
]

const dates = [
  "Fri, 20 Nov 2026 12:00:00 GMT",
  "Friday, 20-Nov-26 12:00:00 GMT",
  "Fri Nov 20 12:00:00 2026",
  "2026-11-20T12:00:00Z",
  "Fri, 31 Dec 9999 23:59:59 GMT"
]

const binary = (chance: Chance): string =>
  Array.from({ length: chance.below(40) }, () => String.fromCharCode(chance.below(chance.pick([128, 256, 65_536]))))
    .join("")

const mutated = (chance: Chance, text: string): string => {
  const at = chance.below(text.length + 1)
  const piece = chance.pick([chance.pick(pieces), "", String.fromCharCode(chance.below(300))])
  return text.slice(0, at) + piece + text.slice(at + chance.below(4))
}

/** Text that parsers stumble over: bytes, digits without end, dates that are almost right. */
export const hostileText = (chance: Chance): string => {
  switch (chance.below(5)) {
    case 0:
      return binary(chance)
    case 1:
      return chance.pick(["", "-", " ", "0x", "1e"]) + chance.pick(["9", "0", "1"]).repeat(1 + chance.below(400))
    case 2:
      return mutated(chance, mutated(chance, chance.pick(dates)))
    case 3:
      return String(chance.pick([0, 1, 120, 2 ** 31, 2 ** 53, 1e21, -1, 0.5, NaN, Infinity]))
    default:
      return Array.from({ length: chance.below(12) }, () => chance.pick(pieces)).join("")
  }
}

const keys = [
  "name",
  "code",
  "Code",
  "_tag",
  "__type",
  "message",
  "status",
  "statusCode",
  "response",
  "headers",
  "$response",
  "$metadata",
  "$retryable",
  "$fault",
  "httpStatusCode",
  "throttling",
  "clockSkewCorrected",
  "cause",
  "reason",
  "retryAfter",
  "isRetryable",
  "http",
  "request",
  "method",
  "retry-after",
  "Retry-After",
  "x-amz-retry-after",
  "date",
  "get",
  "getAll",
  "metadata",
  "trailers",
  "details",
  "grpc-retry-pushback-ms",
  "grpc-status-details-bin",
  "type",
  "value",
  "errors",
  "constructor",
  "ast",
  "annotations",
  "~effect-retry/RetryInfo",
  "toString",
  "then"
]

const words = [
  "ThrottlingException",
  "TimeoutError",
  "RequestTimeout",
  "AbortError",
  "HttpClientError",
  "SqlError",
  "AiError",
  "TransportError",
  "StatusCodeError",
  "RateLimiterError",
  "RateLimitExceeded",
  "CircuitBreakerError",
  "CircuitOpen",
  "ECONNRESET",
  "ECONNREFUSED",
  "ERR_HTTP2_STREAM_ERROR",
  "InvalidSignatureException",
  "google.rpc.RetryInfo",
  "POST",
  "__proto__"
]

const numbers = [0, -0, 1, 4, 8, 14, 16, 17, -1, 0.5, 408, 425, 429, 499, 500, 503, 504, 1e9, 2 ** 53, NaN, Infinity]

const throwing = () => {
  throw new Error("no entry")
}

/** A proxy that throws on some operations. */
const trapped = (chance: Chance, target: object): object =>
  new Proxy(target, {
    get: (...args) => chance.isLikely(0.3) ? throwing() : Reflect.get(...args),
    has: (...args) => chance.isLikely(0.3) ? throwing() : Reflect.has(...args),
    ownKeys: (...args) => chance.isLikely(0.3) ? throwing() : Reflect.ownKeys(...args),
    getPrototypeOf: (...args) => chance.isLikely(0.3) ? throwing() : Reflect.getPrototypeOf(...args),
    defineProperty: (...args) => chance.isLikely(0.3) ? throwing() : Reflect.defineProperty(...args)
  })

const revoked = (): object => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

const scalar = (chance: Chance): unknown =>
  chance.pick<() => unknown>([
    () => chance.pick(numbers),
    () => chance.pick(words),
    () => hostileText(chance),
    () => chance.pick([true, false, null, undefined, Symbol("x"), 10n, throwing, () => chance.pick(numbers)]),
    () => new Date(chance.pick(numbers)),
    () => Uint8Array.from({ length: chance.below(40) }, () => chance.below(256)),
    revoked
  ])()

/** Only what a JSON file can hold. */
export const hostileJson = (chance: Chance, depth = 0): unknown => {
  if (depth > 3 || chance.isLikely(0.4)) {
    return chance.pick<unknown>([chance.pick(numbers), hostileText(chance), chance.pick(words), true, null])
  }
  const values = Array.from({ length: chance.below(6) }, () => hostileJson(chance, depth + 1))
  if (chance.isLikely(0.3)) return values
  return Object.fromEntries(values.map((value) => [chance.pick([...keys, hostileText(chance)]), value]))
}

const bare = (chance: Chance): object =>
  chance.pick<() => object>([
    () => new Error(chance.pick(words)),
    () => ({}),
    () => Object.create(null),
    () => [],
    () => () => undefined,
    () => new Map(),
    () => new Headers()
  ])()

/** A property with the value, or a getter that throws. */
const descriptor = (chance: Chance, value: unknown): PropertyDescriptor => ({
  configurable: true,
  enumerable: true,
  ...(chance.isLikely(0.1) ? { get: throwing } : { value, writable: true })
})

/** An error of any shape: objects in objects, cycles, getters that throw, proxies, invalid prototypes. */
export const hostileError = (chance: Chance, depth = 0): unknown => {
  if (depth > 3 || chance.isLikely(depth === 0 ? 0.1 : 0.5)) return scalar(chance)
  const made = bare(chance)
  for (let n = chance.below(8); n > 0; n--) {
    const key = chance.pick(keys)
    const value = chance.isLikely(0.1) ? made : hostileError(chance, depth + 1)
    Reflect.defineProperty(made, key, descriptor(chance, value))
  }
  const wrapped = chance.isLikely(0.1) ? trapped(chance, made) : made
  return chance.isLikely(0.2) && wrapped === made ? Object.freeze(made) : wrapped
}

import { firstFound, short } from "../tryGet.ts"
import { inDetails } from "./errorBodies.ts"
import { type Answer, headerIn, headersOf } from "./wire.ts"

/** A header longer than this is not read. */
const maxHeaderLength = 256

/** How long a string asks to wait, in milliseconds; `undefined` or NaN if it does not. */
export type Read = (value: string, nowMillis: number) => number | undefined

/** How long a response asks to wait, in milliseconds. */
export type Reader = (answer: Answer, nowMillis: number) => number | undefined

const digits = /^\d+$/

const outerSpace = /^[ \t\r\n]+|[ \t\r\n]+$/g

/** Separates the values of a header, but not the parts of a date. */
const comma = /,(?!\s*\d\d[ -][a-z]{3})/i

/** Whole units, without sign, fraction, exponent or other digits. */
const whole = (unitMillis: number): Read => (value) => digits.test(value) ? Number(value) * unitMillis : undefined

/** Milliseconds, in whole numbers. */
export const millis: Read = /* @__PURE__ */ whole(1)

/** Seconds, in whole numbers. */
export const seconds: Read = /* @__PURE__ */ whole(1000)

const later = (pointMillis: number, nowMillis: number): number | undefined =>
  pointMillis > nowMillis ? pointMillis - nowMillis : undefined

/**
 * An HTTP date, in epoch milliseconds; NaN if invalid. Of the three forms of RFC 9110, section 5.6.7, the other two are
 * turned into the first, which `Date` must print again. As Effect's `Headers.parseHttpDate`: short years end in 2069.
 */
const httpDate = (value: string): number => {
  const fixed = value
    .replace(/^(\w+day, \d\d)-(\w{3})-(?=([0-6])?)/i, (_, day, month, early) => `${day} ${month} ${early ? 20 : 19}`)
    .replace(/^\w{3} \w{3}  /, (start) => `${start.trim()} 0`)
    .replace(/^(\w{3}) (\w{3}) (..) (\S+) (\d{4})$/, "$1, $3 $2 $5 $4 GMT")
  // `Date` has no leap second: it is the second after.
  const read = fixed.replace(":60 ", ":59 ")
  // @effect-diagnostics-next-line globalDate:off
  const date = new Date(/^\w+, .{24}$/.test(read) ? read : Number.NaN)
  const isOne = date.toUTCString().slice(4).toLowerCase() === read.slice(-25).toLowerCase()
  return isOne ? date.getTime() + (read === fixed ? 0 : 1000) : Number.NaN
}

/** Whole seconds or an HTTP date. A past date asks for no wait. */
export const secondsOrDate: Read = (value, nowMillis) => seconds(value, 0) ?? later(httpDate(value), nowMillis)

const unitMillis: { readonly [unit: string]: number } = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A time such as `6m0s` or `17ms`. */
const span = (value: string): number | undefined =>
  /^(?:\d+(?:\.\d+)?(?:ms|[smhd]))+$/.test(value)
    ? Array.from(value.matchAll(/([\d.]+)(\D+)/g)).reduce((sum, [, n, unit]) => sum + Number(n) * unitMillis[unit!]!, 0)
    : undefined

const rfc3339 = /^\d{4}-[\d-]+t[\d:.]+(?:z|[+-]\d\d:\d\d)$/i

/**
 * When a window ends: in seconds, in epoch seconds from 1e9 up, in epoch milliseconds from 1e12 up; as `6m0s`; as an
 * RFC 3339 date.
 */
const windowEnd: Read = (value, nowMillis) => {
  const reset = seconds(value, 0)
  if (reset === undefined) return span(value) ?? later(rfc3339.test(value) ? Date.parse(value) : Number.NaN, nowMillis)
  return reset < 1e12 ? reset : (reset < 1e15 ? reset : reset / 1000) - nowMillis
}

const longest = (waits: ReadonlyArray<number | undefined>): number | undefined => {
  const valid = waits.filter((wait) => wait! >= 0) as ReadonlyArray<number>
  return valid.length === 0 ? undefined : Math.min(Math.max(...valid), Number.MAX_SAFE_INTEGER)
}

/** The longest wait in a header, since waiting too long is the smaller risk. Proxies join values with commas. */
const wait = (header: unknown, read: Read, nowMillis: number): number | undefined =>
  typeof header === "string" && header.length <= maxHeaderLength
    ? longest(header.split(comma).map((value) => read(value.replace(outerSpace, ""), nowMillis)))
    : undefined

/** Reads one header. */
export const named = (name: string, read: Read): Reader => ({ header }, nowMillis) =>
  wait(header(name), read, nowMillis)

/** The windows that are used up; otherwise, after a 429, all of them. */
const closed = <A>(status: unknown, windows: ReadonlyArray<A>, isUsedUp: (window: A) => boolean): ReadonlyArray<A> => {
  const used = windows.filter(isUsedUp)
  return used.length > 0 || status !== 429 ? used : windows
}

/**
 * Reads headers that say when windows end. Services send them with every response, so they count only if nothing
 * remains, or after a 429.
 */
export const resets = (...names: ReadonlyArray<string>): Reader => ({ header, status }, nowMillis) => {
  const isUsedUp = (name: string) =>
    [name.replace("reset", "remaining"), "ratelimit-remaining", "x-ratelimit-remaining"].some((remaining) =>
      /(?:^|,)\s*0\s*(?:,|$)/.test(short(String(header(remaining))))
    )
  const sent = names.filter((name) => header(name) !== undefined)
  return longest(closed(status, sent, isUsedUp).map((name) => wait(header(name), windowEnd, nowMillis)))
}

const text = String.raw`"(?:[ !#-[\]-~]|\\["\\])*"`
const param = String.raw`; *([a-z*][\w.*-]*)(?:=(${text}|(?!\d{16})[^\s",;]+))?`
const item = `(${text})((?:${param})*)`

/** The parameters of each item of a list of strings; none if the list is malformed. Source: RFC 9651. */
const itemsOf = (header: unknown): ReadonlyArray<{ readonly [name: string]: string | undefined }> =>
  typeof header === "string" && header.length <= 4 * maxHeaderLength &&
    new RegExp(`^ *${item}(?:[ \\t]*,[ \\t]*${item})* *$`).test(header)
    ? Array.from(header.matchAll(new RegExp(item, "g")), ([, name, params]) => ({
      ...Object.fromEntries(Array.from(params!.matchAll(new RegExp(param, "g")), ([, key, value]) => [key, value])),
      "": name
    }))
    : []

/**
 * `RateLimit` with `RateLimit-Policy`. Quotas of bytes or concurrent sends may be at zero while a request can still
 * pass.
 */
const rateLimit: Reader = ({ header, status }) => {
  const others = itemsOf(header("ratelimit-policy")).filter(({ qu }) =>
    /^"(?:content-bytes|concurrent-requests)"$/.test(qu ?? "")
  )
  const limits = itemsOf(header("ratelimit")).filter(({ r }) => digits.test(r ?? ""))
  const isUsedUp = (limit: typeof limits[number]) =>
    Number(limit.r) === 0 && others.every((other) => other[""] !== limit[""])
  return longest(closed(status, limits, isUsedUp).map(({ t }) => seconds(t ?? "", 0)))
}

/** The `retryDelay` of `google.rpc.RetryInfo`: seconds. */
const retryDelay: Reader = ({ bodies }) => {
  const found = inDetails(bodies(), /"retryDelay":"(\d{1,9}(?:\.\d{1,9})?)s"/)
  return found ? Number(found[1]) * 1000 : undefined
}

/** The readers, in order. OpenAI names its windows at the end of the header, Anthropic in the middle. */
export const readers: ReadonlyArray<Reader> = /* @__PURE__ */ (() => [
  ...["grpc-retry-pushback-ms", "x-amz-retry-after", "retry-after-ms", "x-ms-retry-after-ms"].map((name) =>
    named(name, millis)
  ),
  ...["retry-after", "x-ratelimit-retry-after"].map((name) => named(name, secondsOrDate)),
  rateLimit,
  ...["ratelimit-reset", "x-ratelimit-reset", "x-rate-limit-reset"].map((name) => resets(name)),
  resets(
    "x-ratelimit-reset-requests",
    "x-ratelimit-reset-tokens",
    ...["requests", "tokens", "input-tokens", "output-tokens"].map((of) => `anthropic-ratelimit-${of}-reset`)
  ),
  retryDelay
])()

/** The server's current time if its response tells it, else the client's. */
export const presentMillis = ({ header }: Pick<Answer, "header">, wallMillis: number): number =>
  httpDate(String(header("date"))) || wallMillis

/** How long a response asks to wait, in milliseconds. */
export const hintMillis = (answer: Answer, wallMillis: () => number): number | undefined => {
  const nowMillis = presentMillis(answer, wallMillis())
  return firstFound(readers, (read) => read(answer, nowMillis))
}

/**
 * How long an error asks to wait in the headers that the AWS SDKs read, one value of each: `x-amz-retry-after` in
 * milliseconds, then `retry-after` in seconds or as a date, of which one in the past asks to wait for 0.
 */
export const retryAfterMillis = (error: any, wallMillis: () => number): number | undefined => {
  const headers = headersOf(error)
  if (headers === undefined) return undefined
  const header = headerIn(headers)
  const nowMillis = presentMillis({ header }, wallMillis())
  const only = (name: string, read: Read) => {
    const value = header(name)
    return typeof value === "string" && !comma.test(value) ? wait(value, read, nowMillis) : undefined
  }
  return only("x-amz-retry-after", millis) ??
    only("retry-after", (value) => seconds(value, 0) ?? Math.max(0, httpDate(value) - nowMillis))
}

/** A number written in full; `undefined` for anything else. */
export const numberOf = (value: unknown): number | undefined => {
  if (typeof value === "number") return Number.isFinite(value) ? value : undefined
  if (typeof value !== "string" || value === "") return undefined
  const number = Number(value)
  return Number.isFinite(number) ? number : undefined
}

/** What clients write in place of a status when they have stopped waiting. */
const unanswered = /^(?:-|timeout|etimedout|esockettimedout|aborted)$/i

/** A status of HTTP; 0 for none. */
export const statusOf = (value: unknown): number | undefined => {
  if (value === null || typeof value === "string" && unanswered.test(value)) return 0
  const status = numberOf(value)
  return status !== undefined && Number.isInteger(status) && status >= 0 && status < 1000 ? status : undefined
}

const months = "JanFebMarAprMayJunJulAugSepOctNovDec"
const commonTime = /^(\d\d)\/([A-Z][a-z]{2})\/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)$/

/** `22/Nov/2026:18:15:40 +0100`, as nginx and Apache write it. */
const fromCommon = (text: string): number | undefined => {
  const [, day, name, year, hour, minute, second, sign, hours, minutes] = commonTime.exec(text) ?? []
  if (name === undefined) return undefined
  const month = months.indexOf(name) / 3
  if (!Number.isInteger(month) || month < 0) return undefined
  const offset = (Number(hours) * 60 + Number(minutes)) * (sign === "-" ? -60_000 : 60_000)
  return Date.UTC(Number(year), month, Number(day), Number(hour), Number(minute), Number(second)) - offset
}

/** Seconds, milliseconds, microseconds or nanoseconds since 1970: by their size. */
const fromEpoch = (value: number): number => {
  if (value < 1e11) return value * 1000
  if (value < 1e14) return value
  return value < 1e17 ? value / 1e3 : value / 1e6
}

/** There are no logs from before 1990 or after 2200: such a number is not a time. */
const plausible = (millis: number | undefined): number | undefined =>
  millis !== undefined && millis > 6.3e11 && millis < 7.3e12 ? millis : undefined

const parsedTime = (text: string): number | undefined => {
  if (/^\d+(\.\d+)?$/.test(text)) return fromEpoch(Number(text))
  if (text[2] === "/") return fromCommon(text)
  // Without a zone a log uses its machine's, unknown here: the same offset for all lines does no harm.
  return /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(/[zZ]$|[+-]\d\d:?\d\d$/.test(text) ? text : `${text}Z`) : undefined
}

let lastText = ""
let lastTime: number | undefined

/** A time, in milliseconds since 1970. Many lines in a row have the same. */
export const timeOf = (value: unknown): number | undefined => {
  if (typeof value === "number") return plausible(fromEpoch(value))
  if (typeof value !== "string") return undefined
  if (value !== lastText) {
    lastTime = plausible(parsedTime(value))
    lastText = value
  }
  return lastTime
}

/** Whether the backslashes before a character escape it: of two, the first escapes the second. */
const isEscaped = (line: string, at: number): boolean => {
  let from = at
  while (line[from - 1] === "\\") from--
  return (at - from) % 2 === 1
}

/** Where a text in quotes that begins at `from` ends; -1 when it does not. */
const closeOf = (line: string, from: number): number => {
  let end = line.indexOf("\"", from + 1)
  while (end > 0 && isEscaped(line, end)) end = line.indexOf("\"", end + 1)
  return end < 0 ? -1 : end + 1
}

/** Where a word that begins at `from` ends: at a blank outside of quotes, as in `ua="a, b"`. */
const endOf = (line: string, from: number): number => {
  if (line[from] === "\"") return closeOf(line, from)
  const blank = line.indexOf(" ", from)
  const end = blank < 0 ? line.length : blank
  const quote = line.slice(from, end).indexOf("=\"") + 1
  return quote === 0 ? end : closeOf(line, from + quote)
}

/** A word of a line. */
export interface Word {
  /** Without its quotes. */
  readonly text: string
  /** Whether all of it is in quotes: then a client may have written it. */
  readonly isQuoted: boolean
}

/** The words of a line from an index on. `undefined` when a quote is not closed. */
export const wordsOf = (line: string, start: number): ReadonlyArray<Word> | undefined => {
  const words: Array<Word> = []
  for (let from = start; from < line.length;) {
    if (line[from] === " ") {
      from++
      continue
    }
    const end = endOf(line, from)
    if (end < 0) return undefined
    const isQuoted = line[from] === "\""
    words.push({ text: isQuoted ? line.slice(from + 1, end - 1) : line.slice(from, end), isQuoted })
    from = end
  }
  return words
}

/** The words of a line from an index on, without their quotes. */
export const textsOf = (line: string, start: number): ReadonlyArray<string> | undefined =>
  wordsOf(line, start)?.map(({ text }) => text)

/** A host with its port, or a socket: anything else may be what a client wrote. */
const address = /^(?:unix:.|(?:\w+:\/\/)?(?:\[[\da-f:.]+\]|[\w.-]+):\d+$)/i

/** The instance that answered: of several that were tried the last. Logs have `-` for none. */
export const upstreamOf = (value: unknown): string | undefined => {
  if (typeof value !== "string") return undefined
  const last = value.slice(value.lastIndexOf(" ") + 1)
  return last === "-" ? "" : address.test(last) ? last : undefined
}

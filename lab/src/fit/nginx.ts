import type { Reader } from "./entry.ts"
import { numberOf, statusOf, timeOf, upstreamOf, type Word, wordsOf } from "./parts.ts"

/** Names that common formats give the time a request took. */
const named = /^(?:rt|request_time|req_time)[=:]"?(\d+(?:\.\d+)?)/
/** A number with thousandths: nginx's notation of seconds. */
const bare = /^(\d+\.\d{3}),?$/
const attemptIn = /^attempt[=:]"?(\d+)/
const idIn = /^(?:rid|request_id|req_id)[=:]"?([\w-]{8,})/

const upstreamIn = /^(?:ua|upstream|upstream_addr)[=:]"?([^"]+)"?$/

/** The first find in the words of a line that no client writes: what is in quotes may be a header. */
const firstOf = (words: ReadonlyArray<Word>, pattern: RegExp): string | undefined => {
  for (const { isQuoted, text } of words) {
    const found = isQuoted ? undefined : pattern.exec(text)?.[1]
    if (found !== undefined) return found
  }
  return undefined
}

/** After the user agent comes what a configuration adds. */
const addedIn = (words: ReadonlyArray<Word>) => {
  const added = words.slice(5)
  const seconds = numberOf(firstOf(added, named) ?? firstOf(added, bare))
  const id = firstOf(added, idIn)
  return {
    durationMillis: seconds === undefined ? undefined : seconds * 1000,
    attempt: numberOf(firstOf(added, attemptIn)),
    call: id === undefined ? undefined : `${id} ${words[0]!.text}`,
    upstream: upstreamOf(firstOf(added, upstreamIn))
  }
}

/**
 * nginx's `combined`, and after it `$request_time`, bare or as `rt=$request_time`; perhaps `attempt=`, `rid=` and `ua=$upstream_addr`. Without a
 * time the line gives only rate and status. Source: ngx_http_log_module, "combined".
 */
export const nginx: Reader = {
  read: (line, sink) => {
    const open = line.indexOf(" [")
    const close = line.indexOf("] \"", open)
    if (open < 0 || close < 0) return false
    const endMillis = timeOf(line.slice(open + 2, close))
    if (endMillis === undefined) return false
    const words = wordsOf(line, close + 2)
    const status = statusOf(words?.[1]?.text)
    if (words === undefined || status === undefined || words.length < 3) return false
    sink({ endMillis, status, ...addedIn(words) })
    return true
  }
}

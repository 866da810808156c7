import type { Reader } from "./entry.ts"
import { numberOf, statusOf, timeOf, wordsOf } from "./parts.ts"

/** Names that common formats give the time a request took. */
const named = /(?:^|[\s"])(?:rt|request_time|req_time)[=:]"?(\d+(?:\.\d+)?)/
/** The first number with thousandths: nginx's notation of seconds. */
const bare = /(?:^|[\s"])(\d+\.\d{3})(?=$|[\s",])/
const attemptIn = /(?:^|[\s"])attempt[=:]"?(\d+)/
const idIn = /(?:^|[\s"])(?:rid|request_id|req_id)[=:]"?([\w-]{8,})/

/** The user agent, then anything a configuration adds. */
const tellOf = (tail: string) => ({
  seconds: numberOf((named.exec(tail) ?? bare.exec(tail))?.[1]),
  attempt: tail.includes("attempt") ? numberOf(attemptIn.exec(tail)?.[1]) : undefined,
  id: idIn.exec(tail)?.[1]
})

/**
 * nginx's `combined`, and after it `$request_time`, bare or as `rt=$request_time`; perhaps `attempt=` and `rid=`. Without a
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
    const status = statusOf(words?.[1])
    if (words === undefined || status === undefined || words.length < 3) return false
    const request = words[0]!
    const { attempt, id, seconds } = tellOf(words.slice(5).join(" "))
    sink({
      endMillis,
      durationMillis: seconds === undefined ? undefined : seconds * 1000,
      status,
      attempt,
      call: id === undefined ? undefined : `${id} ${request}`
    })
    return true
  }
}

import type { Reader } from "./entry.ts"
import { numberOf, statusOf, textsOf, timeOf, upstreamOf } from "./parts.ts"

/** -1 where the request was not sent on, or its answer did not come: then the time it took is not in the line. */
const sumOf = (seconds: ReadonlyArray<string>): number | undefined => {
  const parts = seconds.map(numberOf)
  return parts.every((part) => part !== undefined && part >= 0)
    ? parts.reduce<number>((sum, part) => sum + part!, 0) * 1000
    : undefined
}

/**
 * The access log of an Application Load Balancer. A request took the sum of the three processing times.
 * Source: Elastic Load Balancing, "Access logs for your Application Load Balancer", syntax.
 */
export const alb: Reader = {
  read: (line, sink) => {
    if (!/^(?:https?|h2|grpcs|wss?) /.test(line)) return false
    const words = textsOf(line, 0)
    if (words === undefined || words.length < 13) return false
    const endMillis = timeOf(words[1])
    const status = statusOf(words[8])
    if (
      endMillis === undefined || status === undefined || words.slice(5, 8).some((part) => numberOf(part) === undefined)
    ) {
      return false
    }
    const trace = words[17]
    sink({
      endMillis,
      durationMillis: sumOf(words.slice(5, 8)),
      // 460 is the ALB's own: the client has left.
      status: status === 460 ? 0 : status,
      attempt: undefined,
      call: trace === undefined || trace === "-" ? undefined : `${trace} ${words[12]}`,
      upstream: upstreamOf(words[4])
    })
    return true
  }
}

import { get, look } from "../tryGet.ts"
import { findCause } from "./errorCodes.ts"
import { pushback } from "./grpcHint.ts"
import { hintMillis } from "./hint.ts"
import { answerOf, headerIn, isAnswer, statusOf } from "./wire.ts"

/** The server's answer in an error: the error itself, or a cause. */
const answerIn = (error: unknown): unknown => findCause(error, isAnswer)

/** The status of a response: that of the error, else that of the server's answer in a cause. */
export const statusIn = (error: unknown): number | undefined => statusOf(error) ?? statusOf(answerIn(error))

/** Whether a gateway answers that the resource was too slow: a timeout, seen nearer to it. */
export const isTooSlow = (error: unknown): boolean => statusOf(answerIn(error)) === 504

/** The headers for what is left of a window, and the date they refer to. They come with every answer. */
const ofWindows = /ratelimit|^date$/

/**
 * How long the server asks all its callers to wait, in a successful response, in milliseconds. Below 400 only used-up
 * windows count: there `Retry-After` is about the request itself, such as a redirect or a running job.
 */
export const hintOfValue = (value: unknown, wallMillis: () => number): number | undefined => {
  const [headers, status] = [get(value, "headers"), statusOf(value)]
  if (typeof headers !== "object" || headers === null || status === undefined) return undefined
  return look(() => {
    const header = headerIn(headers)
    const read = status < 400 ? (name: string) => ofWindows.test(name) ? header(name) : undefined : header
    return hintMillis({ status, header: read, bodies: () => [] }, wallMillis)
  })
}

/** The same in an error unknown to the classifier, such as a 403 for a used-up limit. */
export const hintOfError = (error: unknown, wallMillis: () => number): number | undefined => {
  const answer = answerIn(error)
  if (answer === undefined) return undefined
  return look(() => {
    const pushed = pushback(answer)
    return typeof pushed === "number" ? pushed : hintMillis(answerOf(answer, statusOf(answer)), wallMillis)
  })
}

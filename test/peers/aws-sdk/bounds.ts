import { limit } from "./servers.ts"
import type { Course } from "./steady.ts"

/** The second from which the rate has to be steady. */
export const settled = 8

/** The sum. */
export const sum = (row: ReadonlyArray<number>): number => row.reduce((before, value) => before + value, 0)

/** Answers per second once settled. */
export const meanRate = ({ ok }: Course): number => sum(ok.slice(settled)) / (ok.length - settled)

/** Requests sent for each answer, from a second on. */
export const perSuccess = ({ ok, sent }: Course, from = settled): number => sum(sent.slice(from)) / sum(ok.slice(from))

/** Seconds without an answer, once settled. */
export const zeros = ({ ok }: Course): number => ok.slice(settled).filter((count) => count === 0).length

/** The bounds that a course does not keep once it has settled. */
export const misses = (course: Course): ReadonlyArray<string> => {
  const rate = meanRate(course)
  const sent = perSuccess(course)
  const stalls = zeros(course)
  return [
    ...Math.abs(rate - limit.perSecond) <= limit.perSecond / 10 ? [] : [`${rate} answers per second`],
    ...stalls === 0 ? [] : [`${stalls} seconds without an answer`],
    ...sent <= 1.06 ? [] : [`${sent} requests per answer`]
  ]
}

/** Whether the standard strategy of the SDK, which does not slow down, is hardly throttled: then no side sends enough. */
export const isIdle = (course: Course): boolean => course.name === "SDK, standard" && perSuccess(course) <= 1.3

/** Whether a row is about us. */
export const isOurs = ({ name }: { readonly name: string }): boolean => name.startsWith("ours")

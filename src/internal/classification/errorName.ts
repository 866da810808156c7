import { get, short } from "../tryGet.ts"
import { causesOf } from "./errorCodes.ts"
import { statusIn } from "./resource.ts"

/** What may appear in a log line: no message, nothing secret. */
export const isWord = (u: unknown): u is string => /^[\w.$:#/-]{1,64}$/.test(short(u)) && u !== "Error"

/** The name of the error, or of its cause; nothing of its message. */
export const wordOf = (error: unknown): string | undefined =>
  [...causesOf(error).map((cause) => get(cause, "code")), get(error, "_tag"), get(error, "name")].find(isWord)

/** What an error without a name of its own is. */
const kindOf = (error: unknown): string =>
  error === null ? "null" : get(error, "name") === "Error" ? "a plain Error" : `a value of type ${typeof error}`

/** The name of the error, and the status of a response, also of one in a cause. */
export const nameOf = (error: unknown): string => {
  const status = statusIn(error)
  return [status === undefined ? [] : `HTTP ${status}`, wordOf(error) ?? []].flat().join(" ") || kindOf(error)
}

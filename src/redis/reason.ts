import * as Cause from "effect/Cause"
import { get } from "../internal/safe.ts"

const mostCharacters = 120

/** Why Redis gave no answer, in a line: the message at the bottom of the error, cut short. */
export const reasonOf = (cause: Cause.Cause<unknown>): string => {
  let error: unknown = Cause.squash(cause)
  for (let depth = 0; depth < 5; depth++) {
    const inner = get(error, "cause")
    if (inner === undefined || inner === null) break
    error = inner
  }
  const message = get(error, "message")
  const text = typeof message === "string" && message !== "" ? message : "an error without a message"
  return text.slice(0, mostCharacters).replaceAll(/\s+/g, " ")
}

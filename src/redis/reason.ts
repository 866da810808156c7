import * as Cause from "effect/Cause"
import { get } from "../internal/safe.ts"

const mostCharacters = 120

/** Who logs in, and with what, and the settings behind a question mark: none of it belongs into a log. */
const secretsOfAddresses = /(?<=:\/\/)[^\s/]*@|\?\S*/g

/** Why Redis gave no answer, in a line: the message at the bottom of the error, or its code, cut short. */
export const reasonOf = (cause: Cause.Cause<unknown>): string => {
  let error: unknown = Cause.squash(cause)
  for (let depth = 0; depth < 5; depth++) {
    const inner = get(error, "cause")
    if (inner === undefined || inner === null) break
    error = inner
  }
  // Where a name has several addresses, the error has the code only.
  const text = [get(error, "message"), get(error, "code")].find((each) => typeof each === "string" && each !== "")
  const shown = String(text ?? "an error without a message").replaceAll(secretsOfAddresses, "")
  return shown.slice(0, mostCharacters).replaceAll(/\s+/g, " ")
}

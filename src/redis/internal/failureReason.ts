import * as Cause from "effect/Cause"
import { get, short } from "../../internal/tryGet.ts"

/** Beginnings of error replies that repeat nothing of what was sent. The most specific come first. */
const replies: ReadonlyArray<string> = [
  "ERR unknown command 'AUTH'",
  "ERR unknown command 'CLIENT'",
  "ERR unknown command 'EVALSHA'",
  "ERR unknown command 'HELLO'",
  "ERR unknown command 'SCRIPT'",
  "ERR unknown command 'SELECT'",
  "ERR AUTH <password> called without any password configured",
  "ERR Client sent AUTH, but no password is set",
  "ERR DB index is out of range",
  "ERR Error compiling script",
  "ERR Error running script",
  "ERR invalid password",
  "ERR max number of clients reached",
  ..."ASK BUSY CLUSTERDOWN CROSSSLOT DENIED ERR LOADING MASTERDOWN MISCONF MOVED NOAUTH NOPERM NOPROTO".split(" "),
  ..."NOREPLICAS NOSCRIPT OOM READONLY STALE TRYAGAIN WRONGPASS WRONGTYPE".split(" ")
]

/** Codes of the system, of Node and of OpenSSL, such as `ECONNREFUSED`, `ERR_INVALID_URL`, `CERT_HAS_EXPIRED`. */
const systemCode =
  /^(?:E[A-Z]{2,15}\d?|(?:CERT|CRL|DEPTH|EAI|ERR|ERROR|HOSTNAME|INVALID|SELF|UNABLE|UND)_[A-Z\d_]{2,50})$/

const className = /^(?!Error$)[A-Z][A-Za-z]{0,50}(?:Error|Reply)$/

const replyOf = (error: unknown): string | undefined => {
  const message = get(error, "message")
  if (typeof message !== "string") return undefined
  // Redis 5 quotes with backticks.
  const text = message.slice(0, 100).replaceAll("`", "'")
  return replies.find((reply) => text === reply || [" ", ",", ":"].some((end) => text.startsWith(reply + end)))
}

const matching = (pattern: RegExp, values: ReadonlyArray<unknown>): string | undefined =>
  values.filter((value) => typeof value === "string").find((value) => pattern.test(short(value)))

const codeOf = (error: unknown): string | undefined => matching(systemCode, [get(error, "code")])

const nameOf = (error: unknown): string | undefined =>
  matching(className, [get(error, "name"), get(get(error, "constructor"), "name")])

/** The error and its causes, the deepest first. */
const chainOf = (cause: Cause.Cause<unknown>): ReadonlyArray<unknown> => {
  const errors: Array<unknown> = []
  let error: unknown = Cause.squash(cause)
  for (let depth = 0; depth < 5 && error !== undefined && error !== null; depth++) {
    errors.unshift(error)
    // The driver puts the error it gave up on in `originalError`.
    error = get(error, "cause") ?? get(error, "originalError")
  }
  return errors
}

/**
 * Why Redis did not respond: the beginning of its error reply, the code of a network error, or the name of the driver's
 * error. Nothing else of the error is shown: a reply repeats what it was sent, including passwords and keys, and an
 * error of the driver may contain the address with them.
 */
export const reasonOf = (cause: Cause.Cause<unknown>): string => {
  const errors = chainOf(cause)
  const sayings = [...errors.map((error) => replyOf(error) ?? codeOf(error)), ...errors.map(nameOf)]
  return sayings.find((saying) => saying !== undefined) ?? "an unknown error"
}

import type * as Duration from "effect/Duration"
import * as Headers from "effect/http/Headers"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { headerIn } from "../../../internal/facts/wire.ts"
import { Refused } from "../../../internal/refused.ts"
import { get } from "../../../internal/safe.ts"
import * as RetryClassifier from "../../../RetryClassifier.ts"
import * as RetryInfo from "../../../RetryInfo.ts"

/** STS could not reach the identity provider: its own name, and that on the wire. */
const identityProviderCodes: ReadonlySet<unknown> = new Set([
  "IDPCommunicationError",
  "IDPCommunicationErrorException"
])

const veto = Option.some(RetryInfo.notRetryable)
const transient = Option.some(RetryInfo.transient)

const aborted: RetryClassifier.RetryClassifier = (error) => get(error, "name") === "AbortError" ? veto : Option.none()

/** What the SDK for JavaScript holds for transient beyond the default chain. */
const special: RetryClassifier.RetryClassifier = (error) => {
  const name = get(error, "name")
  if (identityProviderCodes.has(name) || identityProviderCodes.has(get(error, "Code"))) return transient
  const message = get(error, "message")
  const expired = name === "InvalidSignatureException" && typeof message === "string" &&
    message.includes("Signature expired")
  return expired ? transient : Option.none()
}

/** The default chain between the two, asked of each cause: what caused an abort is no reason to ask again. */
const known = RetryClassifier.followingCause(RetryClassifier.chain([
  aborted,
  RetryClassifier.carried,
  RetryClassifier.effectErrors,
  RetryClassifier.aws,
  RetryClassifier.httpStatus,
  RetryClassifier.network,
  RetryClassifier.grpc,
  special
]))

const faultOf = (error: unknown): RetryInfo.Fault | undefined => {
  const fault = get(error, "$fault")
  return fault === "client" || fault === "server" ? fault : undefined
}

/** The facts of an error of the SDK; none when nothing is known of it. */
export const classifier: RetryClassifier.RetryClassifier = (error) => {
  const own = RetryInfo.fromError(error)
  if (Option.isSome(own)) return own
  return Option.map(known(error), (info) => RetryInfo.make({ ...info, fault: faultOf(error) ?? info.fault }))
}

/** What the `retry-after` of a response asks to wait when it is a date, in milliseconds. */
const untilDate = (error: unknown, nowMillis: number): Duration.Duration | undefined => {
  const headers = get(get(error, "$response"), "headers")
  if (typeof headers !== "object" || headers === null) return undefined
  const value = headerIn(headers)("retry-after")
  const parsed = typeof value === "string" ? Headers.parseRetryAfter(value) : undefined
  if (parsed === undefined || Result.isFailure(parsed)) return undefined
  return parsed.success._tag === "DateTime" ? Headers.retryAfterDelay(parsed.success, nowMillis) : undefined
}

/** The facts of an error that a send ended with: those that the classifier has, else that nothing speaks for a retry. */
const factsOf = (error: unknown, nowMillis: number): RetryInfo.RetryInfo => {
  const info = Option.getOrUndefined(RetryClassifier.classify(classifier, error))
  if (info === undefined) return RetryInfo.make({ safety: "No", fault: faultOf(error) })
  const retryAfter = info.retryAfter ?? untilDate(error, nowMillis)
  return retryAfter === info.retryAfter ? info : RetryInfo.make({ ...info, retryAfter })
}

/** Puts a hidden property on an error. One that takes none stays as it is. */
const hide = (error: object, key: PropertyKey, value: unknown): void => {
  try {
    Reflect.defineProperty(error, key, { value, enumerable: false, configurable: true, writable: true })
  } catch {
    // A proxy may refuse by throwing.
  }
}

/** Lets an error carry its facts, and returns them. The error stays the same object, with the same visible properties. */
export const carry = (error: unknown, nowMillis: number): RetryInfo.RetryInfo => {
  const own = RetryInfo.fromError(error)
  if (Option.isSome(own)) return own.value
  const info = factsOf(error, nowMillis)
  if (typeof error === "object" && error !== null) hide(error, RetryInfo.TypeId, info)
  return info
}

/** Lets an error say that its send cannot be repeated, whatever the policy. */
export const forbid = (error: unknown): void => {
  if (typeof error !== "object" || error === null) return
  hide(error, RetryInfo.TypeId, RetryInfo.notRetryable)
  hide(error, Refused, true)
}

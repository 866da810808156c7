import type { HttpResponse, ResponseMetadata, RetryableTrait } from "@smithy/types"
import * as Option from "effect/Option"
import { faultOfSdk } from "../../../internal/classification/smithyTraits.ts"
import { Refused } from "../../../internal/refused.ts"
import { get, look } from "../../../internal/tryGet.ts"
import * as RetryClassifier from "../../../RetryClassifier.ts"
import * as RetryInfo from "../../../RetryInfo.ts"

/** The error of a send. */
export interface SdkError extends Error {
  /** The code of a network error, such as `"ECONNRESET"`. */
  readonly code?: string | undefined
  /** Who is at fault, if a service said so. */
  readonly $fault?: "client" | "server" | undefined
  /** The service it came from. */
  readonly $service?: string | undefined
  /** The service's model says that it is transient. */
  readonly $retryable?: RetryableTrait | undefined
  /** From the response, if there was one: status, request id. */
  readonly $metadata?: ResponseMetadata | undefined
  /** The response, if there was one. */
  readonly $response?: HttpResponse | undefined
}

/** What the SDK threw or rejected with; a value that is not an object is wrapped, as by the SDK's own retries. */
export const thrown = (error: unknown): { readonly error: SdkError } => ({
  error: typeof error === "object" && error !== null ? error as SdkError : new Error(String(error))
})

/** STS could not reach the identity provider: its own name, and the one on the wire. */
const identityProviderCodes = new Set<unknown>(["IDPCommunicationError", "IDPCommunicationErrorException"])

const veto = Option.some(RetryInfo.notRetryable)
const transient = Option.some(RetryInfo.transient)

const aborted: RetryClassifier.RetryClassifier = (error) => get(error, "name") === "AbortError" ? veto : Option.none()

/** What the SDK for JavaScript considers transient beyond the default chain. */
const special: RetryClassifier.RetryClassifier = (error) => {
  const name = get(error, "name")
  const isUnreachable = identityProviderCodes.has(name) || identityProviderCodes.has(get(error, "Code"))
  const isExpired = name === "InvalidSignatureException" && String(get(error, "message")).includes("Signature expired")
  return isUnreachable || isExpired ? transient : Option.none()
}

/** The default chain between the two, applied to each cause: the cause of an abort is no reason to retry. */
const sdkClassifier = RetryClassifier.followingCause(RetryClassifier.chain([
  aborted,
  RetryClassifier.carried,
  RetryClassifier.effectErrors,
  RetryClassifier.aws,
  RetryClassifier.httpStatus,
  RetryClassifier.network,
  RetryClassifier.grpc,
  special
]))

/** The facts of an error of the SDK; none if it is unknown. */
export const classifier: RetryClassifier.RetryClassifier = RetryClassifier.orElse(
  RetryClassifier.carried,
  (error) =>
    Option.map(sdkClassifier(error), (info) => RetryInfo.make({ ...info, fault: faultOfSdk(error) ?? info.fault }))
)

/** Puts a hidden property on an error. What cannot take it stays as it is: no object, a proxy that refuses by throwing. */
const hide = (error: unknown, key: PropertyKey, value: unknown): void =>
  void look(() => Reflect.defineProperty(error as object, key, { value, configurable: true, writable: true }))

/** The facts of an error that no classifier knows. */
export const unknownInfo = (error: unknown): RetryInfo.RetryInfo =>
  RetryInfo.make({ safety: "No", fault: faultOfSdk(error) })

/**
 * Attaches the facts of the classifier to an error that ended a send, else that it is not retryable, and returns them.
 * It stays the same object, with the same visible properties.
 */
export const carry = (error: unknown): RetryInfo.RetryInfo => {
  const own = RetryInfo.fromError(error)
  if (Option.isSome(own)) return own.value
  const info = Option.getOrElse(RetryClassifier.classify(classifier, error), () => unknownInfo(error))
  hide(error, RetryInfo.TypeId, info)
  return info
}

/** Marks an error so that its send is not repeated under any policy. */
export const forbid = (error: unknown): void => {
  hide(error, RetryInfo.TypeId, RetryInfo.notRetryable)
  hide(error, Refused, true)
}

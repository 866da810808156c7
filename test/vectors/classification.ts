import { conformance } from "../utils/conformance.ts"

const tables = conformance("classification")

/** The class of an error as smithy-typescript gives it, and whether the client itself gave up waiting: that is ours. */
export interface JsVector {
  readonly name: string
  readonly error: object
  readonly errorType: "THROTTLING" | "TRANSIENT" | "SERVER_ERROR" | "CLIENT_ERROR"
  readonly timeout?: true
}

/** What no JSON has. */
const selfReferencing = () => {
  const error: { cause?: unknown } = {}
  error.cause = error
  return error
}

export const js: ReadonlyArray<JsVector> = [
  ...tables.javascript,
  { name: "cause itself", error: selfReferencing(), errorType: "CLIENT_ERROR" }
]

/** A response as botocore classifies it; `code` or `status` may be missing. */
export interface BotocoreVector {
  readonly status: number
  readonly code?: string
  /** `"no"`: neither throttled nor transient. */
  readonly is: "throttled" | "transient" | "no"
}

export const botocore: ReadonlyArray<BotocoreVector> = tables.botocore

/** What botocore's ConnectionError and HTTPClientError, both transient, are in Node. */
export const botocoreExceptions: ReadonlyArray<{ readonly name: string; readonly error: object }> =
  tables.botocoreExceptions

/** Errors that the service model marks, which JavaScript reads from `$retryable`. */
export const botocoreModeled: ReadonlyArray<BotocoreVector & { readonly trait?: { readonly throttling?: true } }> =
  tables.botocoreModeled

/** Retried only once the signer has corrected its clock. */
export const clockSkewCodes: ReadonlyArray<string> = tables.clockSkewCodes.map(({ code }: { code: string }) => code)

/** What the reference guide says of a status without a code. */
export const reference: ReadonlyArray<BotocoreVector> = tables.reference

/** What it says of a code, whatever the status, but for a 429. */
export const referenceCodes: ReadonlyArray<{ readonly code: string; readonly is: "throttled" | "transient" }> =
  tables.referenceCodes

import { get } from "../tryGet.ts"
import { isRetryStatus } from "./wire.ts"

/** The annotation for Smithy's `@retryable` trait; its value is `{ throttling }`. */
export const retryableKey = "~effect-retry/smithy/retryable" as const

/** The annotation for Smithy's `@error` trait; its value is the fault. */
export const errorKey = "~effect-retry/smithy/error" as const

/** The annotation for Smithy's `@httpError` trait; its value is the status. */
export const httpErrorKey = "~effect-retry/smithy/httpError" as const

/** The traits on a class of errors. */
export interface Traits {
  readonly [retryableKey]?: { readonly throttling: boolean }
  readonly [errorKey]?: "client" | "server"
  readonly [httpErrorKey]?: number
}

/** What traits say about retrying. */
export interface TraitInfo {
  readonly safety: "Yes" | "No" | "Maybe"
  readonly throttling: boolean
  readonly fault: "client" | "server" | undefined
}

/** Who is at fault for an error of an AWS SDK, if it says so. */
export const faultOfSdk = (error: unknown): "client" | "server" | undefined => {
  const fault = get(error, "$fault")
  return fault === "client" || fault === "server" ? fault : undefined
}

/** Who is at fault for a response with this HTTP status. */
export const faultOfStatus = (status: unknown): "client" | "server" | undefined => {
  if (typeof status !== "number" || !(status >= 400 && status < 600)) return undefined
  return status < 500 ? "client" : "server"
}

/** Who is at fault for the errors of a class with these traits. */
export const faultOf = (traits: Traits): "client" | "server" | undefined =>
  traits[errorKey] ?? faultOfStatus(traits[httpErrorKey])

/**
 * The facts of the errors of a class with these traits: `@retryable` makes them safe to retry; without it, a server
 * fault may be retried and a client fault may not, as Smithy's guide says, regardless of the status; without a fault,
 * the status decides as for any HTTP error.
 */
export const infoOfTraits = (traits: Traits): TraitInfo | undefined => {
  const { [errorKey]: fault, [httpErrorKey]: status, [retryableKey]: retryable } = traits
  if (retryable !== undefined) return { safety: "Yes", throttling: retryable.throttling, fault: faultOf(traits) }
  if (fault !== undefined) return { safety: fault === "server" ? "Maybe" : "No", throttling: false, fault }
  if (status === undefined || !isRetryStatus(status)) return undefined
  return { safety: "Yes", throttling: status === 429, fault: status === 429 ? "client" : "server" }
}

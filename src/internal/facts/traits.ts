import { httpTransientStatuses } from "./codes.ts"

/** The annotation that Smithy's `@retryable` trait becomes; its value is `{ throttling }`. */
export const retryableKey = "~effect-retry/smithy/retryable" as const

/** The annotation that Smithy's `@error` trait becomes; its value is the fault. */
export const errorKey = "~effect-retry/smithy/error" as const

/** The annotation that Smithy's `@httpError` trait becomes; its value is the status. */
export const httpErrorKey = "~effect-retry/smithy/httpError" as const

/** The traits on a class of errors. */
export interface Traits {
  readonly [retryableKey]?: { readonly throttling: boolean }
  readonly [errorKey]?: "client" | "server"
  readonly [httpErrorKey]?: number
}

/** What traits say about retrying. */
export interface TraitFacts {
  readonly safety: "Yes" | "No" | "Maybe"
  readonly throttling: boolean
  readonly fault: "client" | "server" | undefined
}

/** Whose fault a response with this HTTP status is. */
export const faultOfStatus = (status: unknown): "client" | "server" | undefined => {
  if (typeof status !== "number" || !(status >= 400 && status < 600)) return undefined
  return status < 500 ? "client" : "server"
}

/** Whose fault the errors of a class with these traits are. */
export const faultOf = (traits: Traits): "client" | "server" | undefined =>
  traits[errorKey] ?? faultOfStatus(traits[httpErrorKey])

/**
 * The facts of the errors of a class with these traits: `@retryable` makes them safe to retry; without it a server's fault
 * may be retried and a client's must not be, as Smithy's guide says, whatever the status; without a fault the status
 * decides as it does for any HTTP error.
 */
export const factsOf = (traits: Traits): TraitFacts | undefined => {
  const { [errorKey]: fault, [httpErrorKey]: status, [retryableKey]: retryable } = traits
  if (retryable !== undefined) return { safety: "Yes", throttling: retryable.throttling, fault: faultOf(traits) }
  if (fault !== undefined) return { safety: fault === "server" ? "Maybe" : "No", throttling: false, fault }
  if (status === 429) return { safety: "Yes", throttling: true, fault: "client" }
  if (status === undefined || !httpTransientStatuses.has(status)) return undefined
  return { safety: "Yes", throttling: false, fault: "server" }
}

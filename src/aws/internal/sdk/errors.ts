import type { HttpResponse, ResponseMetadata, RetryableTrait } from "@smithy/types"

/** What a send fails with. */
export interface SdkError extends Error {
  /** The code of a network error, such as `"ECONNRESET"`. */
  readonly code?: string | undefined
  /** Whose fault it is, if a service said so. */
  readonly $fault?: "client" | "server" | undefined
  /** The service that it came from. */
  readonly $service?: string | undefined
  /** The service's model says that it passes. */
  readonly $retryable?: RetryableTrait | undefined
  /** Of the response, if there was one: status, request id. */
  readonly $metadata?: ResponseMetadata | undefined
  /** The response, if there was one. */
  readonly $response?: HttpResponse | undefined
}

/** What the SDK threw or rejected with; what is no object is wrapped, as the SDK's own retries do. */
export const thrown = (error: unknown): { readonly error: SdkError } => ({
  error: typeof error === "object" && error !== null ? error as SdkError : new Error(String(error))
})

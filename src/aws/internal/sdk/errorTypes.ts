import type { HttpResponse, ResponseMetadata, RetryableTrait } from "@smithy/types"

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

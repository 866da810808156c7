/** The gRPC statuses, by number. */
const names = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED"
]

export const isGrpcStatus = (u: unknown): u is number => typeof u === "number" && names[u] !== undefined

/** The number of a status given by name, in any case, or by number. */
export const grpcStatusOf = (input: unknown): number | undefined => {
  const status = typeof input === "string" ? names.indexOf(input.toUpperCase()) : input
  return isGrpcStatus(status) ? status : undefined
}

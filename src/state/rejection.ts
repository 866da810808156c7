import type { Outcome } from "../SendGate.ts"

/** Whether a failure says that the service did not do what it was asked for: it may be retried, or a rule forbids that. */
export const isRejected = ({ info }: Outcome): boolean =>
  info !== undefined && (info.safety !== "No" || info.throttling || info.timeout || info.vetoed === true)

import type { Outcome } from "../SendGate.ts"

/** Whether a failure means that the service did not do what was asked: it may be retried, or a rule forbids that. */
export const isRejected = ({ info }: Outcome): boolean =>
  info !== undefined && (info.safety !== "No" || info.throttling || info.timeout || info.vetoed === true)

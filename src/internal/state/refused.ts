import { look } from "../safe.ts"

/** On the errors of sends that the quota or the limiter refused: no policy retries them. */
export const Refused = Symbol.for("effect-retry/Refused")

/** Whether the error says that the library itself refused the send. */
export const isRefused = (error: any): boolean => look(() => error?.[Refused]) === true

import * as Context from "effect/Context"
import * as Schedule from "effect/Schedule"
import { isRetryToken } from "../RetryToken.ts"

/** Present in the context of everything that runs inside an attempt. */
const InsideAttempt = Context.Reference<boolean>("effect-retry/engine/InsideAttempt", {
  defaultValue: () => false
})

/**
 * Attempts mark their context only from the moment a policy asks whether it is nested: the mark costs as much as all the
 * rest of a call that succeeds.
 */
export const nesting = { inUse: false }

/** Whether an outer call, around this context, retries. */
export const isNested = (context: Context.Context<never>): boolean =>
  Context.get(context, InsideAttempt) || isRetryToken(Context.get(context, Schedule.CurrentMetadata).output)

/** The context of what runs inside an attempt. */
export const inside = (context: Context.Context<any>): Context.Context<any> => Context.add(context, InsideAttempt, true)

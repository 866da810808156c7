import * as Context from "effect/Context"

/** An attempt of a call that retries. What was forked inside it and outlives it is inside no longer. */
export class Mark {
  active = true
}

const InsideAttempt = Context.Reference<Mark | undefined>("effect-retry/engine/InsideAttempt", {
  defaultValue: () => undefined
})

/**
 * Attempts mark their context only from the moment a policy asks whether it is nested: the mark costs as much as all the
 * rest of a call that succeeds.
 */
export const nesting = { inUse: false }

/** Whether an outer call, around this context, retries. */
export const isNested = (context: Context.Context<never>): boolean =>
  Context.get(context, InsideAttempt)?.active === true

/** The context of what runs inside an attempt. */
export const inside = (context: Context.Context<any>, mark: Mark): Context.Context<any> =>
  Context.add(context, InsideAttempt, mark)

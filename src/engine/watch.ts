import type { CallFiber } from "./clock.ts"
import type { Held } from "./store.ts"

/** A retry that has not left yet. */
interface Pending {
  readonly held: Held | undefined
  unwatch: (() => void) | undefined
  readonly claimUnsafe: () => boolean
}

const waiting = new WeakMap<CallFiber, Pending>()

/**
 * Gives back what the token holds if the fiber ends before the retry leaves, whatever ends it. A schedule can also be
 * stopped by a combinator around it, of which it never hears; so a fiber that is seen running gives back what it held.
 */
export const watch = (token: Pending, fiber: CallFiber): void => {
  const { held } = token
  if (held === undefined) return
  releaseHeld(fiber)
  waiting.set(fiber, token)
  const unobserve = fiber.addObserver(() => held.giveBackUnsafe())
  token.unwatch = () => {
    waiting.delete(fiber)
    unobserve()
  }
}

/** Gives back what the fiber holds for a retry that never left: it is running, so it is not in back-off. */
export const releaseHeld = (fiber: CallFiber): void => {
  const token = waiting.get(fiber)
  if (token !== undefined && token.claimUnsafe()) token.held?.giveBackUnsafe()
}

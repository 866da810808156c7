/**
 * What the lab still takes from inside the library. Nothing else in the lab reaches behind its public modules; each of
 * these wants a public name, or to go.
 */
import type { Service } from "effect-retry/RetryQuota"
import type * as Clock from "effect/Clock"

export { fromParts, TypeId } from "effect-retry/RetryPolicy"
export { noDelay, type Parts } from "../../src/internal/engine/verdict.ts"

/** The tokens of a quota now, without an effect. */
export const balanceOf = (quota: Service | undefined, clock: Clock.Clock): number => quota?.store.balance(clock) ?? 0

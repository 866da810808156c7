/**
 * What the lab still takes from inside the library. Nothing else in the lab reaches behind its public modules; each of
 * these wants a public name, or to go.
 */
import { TypeId } from "effect-retry/RetryPolicy"
import type { Service } from "effect-retry/RetryQuota"
import type * as Clock from "effect/Clock"
import type { Parts } from "../../src/internal/engine/parts.ts"

interface AnyPolicy {
  readonly [TypeId]: unknown
}

export type { Parts } from "../../src/internal/engine/parts.ts"

/** What a policy is made of. */
export const partsOf = (policy: AnyPolicy): Parts => policy[TypeId] as Parts

/** The policy with other parts, for `withRetry` alone: it prints, and decides as a schedule, as it did. */
export const withParts = <P extends AnyPolicy>(policy: P, changes: Partial<Parts>): P =>
  Object.create(policy, { [TypeId]: { value: { ...partsOf(policy), ...changes } } })

/** In place of a delay: the delays have ended. */
export const noDelay = -1

/** The tokens of a quota now, without an effect. */
export const balanceOf = (quota: Service | undefined, clock: Clock.Clock): number => quota?.store.balance(clock) ?? 0

import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type { AdaptiveGate, AdaptiveOptions } from "../../gates/internal/adaptiveGate.ts"
import type { CoolDownGate } from "../../gates/internal/coolDownGate.ts"
import { amount, count, duration, inCode, optional, positive, positiveDuration, word } from "../../internal/options.ts"
import type { AnyContext } from "../../internal/shared.ts"
import type { RetryQuotaStore } from "../../RetryQuotaStore.ts"

/** The options of a quota, as `RetryQuota` checks them: every program with retries loads that, and nothing of this. */
export const quotaOptions = {
  capacity: positive(500),
  initial: optional(amount()),
  refillPerSecond: amount(0),
  successIncrement: amount(1),
  firstAttemptCost: amount(0),
  onExceeded: word("stop", "wait"),
  maxWaiters: count(0, 100_000)
}

/** How a section is shared, whatever it is. */
export const fleetOptions = {
  name: inCode,
  prefix: inCode,
  timeout: positiveDuration(50),
  fallbackTime: positiveDuration(1000)
}

const lookInterval = positiveDuration(250)

/** How each section is shared besides. */
export const fleetOptionsOf = {
  quota: {
    leaseTime: positiveDuration(120_000),
    idleTimeToLive: optional(positiveDuration()),
    flushInterval: duration(100),
    fallback: inCode
  },
  limiter: { lookInterval, idleTimeToLive: positiveDuration(600_000) },
  coolDown: { lookInterval }
}

/** The quota of a process that decides alone. */
export const fallbackOptions = {
  capacity: optional(positive()),
  initial: optional(amount()),
  refillPerSecond: optional(amount())
}

/** The checked options of what a fleet shares, for a resource. Only who made them reads them. */
export type FleetOptions = (resource: string) => unknown

/** What a fleet shares of one resource, until it is closed. */
export interface FleetPart {
  /** Follows other options; `false` if they name something else, so that another one has to be made. */
  readonly change: (options: FleetOptions, clock: Clock.Clock) => boolean
  /** What is left to report is reported first. Passes and reservations can still be settled. */
  readonly close: () => void
}

/** Whose the part is, and the services of the layer that it lives in, a scope among them. */
export interface Owner {
  readonly resource: string
  readonly context: AnyContext
}

/** How something is shared. */
export interface Sharing<Subject, Member = unknown> {
  /** Checks the options of a section, and those of how it is shared. Throws `InvalidOption`. */
  readonly check: (own: object, shared: object) => FleetOptions
  readonly join: (subject: Subject, options: FleetOptions, owner: Owner) => FleetPart & { readonly member: Member }
}

/** What makes the sections of a document that many processes share. The program provides it. */
export interface Fleet {
  /** A quota that the fleet does not have yet begins with these tokens. */
  readonly quota: Sharing<number | undefined, RetryQuotaStore>
  readonly limiter: Sharing<AdaptiveGate>
  readonly coolDown: Sharing<CoolDownGate>
  /** A limiter that can join. */
  readonly limiterGate: (options: AdaptiveOptions, nowMillis: number) => AdaptiveGate
}

/** What makes shared sections, if the program provides it. */
export const CurrentFleet = Context.Reference<Fleet | undefined>("effect-retry/config/fleetStores", {
  defaultValue: () => undefined
})

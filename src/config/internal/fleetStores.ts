import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type { AdaptiveGate, AdaptiveOptions } from "../../gates/internal/adaptiveGate.ts"
import type { CoolDownGate } from "../../gates/internal/coolDownGate.ts"
import type { AnyContext } from "../../internal/shared.ts"
import type { RetryQuotaStore } from "../../RetryQuotaStore.ts"
import type { SendGate } from "../../SendGate.ts"

/** The checked options of what a fleet shares. Only who made them reads them. */
export interface FleetOptions {
  readonly of: (resource: string) => unknown
}

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

/** The quota of a fleet. */
interface FleetQuota extends FleetPart {
  readonly store: RetryQuotaStore
}

/** Checks the options of a section, and those of how it is shared. Throws `InvalidOption`. */
type Check = (own: object, shared: object) => FleetOptions

/** What makes the sections of a document that many processes share. The program provides it. */
export interface Fleet {
  readonly quota: {
    readonly check: Check
    /** A quota that the fleet does not have yet begins with these tokens. */
    readonly make: (options: FleetOptions, owner: Owner, tokens: number | undefined) => FleetQuota
  }
  readonly limiter: {
    readonly check: Check
    /** A gate that can join. */
    readonly gate: <E>(options: AdaptiveOptions<E>, nowMillis: number) => AdaptiveGate<E>
    readonly join: (gate: SendGate<any>, options: FleetOptions, owner: Owner) => FleetPart
  }
  readonly coolDown: {
    readonly check: Check
    readonly join: (gate: CoolDownGate<any>, options: FleetOptions, owner: Owner) => FleetPart
  }
}

/** What makes shared sections, if the program provides it. */
export const CurrentFleet = Context.Reference<Fleet | undefined>("effect-retry/config/fleetStores", {
  defaultValue: () => undefined
})

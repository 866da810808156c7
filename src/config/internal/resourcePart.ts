import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type { HedgeOptions, Home } from "../../hedge/internal/race.ts"
import type { Path } from "../../internal/invalidField.ts"
import type { AnyContext } from "../../internal/shared.ts"
import type { Owner } from "./fleetStores.ts"

/** What code allows documents to ask for. */
export interface Ceiling {
  /** The sends of a call, and the least time between two of them. */
  readonly attempts: number
  readonly leastMillis: number
  readonly unsafe: boolean
}

/** Set by code around the layer. */
export const CurrentCeiling = /* @__PURE__ */ Context.Reference<Ceiling>("effect-retry/RetryConfig/CurrentCeiling", {
  defaultValue: () => ({ attempts: 10, leastMillis: 0, unsafe: true })
})

/** What a resource has besides its policy, from its first use on, whatever the document says later. Made when it is needed. */
export interface Part {
  /** Whether it holds sends back, or may at any time. */
  readonly isOn: boolean
  /** Whether nothing that it has learned would be lost with it. */
  readonly isBlank: boolean
  /** Adds it to a context, if calls find it there. */
  readonly add?: (context: AnyContext) => AnyContext
  /** Switches to other options; `undefined` if the document no longer names it. */
  readonly change: (options: any, clock: Clock.Clock) => void
  /** It is used no more, except by calls in progress. */
  readonly close?: () => void
  /** How a call that asks for it is hedged. */
  readonly hedge?: Hedging | undefined
}

/** How a call is hedged, and what the calls of its resource share. */
export interface Hedging {
  readonly options: HedgeOptions
  readonly home: Home
}

/** One key of a resource: what can be set there, and what is made from it. */
export interface Section {
  readonly keys: ReadonlyArray<string>
  /** Gets what surrounds the document. Throws `InvalidOption`, naming the key, or rejects what is nested in it. */
  readonly check: (input: any, path: Path, context: AnyContext) => unknown
  /** Gets the checked options; `undefined` if the document does not name it. */
  readonly make: (options: any, owner: Owner) => Part
}

import type * as Context from "effect/Context"
import type * as Fiber from "effect/Fiber"

/** What must be one in a process, also where a program holds two copies of this package. */
export interface Shared {
  /** What each fiber holds for sends that are not settled: `engine/permit.ts`. */
  readonly watches: WeakMap<AnyFiber, any>
  /** The retries that `Effect.retry` is about to make, by their decision and by their delay: `engine/bridge.ts`. */
  readonly pending: WeakMap<object, any>
  /** The services that are gates, and how to find the gate in each. */
  readonly gates: Array<GateKey>
  /** Attempts mark their context from the first policy that asks whether it is nested: `engine/world.ts`. */
  nesting: boolean
  /** Sends that gates have let pass say so in their context from the first that can be hedged: `engine/hedge.ts`. */
  hedging?: boolean
}

/** A service that is a gate, or has one. */
interface GateKey {
  readonly tag: Context.Key<any, any>
  readonly gateOf: (service: any) => any
}

const key = Symbol.for("effect-retry/shared")

export const shared: Shared = /* @__PURE__ */ (() =>
  (globalThis as { [key]?: Shared })[key] ??= {
    watches: new WeakMap(),
    pending: new WeakMap(),
    gates: [],
    nesting: false
  })()

/** A fiber of any effect. */
export type AnyFiber = Fiber.Fiber<unknown, unknown>

/** The services of a fiber that runs. */
export type AnyContext = Context.Context<never>

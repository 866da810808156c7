import type * as Context from "effect/Context"
import type * as Fiber from "effect/Fiber"

/** State that must exist once per process, even if a program loads two copies of this package. */
export interface Shared {
  /** What each fiber holds for unsettled sends: `engine/permit.ts`. */
  readonly watches: WeakMap<AnyFiber, any>
  /** The retries that `Effect.retry` is about to make, by their decision and by their delay: `engine/bridge.ts`. */
  readonly pending: WeakMap<object, any>
  /** The services that are gates, and how to find the gate in each. */
  readonly gates: Array<GateKey>
  /** Set by the first policy that asks whether it is nested. */
  nesting: boolean
  /**
   * Set by that policy too, and by the first hedged call; from then on sends have marks in their context:
   * `engine/world.ts`.
   */
  marking?: boolean
  /** Set by the first call that tells other processes of itself; from then on calls look for it: `onward.ts`. */
  telling?: boolean
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

/** The services of a running fiber. */
export type AnyContext = Context.Context<never>

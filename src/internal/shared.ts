import type * as Context from "effect/Context"
import type * as Fiber from "effect/Fiber"

/** State that must exist once per process, even if a program loads two copies of this package. Its key has a version. */
export interface Shared {
  /** The services that are gates, and how to find the gate in each. */
  readonly gates: Array<GateKey>
  /**
   * Set by the first policy that asks whether it is nested, and by the first hedge; from then on sends have marks in
   * their context: `engine/environment.ts`.
   */
  marking: boolean
  /** How many layers of observers have been built: each has a key of its own. */
  layers?: number
}

/** Under this, a service that is a gate, or has one, carries its key: reading that alone does not make sends look for it. */
export const GateKeyed = "~effect-retry/SendGate/key"

/** A service that is a gate, or has one. */
interface GateKey {
  readonly tag: Context.Key<any, any>
  readonly gateOf: (service: any) => any
}

const key = Symbol.for("effect-retry/shared/1")

export const shared: Shared =
  /* @__PURE__ */ (() => (globalThis as { [key]?: Shared })[key] ??= { gates: [], marking: false })()

/** A fiber of any effect. */
export type AnyFiber = Fiber.Fiber<unknown, unknown>

/** The services of a running fiber. */
export type AnyContext = Context.Context<never>

/**
 * Lets attempts find the gate of a service. They look for it once its key has been read, as
 * anyone who provides it must, so a gate that is never used costs nothing.
 */
export const asGate = <Tag extends Context.Key<any, any>>(
  tag: Tag,
  gateOf: (service: Tag["Service"]) => unknown
): Tag => {
  const { key } = tag
  const service: object = tag
  Object.defineProperty(service, GateKeyed, { value: key })
  Object.defineProperty(service, "key", {
    configurable: true,
    get: () => {
      Object.defineProperty(service, "key", { value: key })
      if (shared.gates.every(({ tag }) => tag.key !== key)) shared.gates.push({ tag, gateOf })
      return key
    }
  })
  return tag
}

import * as Context from "effect/Context"
import * as ClientThrottle from "../../gates/ClientThrottle.ts"
import * as ConcurrencyLimiter from "../../gates/ConcurrencyLimiter.ts"
import * as CoolDown from "../../gates/CoolDown.ts"
import { concurrencyKind } from "../../gates/internal/concurrencyGate.ts"
import { coolDownKind } from "../../gates/internal/coolDownGate.ts"
import { throttleKind } from "../../gates/internal/throttleGate.ts"

/** The gates that a resource may have besides its limiter, by the names of their options. */
export const resourceGates = {
  concurrency: { tag: ConcurrencyLimiter.ConcurrencyLimiter, kind: concurrencyKind },
  throttle: { tag: ClientThrottle.ClientThrottle, kind: throttleKind },
  coolDown: { tag: CoolDown.CoolDown, kind: coolDownKind }
}

type Kinds = typeof resourceGates

export type GateName = keyof Kinds

export const gateNames = /* @__PURE__ */ Object.keys(resourceGates) as ReadonlyArray<GateName>

/** The gates of one resource. */
export type Gates = { readonly [Name in GateName]: ReturnType<Kinds[Name]["kind"]["make"]> | undefined }

/** The services of one resource. */
export type Services = { readonly [Name in GateName]: ReturnType<Kinds[Name]["kind"]["serviceOf"]> | undefined }

/** Without the gates that a resource could have. */
export const withoutGates = (context: Context.Context<any>): Context.Context<any> =>
  Context.omit(...gateNames.map((name): Context.Key<any, any> => resourceGates[name].tag))(context) as Context.Context<
    any
  >

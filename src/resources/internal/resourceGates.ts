import * as Context from "effect/Context"
import { ClientThrottle } from "../../gates/ClientThrottle.ts"
import { ConcurrencyLimiter } from "../../gates/ConcurrencyLimiter.ts"
import { CoolDown } from "../../gates/CoolDown.ts"
import { concurrencyKind } from "../../gates/internal/concurrencyGate.ts"
import { coolDownKind } from "../../gates/internal/coolDownGate.ts"
import { throttleKind } from "../../gates/internal/throttleGate.ts"

const tagged = <Kind>(tag: Context.Key<any, any>, kind: Kind) => ({ ...kind, tag })

/** The gates that a resource may have besides its limiter, by the names of their options. */
export const resourceGates = {
  concurrency: /* @__PURE__ */ tagged(ConcurrencyLimiter, concurrencyKind),
  throttle: /* @__PURE__ */ tagged(ClientThrottle, throttleKind),
  coolDown: /* @__PURE__ */ tagged(CoolDown, coolDownKind)
}

type Kinds = typeof resourceGates

export type GateName = keyof Kinds

export const gateNames = /* @__PURE__ */ Object.keys(resourceGates) as ReadonlyArray<GateName>

/** The gates of one resource. */
export type Gates = { readonly [Name in GateName]: ReturnType<Kinds[Name]["make"]> | undefined }

/** The services of one resource. */
export type Services = { readonly [Name in GateName]: ReturnType<Kinds[Name]["serviceOf"]> | undefined }

/** Without the gates that a resource could have. */
export const withoutGates = (context: Context.Context<any>): Context.Context<any> =>
  Context.omit(...Object.values(resourceGates).map(({ tag }) => tag))(context) as Context.Context<any>

import * as Context from "effect/Context"
import type * as Random from "effect/Random"
import * as ClientThrottle from "../../gates/ClientThrottle.ts"
import * as ConcurrencyLimiter from "../../gates/ConcurrencyLimiter.ts"
import * as CoolDown from "../../gates/CoolDown.ts"
import * as Concurrency from "../../gates/internal/concurrencyGate.ts"
import * as Cooling from "../../gates/internal/coolDownGate.ts"
import * as Throttle from "../../gates/internal/throttleGate.ts"

/** How a gate is made from its options, and its service from the gate. */
interface GateKind<Options, Valid, Gate, Service> {
  readonly tag: Context.Key<any, Service>
  readonly validated: (options: Options) => Valid
  readonly make: (valid: Valid, random: Random.Random, nowMillis: number) => Gate
  readonly serviceOf: (gate: Gate) => Service
}

/** Any of them. */
export type AnyGateKind = GateKind<any, any, any, any>

const kind = <Options, Valid, Gate, Service>(
  kind: GateKind<Options, Valid, Gate, Service>
): GateKind<Options, Valid, Gate, Service> => kind

/** The gates that a resource may have besides its limiter, by the names of their options. */
export const resourceGates = {
  concurrency: /* @__PURE__ */ kind({
    tag: ConcurrencyLimiter.ConcurrencyLimiter,
    validated: Concurrency.validated,
    make: (valid, random) => new Concurrency.ConcurrencyGate(valid, random),
    serviceOf: Concurrency.serviceOf
  }),
  throttle: /* @__PURE__ */ kind({
    tag: ClientThrottle.ClientThrottle,
    validated: Throttle.validated,
    make: (valid, random, nowMillis) => new Throttle.ThrottleGate(valid, random, nowMillis),
    serviceOf: Throttle.serviceOf
  }),
  coolDown: /* @__PURE__ */ kind({
    tag: CoolDown.CoolDown,
    validated: (options: CoolDown.Options) => Cooling.validated(options),
    make: (valid, random) => new Cooling.CoolDownGate(valid, random),
    serviceOf: Cooling.serviceOf
  })
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
  Context.omit(...gateNames.map((name): Context.Key<any, any> => resourceGates[name].tag))(context) as Context.Context<
    any
  >

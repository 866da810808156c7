import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import * as AdaptiveRateLimiter from "../../gates/AdaptiveRateLimiter.ts"
import * as ConcurrencyLimiter from "../../gates/ConcurrencyLimiter.ts"
import { limiterKind, limiterOptions } from "../../gates/internal/adaptiveGate.ts"
import * as Concurrency from "../../gates/internal/concurrencyGate.ts"
import { ruleOptions } from "../../gates/internal/concurrencyRule.ts"
import { coolDownOptions } from "../../gates/internal/coolDownGate.ts"
import type { GateKind } from "../../gates/internal/gate.ts"
import { throttleOptions } from "../../gates/internal/throttleGate.ts"
import * as Hedge from "../../hedge/Hedge.ts"
import type { HedgeBudget } from "../../hedge/internal/hedgeBudget.ts"
import { homeOf, validCall, validHome } from "../../hedge/internal/hedgeOptions.ts"
import { hedgeOptions, type Home, homeOptions, quantileOptions } from "../../hedge/internal/race.ts"
import { checks } from "../../internal/checks.ts"
import { monotonicMillis } from "../../internal/clock.ts"
import { type Fields, isObject, type Path } from "../../internal/invalidField.ts"
import { fraction, jsonNames, type OptionRecord } from "../../internal/options.ts"
import type { AnyContext } from "../../internal/shared.ts"
import { type BudgetOptions, ChangingBudgets } from "../../quota/internal/changingBudgets.ts"
import { grpcOptions, validGrpc } from "../../quota/internal/grpcBudget.ts"
import { inFlightOptions, validInFlight } from "../../quota/internal/inFlightBudget.ts"
import { type StoreOptions, validStore } from "../../quota/internal/memoryStore.ts"
import { shareOptions, validShare } from "../../quota/internal/shareBudget.ts"
import { resourceGates } from "../../resources/internal/resourceGates.ts"
import * as RetryQuota from "../../RetryQuota.ts"
import type { RetryQuotaStore } from "../../RetryQuotaStore.ts"
import type { Gauge, SendGate } from "../../SendGate.ts"
import { fleetOf, QuotaPart, type Shareable, shareable } from "./fleetQuota.ts"
import { CurrentFleet, type FleetOptions, type FleetPart, quotaOptions } from "./fleetStores.ts"
import { below, made } from "./policyReader.ts"
import { CurrentCeiling, type Hedging, type Part, type Section } from "./resourcePart.ts"

/** A gate whose options change while in use. */
interface Live<E, Options> extends SendGate<E> {
  readonly isBlank: boolean
  change(options: Options, nowMillis: number): void
}

/** What the gates of a section have in common. */
interface SectionKind<Options, Gate> extends Omit<GateKind<any, Options, Gate, object>, "make"> {
  readonly tag: Context.Key<any, any>
  readonly keys: ReadonlyArray<string>
  readonly make: (options: Options, random: Random.Random, nowMillis: number, around: AnyContext) => Gate
  /** How a fleet shares it, if it may. */
  readonly sharing?: "limiter" | "coolDown"
}

/** A gate that can be switched off: then every send passes. It may be one of a fleet. */
class Switched<E, Options> implements SendGate<E>, Part {
  /** Adds the service of this gate to a context. */
  readonly add: (context: AnyContext) => AnyContext
  isOn: boolean
  private member: FleetPart | undefined = undefined

  constructor(
    private readonly gate: Live<E, Options>,
    { serviceOf, tag }: SectionKind<Options, any>,
    input: Shareable<Options> | undefined,
    private readonly join: (shared: FleetOptions) => FleetPart
  ) {
    const services = Context.make(tag, { ...serviceOf(gate), gate: this })
    this.add = (context) => Context.merge(context, services) as AnyContext
    this.isOn = input !== undefined
    if (input?.shared !== undefined) this.member = join(input.shared)
  }

  get name(): string | undefined {
    return this.gate.name
  }

  get order(): number {
    return this.gate.order
  }

  get isBlank(): boolean {
    return this.gate.isBlank
  }

  get gauges(): ReadonlyArray<Gauge> | undefined {
    return this.gate.gauges?.map((gauge) => ({
      ...gauge,
      read: (self: this, nowMillis) => gauge.read(self.gate, nowMillis)
    }))
  }

  isStrained(nowMillis: number): boolean {
    return this.isOn && this.gate.isStrained?.(nowMillis) === true
  }

  readonly enter: SendGate<E>["enter"] = (send) => this.isOn ? this.gate.enter(send) : undefined

  change(next: Shareable<Options> | undefined, clock: Clock.Clock): void {
    this.isOn = next !== undefined
    if (next !== undefined) this.gate.change(next.options, monotonicMillis(clock))
    const shared = next?.shared
    if (shared !== undefined && this.member?.change(shared, clock) === true) return
    this.close()
    this.member = shared && this.join(shared)
  }

  close(): void {
    this.member?.close()
  }
}

/** A section whose options are those of a gate. */
const gateSection = <Options, Gate extends Live<any, Options>>(kind: SectionKind<Options, Gate>): Section => ({
  keys: kind.sharing === undefined ? kind.keys : [...kind.keys, "redis"],
  // Without the key, no document has it.
  check: shareable(kind.sharing!, kind.validated),
  make: (input: Shareable<Options> | undefined, owner) => {
    const { context } = owner
    const options = input?.options ?? kind.validated({})
    const nowMillis = monotonicMillis(Context.get(context, Clock.Clock))
    const gate = kind.make(options, Context.get(context, Random.Random), nowMillis, context)
    return new Switched(gate, kind, input, (shared) => fleetOf(owner)[kind.sharing!].join(gate as any, shared, owner))
  }
})

const picked = (input: Fields, keys: ReadonlyArray<string>): Fields =>
  Object.fromEntries(Object.entries(input).filter(([key]) => keys.includes(key)))

const ruleKeys = Object.keys(ruleOptions)

const concurrencyKeys = jsonNames(Concurrency.concurrencyOptions)

/** The options of a limiter. It keeps the limit it has found, as long as the JSON of its rule is the same. */
const limited = (input: { readonly [key: string]: any }) => {
  const { limit } = input
  const ofRule = picked(input, ruleKeys)
  const [other] = Object.keys(ofRule)
  if (limit !== undefined && other !== undefined) {
    checks("ConcurrencyLimiter.fixed").reject(other, ofRule[other], "left out if there is a limit")
  }
  const rule = limit === undefined ? ConcurrencyLimiter.adaptive(ofRule) : ConcurrencyLimiter.fixed(limit)
  return Concurrency.validated({ ...picked(input, concurrencyKeys), rule }, JSON.stringify([limit, ofRule]))
}

/** Checks a nested object, if given. */
const maybeBelow = <A>(
  input: unknown,
  options: OptionRecord,
  path: Path,
  check: (input: { readonly [key: string]: any }) => A
): A | undefined =>
  input === undefined ? undefined : made(() => check(below(input, jsonNames(options), path)), path, input)

const noBudgets: BudgetOptions = { share: undefined, inFlight: undefined, grpc: undefined }

const refused = (cost: number, balance: number) => new RetryQuota.QuotaExhausted({ cost, balance })

/** Budgets over the resource's bucket, which is the same in every context. */
class Budgets implements Part {
  private made: { readonly store: ChangingBudgets; readonly service: RetryQuota.Service } | undefined

  constructor(private options = noBudgets, private readonly clock: Clock.Clock) {}

  get isOn(): boolean {
    return Object.values(this.options).some((option) => option !== undefined)
  }

  get isBlank(): boolean {
    return !this.isOn
  }

  add(context: AnyContext): AnyContext {
    const quota = Context.get(context as Context.Context<any>, RetryQuota.RetryQuota)
    this.made ??= this.over(quota.store)
    return Context.add(context, RetryQuota.RetryQuota, this.made.service) as AnyContext
  }

  change(next = noBudgets, clock: Clock.Clock): void {
    this.options = next
    this.made?.store.change(next, clock)
  }

  private over(bucket: RetryQuotaStore) {
    const store = new ChangingBudgets(bucket, refused)
    store.change(this.options, this.clock)
    return { store, service: RetryQuota.fromStore(store) }
  }
}

const shareKeys = jsonNames(homeOptions)

const callKeys = ["after", ...jsonNames(hedgeOptions)]

/** A time, or a quantile of the latencies. */
const afterOf = (after: unknown, path: Path): Hedge.CallOptions["after"] =>
  isObject(after)
    ? maybeBelow(
      after,
      { quantile: fraction(), ...quantileOptions },
      path,
      ({ quantile, ...options }) => Hedge.quantile(quantile, options)
    )
    : after as Hedge.CallOptions["after"]

const hedgeOf = (input: { readonly [key: string]: any }, path: Path, context: AnyContext) => {
  const after = afterOf(input["after"], [...path, "after"])
  const call = validCall(checks("Hedge"), { ...picked(input, callKeys), after })
  const { leastMillis } = Context.get(context, CurrentCeiling)
  return { shared: validHome(picked(input, shareKeys)), call: { ...call, spacingMillis: leastMillis } }
}

export type HedgeSection = ReturnType<typeof hedgeOf>

/** Made when it is first named: calls cost more from then on. */
class LiveHedge implements Part {
  hedge: Hedging | undefined = undefined
  /** A call asks for it by name. */
  readonly isOn = false
  private home: Home | undefined = undefined
  private latencyWindowMillis = NaN

  constructor(input: HedgeSection | undefined, private readonly scope: Scope.Scope) {
    this.change(input)
  }

  get isBlank(): boolean {
    return this.home === undefined
  }

  change(options: HedgeSection | undefined): void {
    this.hedge = options && { options: options.call, home: this.home = this.homeOf(options.shared) }
  }

  /** Keeps the calls paid into the budget, and the latencies, as long as their windows stay the same. */
  private homeOf(shared: HedgeSection["shared"]): Home {
    const { home, latencyWindowMillis } = this
    const fresh = homeOf(shared, this.scope)
    this.latencyWindowMillis = shared.latencyWindowMillis
    if (home === undefined) return fresh
    const budget = home.budget as HedgeBudget
    budget.change(shared.share, shared.shareWindowMillis)
    return {
      ...fresh,
      budget,
      latencies: shared.latencyWindowMillis === latencyWindowMillis ? home.latencies : fresh.latencies
    }
  }
}

/**
 * What a resource may have. To add one, add an entry here and one in `RetryConfigSchema`. A spread is not free of effects
 * for a bundler.
 */
export const sections: { readonly [key: string]: Section } = /* @__PURE__ */ (() => ({
  quota: {
    keys: [...jsonNames(quotaOptions), "redis"],
    check: shareable("quota", validStore),
    make: (input: Shareable<StoreOptions> | undefined, owner) => new QuotaPart(input, owner)
  },
  budgets: {
    keys: ["share", "inFlight", "grpc"],
    check: ({ grpc, inFlight, share }, path): BudgetOptions => ({
      share: maybeBelow(share, shareOptions, [...path, "share"], validShare),
      inFlight: maybeBelow(inFlight, inFlightOptions, [...path, "inFlight"], validInFlight),
      grpc: maybeBelow(grpc, grpcOptions, [...path, "grpc"], validGrpc)
    }),
    make: (input: BudgetOptions | undefined, { context }) => new Budgets(input, Context.get(context, Clock.Clock))
  },
  limiter: gateSection({
    ...limiterKind,
    tag: AdaptiveRateLimiter.AdaptiveRateLimiter,
    keys: jsonNames(limiterOptions),
    make: (options, random, nowMillis, context) =>
      Context.get(context, CurrentFleet)?.limiterGate(options, nowMillis) ??
        limiterKind.make(options, random, nowMillis),
    sharing: "limiter"
  }),
  concurrency: gateSection({
    ...resourceGates.concurrency,
    keys: ["limit", ...ruleKeys, ...concurrencyKeys],
    validated: limited
  }),
  throttle: gateSection({ ...resourceGates.throttle, keys: jsonNames(throttleOptions) }),
  coolDown: gateSection({ ...resourceGates.coolDown, keys: jsonNames(coolDownOptions), sharing: "coolDown" }),
  hedge: {
    keys: [...callKeys, ...shareKeys],
    check: hedgeOf,
    make: (input: HedgeSection | undefined, { context }) =>
      new LiveHedge(input, Context.get(context as Context.Context<any>, Scope.Scope))
  }
}))()

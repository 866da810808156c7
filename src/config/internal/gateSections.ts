import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import * as AdaptiveRateLimiter from "../../gates/AdaptiveRateLimiter.ts"
import * as ClientThrottle from "../../gates/ClientThrottle.ts"
import * as ConcurrencyLimiter from "../../gates/ConcurrencyLimiter.ts"
import * as CoolDown from "../../gates/CoolDown.ts"
import * as Adaptive from "../../gates/internal/adaptiveGate.ts"
import * as Concurrency from "../../gates/internal/concurrencyGate.ts"
import { ruleOptions } from "../../gates/internal/concurrencyRule.ts"
import * as Cooling from "../../gates/internal/coolDownGate.ts"
import * as Throttle from "../../gates/internal/throttleGate.ts"
import * as Hedge from "../../hedge/Hedge.ts"
import type { HedgeBudget } from "../../hedge/internal/hedgeBudget.ts"
import { homeOf, validCall, validHome } from "../../hedge/internal/hedgeOptions.ts"
import type { Latencies } from "../../hedge/internal/latencyWindow.ts"
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
import * as RetryQuota from "../../RetryQuota.ts"
import type { Gauge, SendGate } from "../../SendGate.ts"
import { member, QuotaPart, type Shareable, shareable } from "./fleetQuota.ts"
import { CurrentFleet, quotaOptions } from "./fleetStores.ts"
import { below, made } from "./policyReader.ts"
import type { Hedging, Part, Section, Surroundings } from "./resourcePart.ts"

/** A gate whose options change while in use. */
interface Live<E, Options> extends SendGate<E> {
  readonly isBlank: boolean
  change(options: Options, nowMillis: number): void
}

/** A gate that can be switched off: then every send passes. */
class Switched<E, Options> implements SendGate<E>, Part {
  /** Adds the service of this gate to a context. */
  readonly add: Part["add"]

  constructor(
    private readonly gate: Live<E, Options>,
    public isOn: boolean,
    tag: Context.Key<any, any>,
    service: object
  ) {
    const services = Context.make(tag, { ...service, gate: this })
    this.add = (context) => Context.merge(context, services) as AnyContext
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

  change(options: Options | undefined, clock: Clock.Clock): void {
    this.isOn = options !== undefined
    if (options !== undefined) this.gate.change(options, monotonicMillis(clock))
  }
}

const quota: Section = {
  keys: [...jsonNames(quotaOptions), "redis"],
  check: shareable("quota", validStore),
  make: (input: Shareable<StoreOptions> | undefined, owner) => new QuotaPart(input, owner)
}

const limiter: Section = {
  keys: [...jsonNames(Adaptive.limiterOptions), "redis"],
  check: shareable("limiter", Adaptive.validated),
  make: (input: Shareable<Adaptive.AdaptiveOptions> | undefined, owner) => {
    const options = input?.options ?? Adaptive.validated({})
    const nowMillis = monotonicMillis(Context.get(owner.context, Clock.Clock))
    const gate = Context.get(owner.context, CurrentFleet)?.limiter.gate(options, nowMillis) ??
      new Adaptive.AdaptiveGate(options, Adaptive.initial(options, nowMillis))
    const switched = new Switched(
      gate,
      input !== undefined,
      AdaptiveRateLimiter.AdaptiveRateLimiter,
      Adaptive.serviceOf(gate)
    )
    return member(switched, input, owner, (fleet, options) => fleet.limiter.join(gate, options, owner))
  }
}

const ruleKeys = Object.keys(ruleOptions)

/** The options of a limiter, and the part of the JSON that its rule is made from. */
const limited = ({ limit, ...input }: { readonly [key: string]: any }) => {
  const [ofRule, own] = [true, false].map((isRule) =>
    Object.fromEntries(Object.entries(input).filter(([key]) => ruleKeys.includes(key) === isRule))
  ) as [Fields, Fields]
  const [other] = Object.keys(ofRule)
  if (limit !== undefined && other !== undefined) {
    checks("ConcurrencyLimiter.fixed").reject(other, ofRule[other], "left out if there is a limit")
  }
  const rule = limit === undefined ? ConcurrencyLimiter.adaptive(ofRule) : ConcurrencyLimiter.fixed(limit)
  return {
    rule: JSON.stringify([limit, ofRule]),
    options: Concurrency.validated({ ...own, rule })
  }
}

type Limited = ReturnType<typeof limited>

/** Keeps the limit it has found, as long as the rule is the same. */
class LiveConcurrency extends Concurrency.ConcurrencyGate {
  private rule: string

  constructor({ options, rule }: Limited, random: Random.Random) {
    super(options, random)
    this.rule = rule
  }

  change({ options, rule }: Limited): void {
    this.follow(options, rule !== this.rule)
    this.rule = rule
  }
}

const concurrency: Section = {
  keys: ["limit", ...ruleKeys, ...jsonNames(Concurrency.concurrencyOptions)],
  check: limited,
  make: (input: Limited | undefined, { context }) => {
    const gate = new LiveConcurrency(input ?? limited({}), Context.get(context, Random.Random))
    return new Switched(gate, input !== undefined, ConcurrencyLimiter.ConcurrencyLimiter, Concurrency.serviceOf(gate))
  }
}

const coolDown: Section = {
  keys: [...jsonNames(Cooling.coolDownOptions), "redis"],
  check: shareable("coolDown", Cooling.validated),
  make: (input: Shareable<Cooling.CoolDownOptions> | undefined, owner) => {
    const gate = new Cooling.CoolDownGate(
      input?.options ?? Cooling.validated({}),
      Context.get(owner.context, Random.Random)
    )
    const switched = new Switched(gate, input !== undefined, CoolDown.CoolDown, Cooling.serviceOf(gate))
    return member(switched, input, owner, (fleet, options) => fleet.coolDown.join(gate, options, owner))
  }
}

const throttle: Section = {
  keys: jsonNames(Throttle.throttleOptions),
  check: Throttle.validated,
  make: (input: Throttle.ThrottleOptions | undefined, { context }) => {
    const gate = new Throttle.ThrottleGate(
      input ?? Throttle.validated({}),
      Context.get(context, Random.Random),
      monotonicMillis(Context.get(context, Clock.Clock))
    )
    return new Switched(gate, input !== undefined, ClientThrottle.ClientThrottle, Throttle.serviceOf(gate))
  }
}

/** Checks a nested object, if given. */
const maybeBelow = <A>(
  input: unknown,
  options: OptionRecord,
  path: Path,
  check: (input: { readonly [key: string]: any }) => A
): A | undefined =>
  input === undefined ? undefined : made(() => check(below(input, jsonNames(options), path)), path, input)

const budgets: Section = {
  keys: ["share", "inFlight", "grpc"],
  check: ({ grpc, inFlight, share }, path): BudgetOptions => ({
    share: maybeBelow(share, shareOptions, [...path, "share"], validShare),
    inFlight: maybeBelow(inFlight, inFlightOptions, [...path, "inFlight"], validInFlight),
    grpc: maybeBelow(grpc, grpcOptions, [...path, "grpc"], validGrpc)
  }),
  make: (input: BudgetOptions | undefined, { context }) => {
    const refused = (cost: number, balance: number) => new RetryQuota.QuotaExhausted({ cost, balance })
    const none: BudgetOptions = { share: undefined, inFlight: undefined, grpc: undefined }
    const isAny = (options = none) => Object.values(options).some((option) => option !== undefined)
    let options = input
    let found: { readonly store: ChangingBudgets; readonly service: RetryQuota.Service } | undefined
    /** A budget over the resource's bucket, which is the same in every context. */
    const over = (quota: RetryQuota.Service, clock: Clock.Clock) => {
      if (found !== undefined) return found
      const store = new ChangingBudgets(quota.store, refused)
      store.change(options ?? none, clock)
      return found = { store, service: RetryQuota.fromStore(store) }
    }
    const clock = Context.get(context, Clock.Clock)
    return {
      get isOn() {
        return isAny(options)
      },
      get isBlank() {
        return !isAny(options)
      },
      add: (context) => {
        const quota = Context.get(context as Context.Context<any>, RetryQuota.RetryQuota)
        return Context.add(context, RetryQuota.RetryQuota, over(quota, clock).service) as AnyContext
      },
      change: (next: BudgetOptions | undefined, clock) => {
        options = next
        found?.store.change(next ?? none, clock)
      }
    }
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

const hedgeOf = (input: { readonly [key: string]: any }, path: Path, { ceiling }: Surroundings) => {
  const of = (keys: ReadonlyArray<string>) =>
    Object.fromEntries(Object.entries(input).filter(([key]) => keys.includes(key)))
  const after = afterOf(input["after"], [...path, "after"])
  const call = validCall(checks("Hedge"), { ...of(callKeys), after })
  return { shared: validHome(of(shareKeys)), call: { ...call, spacingMillis: ceiling.leastMillis } }
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

  add(context: AnyContext): AnyContext {
    return context
  }

  change(options: HedgeSection | undefined): void {
    if (options === undefined) {
      this.hedge = undefined
      return
    }
    const { call, shared } = options
    const home = this.home = this.homeOf(shared, this.home)
    this.latencyWindowMillis = shared.latencyWindowMillis
    this.hedge = { options: call, home }
  }

  /** Keeps the calls paid into the budget, and the latencies, as long as their windows stay the same. */
  private homeOf(shared: HedgeSection["shared"], before: Home | undefined): Home {
    const fresh = homeOf(shared, this.scope)
    if (before === undefined) return fresh
    const budget = before.budget as HedgeBudget
    budget.change(shared.share, shared.shareWindowMillis)
    const isSame = shared.latencyWindowMillis === this.latencyWindowMillis
    const latencies: Latencies = isSame ? before.latencies : fresh.latencies
    return { ...fresh, budget, latencies }
  }
}

const hedge: Section = {
  keys: [...callKeys, ...shareKeys],
  check: hedgeOf,
  make: (input: HedgeSection | undefined, { context }) =>
    new LiveHedge(input, Context.get(context as Context.Context<any>, Scope.Scope))
}

/** What a resource may have. To add one, add an entry here and one in `RetryConfigSchema`. */
export const sections: { readonly [key: string]: Section } = {
  quota,
  budgets,
  limiter,
  concurrency,
  throttle,
  coolDown,
  hedge
}

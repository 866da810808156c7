import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Random from "effect/Random"
import * as AdaptiveRateLimiter from "../../AdaptiveRateLimiter.ts"
import * as ConcurrencyLimiter from "../../ConcurrencyLimiter.ts"
import * as CoolDown from "../../CoolDown.ts"
import { checks } from "../../internal/checks.ts"
import { monotonicMillis } from "../../internal/clock.ts"
import * as Cubic from "../../internal/math/cubic.ts"
import type { AnyContext } from "../../internal/shared.ts"
import * as RetryQuota from "../../RetryQuota.ts"
import type { SendGate } from "../../SendGate.ts"
import { AdaptiveGate, type AdaptiveOptions } from "../../state/adaptive.ts"
import { ConcurrencyGate } from "../../state/concurrency.ts"
import { CoolDownGate } from "../../state/coolDown.ts"
import { LiveStore } from "../../state/liveStore.ts"

/** What a resource has beside its policy, from its first use on, whatever the document says later. */
export interface Part {
  /** It holds sends back, or may at any time. */
  readonly isOn: boolean
  /** The context with it. */
  readonly add: (context: AnyContext) => AnyContext
  /** Goes on with other options; `undefined` when the document does not name it any more. */
  readonly change: (options: any, clock: Clock.Clock) => void
}

/** One key of a resource: what may be set there, and what it makes of it. */
export interface Section {
  readonly keys: ReadonlyArray<string>
  /** Throws `InvalidOption`, naming the key. */
  readonly check: (given: any) => unknown
  /** Given what was checked; `undefined` when the document does not name it. */
  readonly make: (options: any, context: AnyContext) => Part
}

/** A gate whose options change while it is used. */
interface Live<E, Options> extends SendGate<E> {
  change(options: Options): void
}

/** A gate that can be switched off: then every send passes. */
class Switched<E, Options, Gate extends Live<E, Options> = Live<E, Options>> implements SendGate<E>, Part {
  isOn: boolean
  protected readonly gate: Gate
  /** The context with the service of this gate. */
  readonly add: Part["add"]

  constructor(gate: Gate, isOn: boolean, serviceOf: (self: any) => Context.Context<any>) {
    this.gate = gate
    this.isOn = isOn
    const services = serviceOf(this)
    this.add = (context) => Context.merge(context, services) as AnyContext
  }

  get order(): number {
    return this.gate.order
  }

  readonly enter: SendGate<E>["enter"] = (send) => this.isOn ? this.gate.enter(send) : undefined

  change(options: Options | undefined): void {
    this.isOn = options !== undefined
    if (options !== undefined) this.gate.change(options)
  }
}

/** It is asked for its rate, too. */
class SwitchedLimiter<E> extends Switched<E, AdaptiveOptions<E>, AdaptiveGate<E>> {
  get fillRate(): number {
    return this.gate.fillRate
  }
}

const quota: Section = {
  keys: [
    "capacity",
    "initial",
    "refillPerSecond",
    "successIncrement",
    "firstAttemptCost",
    "whenExhausted",
    "maxWaiters"
  ],
  check: (given) => RetryQuota.validated(given),
  make: (options = RetryQuota.validated({}), context) => {
    const store = new LiveStore(options, monotonicMillis(Context.get(context, Clock.Clock)))
    const service = RetryQuota.fromStore(store)
    return {
      isOn: true,
      add: (context) => Context.add(context, RetryQuota.RetryQuota, service) as AnyContext,
      change: (options = RetryQuota.validated({}), clock) => store.change(options, clock)
    }
  }
}

const limiter: Section = {
  keys: [
    "beta",
    "minFillRate",
    "minCapacity",
    "scaleConstant",
    "smoothing",
    "measurementBucketDuration",
    "whenExceeded",
    "maxWaiters"
  ],
  check: (given) => AdaptiveRateLimiter.validated(given),
  make: (given, context) => {
    const options = given ?? AdaptiveRateLimiter.validated({})
    const seconds = monotonicMillis(Context.get(context, Clock.Clock)) / 1000
    const gate = new AdaptiveGate<AdaptiveRateLimiter.RateLimitExceeded>(options, Cubic.initial(options.cubic, seconds))
    const service = AdaptiveRateLimiter.serviceOf(gate)
    return new SwitchedLimiter(
      gate,
      given !== undefined,
      (gate) => Context.make(AdaptiveRateLimiter.AdaptiveRateLimiter, { ...service, gate })
    )
  }
}

const ruleKeys = ["initial", "minimum", "maximum", "increase", "decrease", "slowerThan"]

/** The options of a limiter, and the part of the JSON that its rule is made of. */
const limited = ({ limit, ...given }: { readonly [key: string]: any }) => {
  const ofRule = Object.fromEntries(Object.entries(given).filter(([key]) => ruleKeys.includes(key)))
  const [other] = Object.keys(ofRule)
  if (limit !== undefined && other !== undefined) {
    checks("ConcurrencyLimiter.fixed").reject(other, ofRule[other], "left out where there is a limit")
  }
  const rule = limit === undefined ? ConcurrencyLimiter.adaptive(ofRule) : ConcurrencyLimiter.fixed(limit)
  return {
    rule: JSON.stringify([limit, ofRule]),
    options: ConcurrencyLimiter.validated({ ...given, rule })
  }
}

type Limited = ReturnType<typeof limited>

/** Goes on with the limit that it has found, as long as the rule is the same. */
class LiveConcurrency extends ConcurrencyGate<ConcurrencyLimiter.ConcurrencyLimitExceeded> {
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
  keys: ["limit", ...ruleKeys, "whenFull", "maxWait", "maxWaiters", "order"],
  check: limited,
  make: (given: Limited | undefined, context) => {
    const gate = new LiveConcurrency(given ?? limited({}), Context.get(context, Random.Random))
    const service = ConcurrencyLimiter.serviceOf(gate)
    return new Switched(
      gate,
      given !== undefined,
      (gate) => Context.make(ConcurrencyLimiter.ConcurrencyLimiter, { ...service, gate })
    )
  }
}

const coolDown: Section = {
  keys: ["atMost", "spread", "maxWait", "maxWaiters"],
  check: (given) => CoolDown.validated(given),
  make: (given, context) => {
    const gate = new CoolDownGate<CoolDown.CoolingDown>(
      given ?? CoolDown.validated({}),
      Context.get(context, Random.Random)
    )
    const service = CoolDown.serviceOf(gate)
    return new Switched(gate, given !== undefined, (gate) => Context.make(CoolDown.CoolDown, { ...service, gate }))
  }
}

/** What a resource may have. One more is an entry here, and one in `RetryConfigSchema`. */
export const sections: { readonly [key: string]: Section } = { quota, limiter, concurrency, coolDown }

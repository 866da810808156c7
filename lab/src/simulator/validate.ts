import * as Limiter from "effect-retry/AdaptiveRateLimiter"
import * as ClientThrottle from "effect-retry/ClientThrottle"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import * as Hedge from "effect-retry/Hedge"
import { InvalidOption } from "effect-retry/InvalidOption"
import * as RetryPolicy from "effect-retry/RetryPolicy"
import { fromJson } from "effect-retry/RetryPolicyJson"
import * as RetryQuota from "effect-retry/RetryQuota"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { isBounded, unbounded } from "./bounds.ts"
import { storeOf } from "./budget.ts"
import type { Time } from "./fields.ts"
import { budgetOf, concurrencyOf, coolDownOf, hedgeOf, throttleOf } from "./policy.ts"
import type { Policy, PolicySettings } from "./policySchema.ts"
import { type Problem, renderPath } from "./problem.ts"
import type { Edge, Fleet, Outage, Scenario, ServiceSettings } from "./scenario.ts"
import { suggestion } from "./suggestion.ts"
import { millis } from "./units.ts"

/** The most buckets of a time series. */
const maxBuckets = 10_000
/** The most buckets of all time series. */
const maxBucketsInAll = 250_000
/** The most processes of all fleets. */
const maxProcesses = 100_000
/** The most clients of all fleets. */
const maxClients = 100_000

type Path = ReadonlyArray<PropertyKey>

type Points<A> = readonly [Point<A>, ...ReadonlyArray<Point<A>>]
type Point<A> = A & { readonly at: Time }

/** An outage that leaves requests without an answer. */
const neverAnswers = (outage: Outage): boolean =>
  outage.kind === "drop" || (outage.kind === "hold" && outage.backlog !== undefined)

/** Finds what a schema cannot: settings that do not go together. */
class Inspection {
  readonly problems: Array<Problem> = []
  private readonly services: ReadonlyMap<string, ServiceSettings>

  constructor(private readonly scenario: Scenario) {
    this.services = new Map(scenario.services.map((service) => [service.name, service]))
  }

  private report(path: Path, problem: string): void {
    this.problems.push({ path: renderPath(path), problem })
  }

  inspect(): ReadonlyArray<Problem> {
    const { duration, fleets, services } = this.scenario
    this.positive(["duration"], duration)
    this.buckets()
    this.unique("fleets", fleets)
    this.unique("services", services)
    this.inAll("processes", maxProcesses)
    this.inAll("clients", maxClients)
    this.expectations()
    fleets.forEach((fleet, index) => this.fleet(["fleets", index], fleet))
    fleets.forEach((fleet, index) => this.guest(["fleets", index], fleet, fleets.slice(0, index)))
    services.forEach((service, index) => this.service(["services", index], service))
    return this.problems
  }

  private buckets(): void {
    const { bucket, drain, duration, fleets, services } = this.scenario
    if (!this.positive(["bucket"], bucket)) return
    const series = services.reduce((sum, { calls }) => sum + 1 + calls.length, fleets.length)
    const most = Math.min(maxBuckets, Math.floor(maxBucketsInAll / series))
    if ((millis(duration) + millis(drain)) / millis(bucket) > most) {
      this.report(["bucket"], `is too narrow: more than ${most} buckets in duration and drain`)
    }
  }

  private expectations(): void {
    if (isBounded(this.scenario)) return
    for (const key of ["recoveredWithin", "recoversInRuns"] as const) {
      if (this.scenario.expect?.[key] !== undefined) this.report(["expect", key], `is ${unbounded}`)
    }
  }

  private inAll(key: "processes" | "clients", most: number): void {
    const { fleets } = this.scenario
    const sum = fleets.reduce((sum, fleet) => sum + (fleet[key] ?? 0), 0)
    if (sum > most) this.report(["fleets"], `have ${sum} ${key}: more than ${most}`)
  }

  private positive(path: Path, time: Time | undefined): boolean {
    if (time === undefined || millis(time) > 0) return true
    this.report(path, "must be above 0")
    return false
  }

  private unique(key: string, named: ReadonlyArray<{ readonly name: string }>): void {
    const taken = new Set<string>()
    named.forEach(({ name }, index) => {
      if (taken.has(name)) this.report([key, index, "name"], `${JSON.stringify(name)} is already taken`)
      taken.add(name)
    })
  }

  private fleet(path: Path, fleet: Fleet): void {
    const { arrivals, clients, pace, rate, think } = fleet
    const recorded = typeof arrivals === "object" ? arrivals : undefined
    this.edge(path, fleet)
    if ([rate, recorded, clients].filter((value) => value !== undefined).length !== 1) {
      this.report(path, "needs either a rate or recorded arrivals (open loop), or clients (closed loop)")
    }
    if (recorded?.file !== undefined) {
      this.report(
        [...path, "arrivals", "file"],
        "is read by the command line alone: in code, give the calls as at or calls"
      )
    }
    if (clients === undefined && think !== undefined) this.report([...path, "think"], "requires clients")
    if (clients === undefined && pace !== undefined) this.report([...path, "pace"], "requires clients")
    if (typeof rate === "object") this.growing([...path, "rate"], rate)
  }

  /** A fleet that calls in another's processes has what they have. */
  private guest(path: Path, { policy, processes, processesOf, to }: Fleet, before: ReadonlyArray<Fleet>): void {
    if (processesOf === undefined) return
    const host = before.find(({ name }) => name === processesOf)
    if (host === undefined || host.processesOf !== undefined) {
      return this.report([...path, "processesOf"], "names no earlier fleet with processes of its own")
    }
    if (to !== host.to) this.report([...path, "to"], `must be ${JSON.stringify(host.to)}, as of those processes`)
    if (processes !== 1) this.report([...path, "processes"], "cannot be combined with processesOf")
    if (policy !== "none") this.report([...path, "policy"], "cannot be combined with processesOf")
  }

  private growing(path: Path, points: Points<{ readonly ramp: boolean }>): void {
    if (points[0].ramp) this.report([...path, 0, "ramp"], "has no earlier point to start from")
    this.inOrder(path, points)
  }

  private inOrder(path: Path, points: Points<object>): void {
    points.forEach((point, index) => {
      const before = points[index - 1]
      if (before !== undefined && millis(point.at) <= millis(before.at)) {
        this.report([...path, index, "at"], "must be later than the point before")
      }
    })
  }

  private edge(path: Path, edge: Edge): void {
    const service = this.services.get(edge.to)
    if (service === undefined) {
      this.report(
        [...path, "to"],
        `names an unknown service: ${JSON.stringify(edge.to)}; ${suggestion(edge.to, [...this.services.keys()])}`
      )
    }
    this.positive([...path, "timeout"], edge.timeout)
    this.positive([...path, "patience"], edge.patience)
    if (edge.timeout === undefined && service?.outages.some(neverAnswers)) {
      this.report([...path, "timeout"], `is needed: an outage of ${JSON.stringify(edge.to)} drops requests`)
    }
    this.policy([...path, "policy"], edge.policy)
  }

  private policy(path: Path, policy: Policy): void {
    const found = problemOf(policy)
    if (found !== undefined) this.problems.push({ ...found, path: `${renderPath(path)}.${found.path}` })
  }

  private service(path: Path, service: ServiceSettings): void {
    if (service.capacity !== undefined && service.workers !== undefined) {
      this.report([...path, "workers"], "cannot be combined with a capacity")
    }
    this.positive([...path, "queueTimeout"], service.queueTimeout)
    this.inside(path, service)
    this.balancer(path, service)
    this.limit([...path, "limit"], service.limit)
    service.outages.forEach((outage, index) => this.outage([...path, "outages", index], outage))
    service.calls.forEach((edge, index) => this.edge([...path, "calls", index], edge))
    if (this.leadsBack(service.name)) this.report([...path, "calls"], `lead back to ${JSON.stringify(service.name)}`)
  }

  /** Settings that need a capacity, or workers. */
  private inside(path: Path, { admitWithin, capacity, costs, workers }: ServiceSettings): void {
    this.positive([...path, "admitWithin"], admitWithin)
    if (admitWithin !== undefined && capacity === undefined) {
      this.report([...path, "admitWithin"], "requires a capacity")
    }
    if (capacity === undefined && workers === undefined && Object.values(costs).some((cost) => millis(cost) > 0)) {
      this.report([...path, "costs"], "require a capacity or workers")
    }
    if (typeof capacity === "object") this.growing([...path, "capacity"], capacity)
  }

  private balancer(path: Path, { balancer, instances, outages }: ServiceSettings): void {
    if (instances === 1 && (balancer.notices !== undefined || balancer.choice !== "round-robin")) {
      this.report([...path, "balancer"], "requires several instances")
    }
    if (balancer.notices === undefined && millis(balancer.slowStart) > 0) {
      this.report(
        [...path, "balancer", "slowStart"],
        "requires notices: an instance that is never taken out never comes back"
      )
    }
    outages.forEach(({ instance }, index) => {
      if (instance !== undefined && instance >= instances) {
        this.report([...path, "outages", index, "instance"], `must be below ${instances}: there is no such instance`)
      }
    })
  }

  private limit(path: Path, limit: ServiceSettings["limit"]): void {
    if (limit === undefined) return
    if ("requests" in limit) {
      this.positive([...path, "per"], limit.per)
      return
    }
    limit.forEach(({ per }, index) => this.positive([...path, index, "per"], per))
    this.inOrder(path, limit)
  }

  private outage(path: Path, outage: Outage): void {
    if (millis(outage.to) <= millis(outage.from)) this.report([...path, "to"], "must be later than from")
  }

  /** Services that call each other in a cycle would never answer. */
  private leadsBack(name: string): boolean {
    const reached = new Set([name])
    for (const from of reached) {
      for (const { to } of this.services.get(from)?.calls ?? []) {
        if (to === name) return true
        reached.add(to)
      }
    }
    return false
  }
}

/** Settings without effect. */
const problemOfUnused = ({ limiter, quota }: PolicySettings, limits: RetryPolicy.Limits): Problem | undefined => {
  if (quota !== undefined && limits.quota === undefined) {
    return { path: "quota", problem: "is not used: no step is quotaGated" }
  }
  return limiter !== undefined && !limits.gates.includes("effect-retry/AdaptiveRateLimiter")
    ? { path: "limiter", problem: "is not used: no step requires it" }
    : undefined
}

/** A limit that never changes, one of Netflix and the adaptive one of the library: each has its own constants. */
const problemOfRule = ({ concurrency }: PolicySettings): Problem | undefined => {
  if (concurrency === undefined) return undefined
  const { maxWait: _w, maxWaiters: _n, order: _o, onExceeded: _f, ...rule } = concurrency
  const [kind] = (["limit", "published"] as const).filter((key) => rule[key] !== undefined)
  const [other] = Object.keys(rule).filter((key) => key !== kind)
  return kind === undefined || other === undefined
    ? undefined
    : { path: `concurrency.${other}`, problem: `cannot be combined with ${kind}` }
}

/** The field of a layer that an option is refused for, as the path of the setting. */
const under = (key: string, make: () => unknown): Problem | undefined => {
  try {
    make()
    return undefined
  } catch (error) {
    if (error instanceof InvalidOption) return { path: `${key}.${error.field}`, problem: problemText(error) }
    throw error
  }
}

/** Without the constructor and the option, which the path names. */
const problemText = ({ constructorName, field, message }: InvalidOption): string =>
  message.slice(`${constructorName}: ${field} `.length)

/** Problems of a budget: options with other names in the library, then what its constructor reports. */
const problemOfBudget = (budget: PolicySettings["budget"]): Problem | undefined => {
  if (budget === undefined) return undefined
  if (budget.kind === "finagle" && millis(budget.ttl) === 0) return { path: "budget.ttl", problem: "must be above 0" }
  return budget.kind === "ratio" && budget.of === "attempts" && budget.share > 0.5
    ? { path: "budget.share", problem: "must be at most 0.5 of the attempts: one retry for each call" }
    : under("budget", () => storeOf(budgetOf(budget)))
}

const problemOfHedge = (settings: PolicySettings["hedge"]): Problem | undefined => {
  if (settings === undefined) return undefined
  const [other] = (["quantile", "first"] as const).filter((key) => settings[key] !== undefined)
  if (settings.after !== undefined && other !== undefined) {
    return { path: `hedge.${other}`, problem: "cannot be combined with after" }
  }
  return under("hedge", () => {
    const { call, process } = hedgeOf(settings)
    return [Hedge.make(process), Hedge.hedged(call)]
  })
}

const problemOfGates = (policy: PolicySettings): Problem | undefined => {
  const { concurrency, coolDown, throttle } = policy
  return problemOfRule(policy) ??
    under("concurrency", () => concurrency && ConcurrencyLimiter.make(concurrencyOf(concurrency))) ??
    under("coolDown", () => coolDown && CoolDown.make(coolDownOf(coolDown))) ??
    under("throttle", () => throttle && ClientThrottle.make(throttleOf(throttle)))
}

/** What is wrong with a policy, if anything: its constructors decide. */
export const problemOf = (policy: Policy): Problem | undefined => {
  if (typeof policy === "string") return undefined
  const made = Effect.runSync(Effect.result(fromJson({ steps: policy.steps })))
  if (Result.isFailure(made)) return { path: made.failure.field, problem: problemText(made.failure) }
  const limits = RetryPolicy.limits(made.success)
  return problemOfUnused(policy, limits) ??
    under("quota", () => RetryQuota.layer(policy.quota)) ??
    under("limiter", () => Limiter.layer(policy.limiter)) ??
    problemOfGates(policy) ??
    problemOfBudget(policy.budget) ??
    problemOfHedge(policy.hedge)
}

/** The settings of a scenario that do not go together. */
export const inspect = (scenario: Scenario): ReadonlyArray<Problem> => new Inspection(scenario).inspect()

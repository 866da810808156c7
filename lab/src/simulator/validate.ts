import * as Limiter from "effect-retry/AdaptiveRateLimiter"
import * as ClientThrottle from "effect-retry/ClientThrottle"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import { InvalidOption } from "effect-retry/InvalidOption"
import * as RetryPolicy from "effect-retry/RetryPolicy"
import { fromJson } from "effect-retry/RetryPolicyJson"
import * as RetryQuota from "effect-retry/RetryQuota"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { storeOf } from "./budget.ts"
import type { Time } from "./fields.ts"
import { budgetOf, concurrencyOf, coolDownOf, throttleOf } from "./policy.ts"
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

/** Looks for what a schema cannot see: what does not go together. */
class Inspection {
  readonly problems: Array<Problem> = []
  private readonly scenario: Scenario
  private readonly services: ReadonlyMap<string, ServiceSettings>

  constructor(scenario: Scenario) {
    this.scenario = scenario
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
    fleets.forEach((fleet, index) => this.fleet(["fleets", index], fleet))
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
      if (taken.has(name)) this.report([key, index, "name"], `${JSON.stringify(name)} is taken already`)
      taken.add(name)
    })
  }

  private fleet(path: Path, fleet: Fleet): void {
    const { clients, pace, rate, think } = fleet
    this.edge(path, fleet)
    if ((rate === undefined) === (clients === undefined)) {
      this.report(path, "needs either a rate (open loop) or clients (closed loop)")
    }
    if (clients === undefined && think !== undefined) this.report([...path, "think"], "goes with clients only")
    if (clients === undefined && pace !== undefined) this.report([...path, "pace"], "goes with clients only")
    if (typeof rate === "object") this.rate([...path, "rate"], rate)
  }

  private rate(path: Path, points: Exclude<NonNullable<Fleet["rate"]>, number>): void {
    if (points[0].ramp) this.report([...path, 0, "ramp"], "has no point before it to come from")
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
        `names no service: ${JSON.stringify(edge.to)}; ${suggestion(edge.to, [...this.services.keys()])}`
      )
    }
    this.positive([...path, "timeout"], edge.timeout)
    if (edge.timeout === undefined && service?.outages.some(({ kind }) => kind === "drop")) {
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
      this.report([...path, "workers"], "does not go with a capacity")
    }
    this.positive([...path, "queueTimeout"], service.queueTimeout)
    if (service.limit !== undefined) this.positive([...path, "limit", "per"], service.limit.per)
    service.outages.forEach((outage, index) => this.outage([...path, "outages", index], outage))
    service.calls.forEach((edge, index) => this.edge([...path, "calls", index], edge))
    if (this.leadsBack(service.name)) this.report([...path, "calls"], `lead back to ${JSON.stringify(service.name)}`)
  }

  private outage(path: Path, { from, to }: Outage): void {
    if (millis(to) <= millis(from)) this.report([...path, "to"], "must be later than from")
  }

  /** Services that call each other in a circle would never answer. */
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

/** What is there for nothing. */
const problemOfUnused = ({ limiter, quota }: PolicySettings, limits: RetryPolicy.Limits): Problem | undefined => {
  if (quota !== undefined && limits.quota === undefined) {
    return { path: "quota", problem: "is not used: no step is quotaGated" }
  }
  return limiter !== undefined && !limits.requiresRateLimiter
    ? { path: "limiter", problem: "is not used: no step is requiresRateLimiter" }
    : undefined
}

/** A limit that never changes, one of Netflix and the adaptive one of the library: each has its own constants. */
const problemOfRule = ({ concurrency }: PolicySettings): Problem | undefined => {
  if (concurrency === undefined) return undefined
  const { maxWait: _w, maxWaiters: _n, order: _o, whenFull: _f, ...rule } = concurrency
  const [kind] = (["limit", "published"] as const).filter((key) => rule[key] !== undefined)
  const [other] = Object.keys(rule).filter((key) => key !== kind)
  return kind === undefined || other === undefined
    ? undefined
    : { path: `concurrency.${other}`, problem: `does not go with ${kind}` }
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

/** What goes wrong with a budget: what is called otherwise in the library, then what its constructor says. */
const problemOfBudget = (budget: PolicySettings["budget"]): Problem | undefined => {
  if (budget === undefined) return undefined
  if (budget.kind === "finagle" && millis(budget.ttl) === 0) return { path: "budget.ttl", problem: "must be above 0" }
  return budget.kind === "ratio" && budget.of === "attempts" && budget.share > 0.5
    ? { path: "budget.share", problem: "must be at most 0.5 of the attempts: one retry for each call" }
    : under("budget", () => storeOf(budgetOf(budget)))
}

/** What is wrong with a policy, if anything is: its constructors are the judges. */
export const problemOf = (policy: Policy): Problem | undefined => {
  if (typeof policy === "string") return undefined
  const made = Effect.runSync(Effect.result(fromJson({ steps: policy.steps })))
  if (Result.isFailure(made)) return { path: made.failure.field, problem: problemText(made.failure) }
  const limits = RetryPolicy.limits(made.success)
  return problemOfUnused(policy, limits) ??
    under("quota", () => RetryQuota.layer(policy.quota)) ??
    under("limiter", () => Limiter.layer(policy.limiter)) ??
    problemOfRule(policy) ??
    under("concurrency", () => policy.concurrency && ConcurrencyLimiter.make(concurrencyOf(policy.concurrency))) ??
    under("coolDown", () => policy.coolDown && CoolDown.make(coolDownOf(policy.coolDown))) ??
    under("throttle", () => policy.throttle && ClientThrottle.make(throttleOf(policy.throttle))) ??
    problemOfBudget(policy.budget)
}

/** What does not go together in a scenario. */
export const inspect = (scenario: Scenario): ReadonlyArray<Problem> => new Inspection(scenario).inspect()
